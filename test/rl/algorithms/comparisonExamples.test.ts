import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import curious from "../../../examples/rollouts/curiosity-corridor.ts"
import unseen from "../../../examples/rollouts/daac-unseen.ts"
import maze from "../../../examples/rollouts/randal-maze.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import { Recorder } from "../../../src/run/record/Recorder.ts"
import { RunStore } from "../../../src/run/store/RunStore.ts"
import { RunOptions } from "../../../src/run/RunOptions.ts"
import type { Run } from "../../../src/rl/train/Train.ts"

/** Trains an example for a few steps, with further settings. */
const shortened = (training: Run, totalSteps: number, more: Readonly<Record<string, unknown>> = {}) => {
  const settings = { totalSteps, "validation.everySteps": totalSteps, "validation.episodes": 4, ...more }
  const overrides = Object.entries(settings).map(([path, value]) => ({ path, value, source: "test" }))
  return training.pipe(
    Effect.provideService(RunOptions, { overrides, source: "example", name: "run" }),
    Effect.provide(Layer.mergeAll(Wasm.layer, RunStore.memory().layer, Recorder.layerSilent)),
  )
}

describe("examples that compare an algorithm with a plainer one", () => {
  it.effect("curiosity-corridor.ts trains with its bonus, and otherwise without it", () =>
    Effect.gen(function* () {
      const bonus = yield* shortened(curious, 1280)
      const plain = yield* shortened(curious, 1280, { "algorithm.curiosityCoefficient": 0 })
      for (const { steps, validation } of [bonus, plain]) {
        assert.strictEqual(steps, 1280)
        assert.strictEqual(validation?.meanReturn, 0)
      }
      assert.notStrictEqual(bonus.digest, plain.digest)
    }),
  )

  it.effect("daac-unseen.ts trains, and PPO with one network in its place", () =>
    Effect.gen(function* () {
      const network = [{ type: "dense", units: 64 }, { type: "tanh" }]
      const daac = yield* shortened(unseen, 1024)
      const ppo = yield* shortened(unseen, 1024, {
        "algorithm.name": "ppo",
        "algorithm.nsteps": 64,
        "algorithm.network": network,
      })
      assert.deepStrictEqual([daac.steps, ppo.steps], [1024, 1024])
      assert.notStrictEqual(daac.digest, ppo.digest)
    }),
  )

  it.effect(
    "randal-maze.ts trains, and PPO in its place",
    () =>
      Effect.gen(function* () {
        const randal = yield* shortened(maze, 512, { "algorithm.initObsSteps": 0 })
        const ppo = yield* shortened(maze, 512, { "algorithm.name": "ppo", "algorithm.nsteps": 32 })
        assert.deepStrictEqual([randal.steps, ppo.steps], [512, 512])
        assert.notStrictEqual(randal.digest, ppo.digest)
      }),
    { tags: "slow" },
  )
})
