import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import selfPlay, { game } from "../../../examples/several-agents/past-selves.ts"
import hunt, { pursuit } from "../../../examples/several-agents/pursuit.ts"
import separate, { hunt as chase } from "../../../examples/several-agents/separate-policies.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import { check } from "../../../src/rl/env/check.ts"
import * as MultiEnv from "../../../src/rl/env/MultiEnv.ts"
import { Recorder } from "../../../src/run/record/Recorder.ts"
import { RunStore } from "../../../src/run/store/RunStore.ts"
import { RunOptions } from "../../../src/run/RunOptions.ts"
import type { Run } from "../../../src/rl/train/Train.ts"

const trained = (training: Run, settings: Readonly<Record<string, number>>) => {
  const overrides = Object.entries(settings).map(([path, value]) => ({ path, value, source: "test" }))
  return training.pipe(
    Effect.provideService(RunOptions, { overrides, source: "example", name: "run" }),
    Effect.provide(Layer.mergeAll(Wasm.layer, RunStore.memory().layer, Recorder.layerSilent)),
  )
}

describe("examples of several agents", () => {
  it.each(["pursuit", "past-selves", "separate-policies"])("%s has at most 60 lines", (name) => {
    const text = readFileSync(new URL(`../../../examples/several-agents/${name}.ts`, import.meta.url), "utf8")
    assert.isAtMost(text.trim().split("\n").length, 60)
  })

  it("keep the rules of envs", () => {
    assert.deepStrictEqual(check(MultiEnv.against(pursuit)), [])
    assert.deepStrictEqual(check(MultiEnv.against(game)), [])
    assert.deepStrictEqual(check(MultiEnv.against(chase)), [])
  })

  it.effect(
    "learn to hunt with one policy for both",
    () =>
      Effect.gen(function* () {
        const { validation } = yield* trained(hunt, { totalSteps: 120_000, "validation.everySteps": 120_000 })
        // Two who move at random catch the hare in some games, and have a mean return below 0.
        assert.isAbove(validation?.meanReturn ?? -1, 0.3)
      }),
    { tags: "slow" },
  )

  it.effect("learn a policy for each of two agents", () =>
    Effect.gen(function* () {
      const { validation, steps } = yield* trained(separate, { totalSteps: 8192, "validation.everySteps": 8192 })
      assert.strictEqual(steps, 8192)
      // The game is one of zero sum.
      assert.closeTo(validation?.meanReturn ?? 1, 0, 1e-6)
    }),
  )

  it.effect(
    "learn to win against a random player by games against past selves",
    () =>
      Effect.gen(function* () {
        const settings = { totalSteps: 40_960, "validation.everySteps": 40_960 }
        const { validation } = yield* trained(selfPlay, settings)
        // Half of the games are against who never loses, so an agent that moves at random has about −0.4.
        assert.isAbove(validation?.meanReturn ?? -1, -0.2)
      }),
    { tags: "slow" },
  )
})
