/** The metrics of a run: what its event file holds, thinned, and followed while it grows. */
import { appendFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { confinedTo } from "../../../../src/run/read/confined-node.ts"
import { addEvents, emptyMetrics, metricsOf } from "../../../../src/command/ui/curves/metrics.ts"
import { makeMetrics } from "../../../../src/command/ui/curves/runMetrics.ts"
import { ByteWriter } from "../../../../src/base/formats/ByteWriter.ts"
import { writeHeader, writeScalars } from "../../../../src/base/formats/tfevents.ts"
import { withFolder, write } from "../folder.ts"

const event = (step: number, scalars: Readonly<Record<string, number>>) => ({ step, wallSeconds: 100 + step, scalars })

const bytesOf = (from: number, to: number, name = "losses/entropy"): Uint8Array => {
  const writer = new ByteWriter()
  if (from === 0) writeHeader(writer, 0)
  for (let step = from; step < to; step++) writeScalars(writer, 100 + step, step, { [name]: step })
  return writer.written
}

describe("the metrics of a run", () => {
  it("are sorted by name, share their places, and leave out values that are not finite", () => {
    const table = emptyMetrics()
    addEvents(table, [
      event(10, { "losses/b": 1, "losses/a": 2 }),
      event(20, { "losses/b": NaN, "losses/a": 3 }),
      event(20, { "validation/score": 7 }),
    ])
    assert.deepStrictEqual(metricsOf(table), {
      places: [
        { steps: [10], time: [0] },
        { steps: [10, 20], time: [0, 10] },
        { steps: [20], time: [10] },
      ],
      metrics: [
        { name: "losses/a", at: 1, mean: [2, 3] },
        { name: "losses/b", at: 0, mean: [1] },
        { name: "validation/score", at: 2, mean: [7] },
      ],
      leftOut: 0,
    })
  })

  it("have at most 800 points each, which say the mean, lowest and highest value of their part", () => {
    const table = emptyMetrics()
    addEvents(
      table,
      Array.from({ length: 10_000 }, (_, step) => event(step, { x: step % 2 })),
    )
    const { places, metrics } = metricsOf(table)
    const [{ mean, low = [], high = [] }] = metrics
    assert.isAtLeast(mean.length, 400)
    assert.isAtMost(mean.length, 801)
    assert.deepStrictEqual([...new Set(mean), ...new Set(low), ...new Set(high)], [0.5, 0, 1])
    assert.strictEqual(places[0].steps.at(-1), 9999)
  })

  it("have at most 300 names, and say how many are left out", () => {
    const table = emptyMetrics()
    addEvents(table, [event(0, Object.fromEntries(Array.from({ length: 310 }, (_, index) => [`m/${index}`, 1])))])
    const { metrics, leftOut } = metricsOf(table)
    assert.deepStrictEqual([metrics.length, leftOut], [300, 10])
  })

  it("are read on where the file has grown, also past a record that was only half written", () =>
    withFolder(async (folder) => {
      const file = join(folder, "run/logs.tfevents")
      write(folder, "run/logs.tfevents", bytesOf(0, 3))
      const read = makeMetrics(await Effect.runPromise(confinedTo(folder)))
      const stepsNow = () => Effect.runPromise(Effect.map(read("run"), ({ places }) => places[0].steps))
      assert.deepStrictEqual(await stepsNow(), [0, 1, 2])
      const more = bytesOf(3, 5)
      appendFileSync(file, more.subarray(0, more.length - 5))
      assert.deepStrictEqual(await stepsNow(), [0, 1, 2, 3])
      appendFileSync(file, more.subarray(more.length - 5))
      assert.deepStrictEqual(await stepsNow(), [0, 1, 2, 3, 4])
    }))

  it("are read anew after a resumed run has cut its file back", () =>
    withFolder(async (folder) => {
      write(folder, "run/logs.tfevents", bytesOf(0, 5))
      const read = makeMetrics(await Effect.runPromise(confinedTo(folder)))
      assert.deepStrictEqual((await Effect.runPromise(read("run"))).places[0].steps, [0, 1, 2, 3, 4])
      const anew = new ByteWriter()
      writeHeader(anew, 0)
      for (const step of [0, 7, 8, 9, 10, 11, 12]) writeScalars(anew, step, step, { "losses/entropy": step })
      writeFileSync(join(folder, "run/logs.tfevents"), anew.written)
      assert.deepStrictEqual((await Effect.runPromise(read("run"))).places[0].steps, [0, 7, 8, 9, 10, 11, 12])
    }))

  it("are where the config places the logs, and there are none of a run without them", () =>
    withFolder(async (folder) => {
      write(folder, "a/config.yaml", "log_dir: notes\n")
      write(folder, "a/notes/logs.tfevents", bytesOf(0, 2))
      write(folder, "b/config.yaml", "env: CartPole-v1\n")
      const read = makeMetrics(await Effect.runPromise(confinedTo(folder)))
      assert.deepStrictEqual(await Effect.runPromise(read("b")), { places: [], metrics: [], leftOut: 0 })
      assert.strictEqual((await Effect.runPromise(read("a"))).metrics.length, 1)
    }))
})
