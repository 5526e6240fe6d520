import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Logger } from "effect"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import * as Decoder from "../../../src/decoder/networks/Decoder.ts"
import { DataLoader } from "../../../src/trainer/batches/DataLoader.ts"
import { writeRollouts } from "../../../src/trainer/batches/rolloutFiles.ts"
import { openRunFolder } from "../../../src/trainer/runs/guardedFolder.ts"
import { Runs } from "../../../src/trainer/runs/Runs.ts"
import { Store } from "../../../src/trainer/store/Store.ts"
import { makeTrainedModel } from "../../../src/trainer/trainer/TrainedModel.ts"
import { makeTrainer } from "../../../src/trainer/trainer/Trainer.ts"
import { stream } from "../../../src/base/rng/Rng.ts"
import { config } from "../../decoder/networks/fixture.ts"
import { quickClock } from "../quickClock.ts"
import { filesIn, temporary } from "../ranks.ts"

const shape = { rows: 2, width: 16, block: 4, mixing: "one-run" } as const
const ids = ["run_a", "run_b"]
const steps = 2
const orch = `max_steps = ${steps}\n[optimiser]\nlr = 0.01\n`

/** The runs have different numbers of samples, so that some turns have nothing for some ranks. */
const samplesOf = (id: string, step: number) =>
  Array.from({ length: id === "run_a" ? 11 : 4 }, (_, at) => {
    const random = stream(3, id, step, at)
    const length = 4 + random.integer(13)
    const written = (numberOf: () => number) =>
      Float32Array.from({ length }, (_, token) => (token < 2 ? 0 : numberOf()))
    return {
      id: `${id}/${step}/${at}`,
      tokens: Int32Array.from({ length }, () => random.integer(config.vocabSize)),
      mask: Uint8Array.from({ length }, (_, token) => (token < 2 ? 0 : 1)),
      logprobs: written(() => -0.5 - 2 * random.uniform()),
      advantages: written(() => random.normal()),
      temperature: 1,
    }
  })

/** Makes the trainer of a rank, which trains until all runs have ended; returns the adapters by the runs' ids. */
const train = Effect.fnUntraced(function* (rank: number, ranks: number) {
  const runs = yield* Runs
  const weights = Decoder.initialValues(Decoder.parametersOf(config), stream(1, "weights"))
  const lora = { shape: { rank: 2, targets: ["q_proj", "down_proj"] as const }, alpha: 4 }
  const model = makeTrainedModel({ config, weights, lora, maxRuns: runs.maxRuns })
  let updates = 0
  const published: Array<string> = []
  const trainer = yield* makeTrainer({
    model,
    shape,
    seed: 1,
    ranks,
    publish: ({ id, index, progress }) =>
      Effect.sync(() => {
        // A run is ready from the end of its step until its weights are published.
        assert.strictEqual(runs.readyToUpdateIndices().includes(index), progress.step > 0)
        published.push(`${id} ${progress.step}`)
      }),
    report: () => Effect.sync(() => void updates++),
  })
  while (updates < ids.length * steps) {
    yield* trainer.turn
    assert.deepStrictEqual(runs.readyToUpdateIndices(), [])
  }
  assert.strictEqual(published.length, rank === 0 ? ids.length * (steps + 1) : 0)
  return Object.fromEntries(ids.map((id) => [id, model.stateDictOf(runs.idToIndex(id) ?? -1)]))
})

/** Trains on several ranks in this process, and returns the adapters of each rank. */
const trainedOn = (ranks: number) =>
  Effect.gen(function* () {
    const directory = yield* temporary
    const files = filesIn(directory)
    for (const id of ids) {
      files.add(id, orch)
      const folder = yield* openRunFolder({ id, directory: `${directory}/${id}` })
      for (let step = 0; step < steps; step++) yield* writeRollouts(folder, { step, samples: samplesOf(id, step) })
    }
    const store = Store.memory()
    const all = Effect.forEach(
      Array.from({ length: ranks }, (_, rank) => rank),
      Effect.fnUntraced(function* (rank) {
        const runs = Runs.layer({ outputDirectory: directory, maxConcurrentRuns: 3, watch: false, rank, ranks })
        const loader = DataLoader.layer({ ...shape, ranks, vocabSize: config.vocabSize })
        const context = yield* Layer.build(Layer.provideMerge(loader, Layer.provideMerge(runs, store)))
        return yield* Effect.provideContext(train(rank, ranks), Context.merge(yield* Effect.context<never>(), context))
      }),
      { concurrency: "unbounded" },
    )
    return yield* quickClock().on(all)
  }).pipe(Effect.scoped, Effect.provide([Wasm.layer, NodeServices.layer, Logger.layer([])]))

describe("a trainer", () => {
  it.live("gives the same bits on two ranks as on one, on each of them", () =>
    Effect.gen(function* () {
      const [alone] = yield* trainedOn(1)
      const [first, second] = yield* trainedOn(2)
      assert.deepStrictEqual(first, alone)
      assert.deepStrictEqual(second, alone)
      const numbers = Object.values(alone["run_a"]).flatMap(({ data }) => [...data])
      assert.isTrue(numbers.every((number) => Number.isFinite(number)))
      // An adapter that was not trained has zeros in all matrices B.
      for (const [name, { data }] of Object.entries(alone["run_b"]))
        assert.isTrue(
          data.some((number) => number !== 0),
          name,
        )
    }),
  )
})
