import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { CartPole, listening, Ppo, RunStore, Train, Wasm } from "../../../src/index.ts"
import * as Layout from "../../../src/run/Layout.ts"
import * as Web from "../../../src/web.ts"

const training = Train.run({
  env: CartPole.env,
  algorithm: Ppo.make({ nsteps: 16, hidden: [8] }),
  numEnvs: 2,
  totalSteps: 64,
  validation: { everySteps: 32, episodes: 2 },
})

describe("the recorder of pages and workers", () => {
  it.effect("passes the run's events to a function, from the first to the last, and writes the run's files", () =>
    Effect.gen(function* () {
      const tags: Array<string> = []
      const names = new Set<string>()
      const { files, layer } = RunStore.memory()
      const recorder = Web.recorder(
        listening((events, about) => {
          tags.push(...events.map(({ _tag }) => _tag))
          names.add(`${about.algorithm} on ${about.env}`)
        }),
      )
      const { runDir } = yield* Effect.provide(training, Layer.mergeAll(Wasm.layer, layer, recorder))
      assert.deepStrictEqual([...names], ["ppo on CartPole-v1"])
      assert.strictEqual(tags.filter((tag) => tag === "ValidationEnded").length, 2)
      assert.strictEqual(tags.at(-1), "RunEnded")
      for (const file of [Layout.trainScores, Layout.log]) assert.isTrue(files.has(`${runDir}/${file}`), file)
    }),
  )

  it.effect("ends a run whose listener throws", () =>
    Effect.gen(function* () {
      const broken = Web.recorder(
        listening(() => {
          throw new Error("no such element")
        }),
      )
      const layers = Layer.mergeAll(Wasm.layer, RunStore.layerMemory, broken)
      const exit = yield* Effect.exit(Effect.provide(training, layers))
      assert.include(String(exit), "no such element")
    }),
  )
})
