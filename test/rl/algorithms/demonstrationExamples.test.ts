import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import { Recorder } from "../../../src/run/record/Recorder.ts"
import { RunStore } from "../../../src/run/store/RunStore.ts"
import { RunOptions } from "../../../src/run/RunOptions.ts"
import type { Run } from "../../../src/rl/train/Train.ts"

/** Trains an example for fewer steps, and returns its last validation score. */
const scoreAfter = (example: Promise<{ readonly default: Run }>, totalSteps: number) =>
  Effect.gen(function* () {
    const { default: training } = yield* Effect.promise(() => example)
    const settings = { totalSteps, "validation.everySteps": totalSteps, "validation.episodes": 10 }
    const overrides = Object.entries(settings).map(([path, value]) => ({ path, value, source: "test" }))
    const { validation } = yield* training.pipe(
      Effect.provideService(RunOptions, { overrides, source: "example", name: "run" }),
      Effect.provide(Layer.mergeAll(Wasm.layer, RunStore.memory().layer, Recorder.layerSilent)),
    )
    return validation?.meanReturn ?? assert.fail("there was no validation")
  })

describe("examples that learn from data", () => {
  it("have at most 40 lines", () => {
    for (const name of ["minari-cartpole", "iql-pendulum", "dagger-cartpole", "gail-cartpole"]) {
      const text = readFileSync(new URL(`../../../examples/demonstrations/${name}.ts`, import.meta.url), "utf8")
      assert.isAtMost(text.trim().split("\n").length, 40, name)
    }
  })

  it.effect(
    "minari-cartpole.ts learns from the data set that it wrote",
    () =>
      Effect.gen(function* () {
        // Random play has a mean return of about 22.
        assert.isAbove(yield* scoreAfter(import("../../../examples/demonstrations/minari-cartpole.ts"), 10_000), 150)
      }),
    { tags: "slow" },
  )

  it.effect("dagger-cartpole.ts learns from a few answers", () =>
    Effect.gen(function* () {
      assert.isAbove(yield* scoreAfter(import("../../../examples/demonstrations/dagger-cartpole.ts"), 400), 300)
    }),
  )

  it.effect("gail-cartpole.ts trains from its demonstrations", () =>
    Effect.gen(function* () {
      assert.isAbove(yield* scoreAfter(import("../../../examples/demonstrations/gail-cartpole.ts"), 2048), 8)
    }),
  )

  it.effect(
    "iql-pendulum.ts trains from its data",
    () =>
      Effect.gen(function* () {
        assert.isAbove(yield* scoreAfter(import("../../../examples/demonstrations/iql-pendulum.ts"), 2560), -2000)
      }),
    { tags: "slow" },
  )
})
