import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { serve } from "../../../src/command/ui/server-node.ts"
import { ownerName } from "../../../src/run/store/owner-node.ts"
import { makeRun, scoreLine, withFolder, write } from "./folder.ts"

/** Serves `results`, and returns the answer at `/metrics`. */
const metricsOf = (folder: string, token?: string, headers: Record<string, string> = {}) =>
  Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const directory = join(folder, "results")
        const options = { directory, host: "127.0.0.1", port: 0, ...(token === undefined ? {} : { token }) }
        const { port } = yield* serve(options)
        const response = yield* Effect.promise(() => fetch(`http://127.0.0.1:${port}/metrics`, { headers }))
        return { response, text: yield* Effect.promise(() => response.text()) }
      }),
    ),
  )

const valuesOf = (text: string, name: string): ReadonlyArray<readonly [labels: string, value: number]> =>
  Array.from(text.matchAll(new RegExp(String.raw`^${name}(\{.*\})? (\S+)$`, "gm")), ([, labels = "", value]) => [
    labels,
    Number(value),
  ])

describe("the metrics of effect ui", () => {
  it("count runs by state, and have the figures of each", () =>
    withFolder(async (folder) => {
      const results = join(folder, "results")
      mkdirSync(results)
      makeRun(results, { seed: 1 })
      const running = makeRun(results, { seed: 2, name: 'odd "name"\\' }, { finished: false })
      write(results, `${running}/run.lock`, ownerName(process.pid))
      write(results, `${running}/scores/train/scores.jsonl`, scoreLine(10, 4, 0) + scoreLine(20, 8, 1) + '{"half')
      write(results, `${running}/system.jsonl`, `${JSON.stringify({ step_index: 20, steps_per_second: 123.5 })}\n`)
      const { response, text } = await metricsOf(folder)
      assert.strictEqual(response.headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8")
      assert.deepInclude(valuesOf(text, "effect_runs"), ['{state="running"}', 1])
      assert.deepInclude(valuesOf(text, "effect_runs"), ['{state="finished"}', 1])
      const of = (name: string) => valuesOf(text, name).find(([labels]) => labels.includes('seed="2"'))
      assert.strictEqual(of("effect_run_return")?.[1], 6)
      assert.strictEqual(of("effect_run_steps_per_second")?.[1], 123.5)
      assert.include(of("effect_run_return")?.[0], 'name="odd \\"name\\"\\\\"')
      assert.lengthOf(valuesOf(text, "effect_run_steps"), 2)
    }))

  it("have at most 200 runs of their own, those that are running first", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const results = join(folder, "results")
      mkdirSync(results)
      for (let seed = 1; seed <= 210; seed++) makeRun(results, { seed }, { lean: true })
      const running = makeRun(results, { seed: 999, time: "2020-01-01_00-00-00" }, { finished: false, lean: true })
      write(results, `${running}/run.lock`, ownerName(process.pid))
      const { text } = await metricsOf(folder)
      assert.lengthOf(valuesOf(text, "effect_run_steps"), 200)
      assert.isTrue(valuesOf(text, "effect_run_steps").some(([labels]) => labels.includes('seed="999"')))
      assert.deepEqual(valuesOf(text, "effect_runs_without_metrics"), [["", 11]])
    }),
  )

  it("need the token", () =>
    withFolder(async (folder) => {
      mkdirSync(join(folder, "results"))
      assert.strictEqual((await metricsOf(folder, "secret-token")).response.status, 401)
      const bearer = { authorization: "Bearer secret-token" }
      assert.strictEqual((await metricsOf(folder, "secret-token", bearer)).response.status, 200)
      const other = { ...bearer, origin: "https://other.example" }
      assert.strictEqual((await metricsOf(folder, "secret-token", other)).response.status, 403)
    }))
})
