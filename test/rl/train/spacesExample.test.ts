import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import training from "../../../examples/own-parts/spaces.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import { Recorder } from "../../../src/run/record/Recorder.ts"
import { RunStore } from "../../../src/run/store/RunStore.ts"
import { RunOptions } from "../../../src/run/RunOptions.ts"

describe("examples/own-parts/spaces.ts", () => {
  it("has at most 40 lines", () => {
    const text = readFileSync(new URL("../../../examples/own-parts/spaces.ts", import.meta.url), "utf8")
    assert.isAtMost(text.trim().split("\n").length, 40)
  })

  it.effect(
    "learns from a map, a list of numbers and a mask",
    () =>
      Effect.gen(function* () {
        const settings = { totalSteps: 120_000, "validation.everySteps": 60_000 }
        const overrides = Object.entries(settings).map(([path, value]) => ({ path, value, source: "test" }))
        const { validation, meanReturn } = yield* training.pipe(
          Effect.provideService(RunOptions, { overrides, source: "example", name: "run" }),
          Effect.provide(Layer.mergeAll(Wasm.layer, RunStore.memory().layer, Recorder.layerSilent)),
        )
        // A random walk to either house has a mean return of about −0.1.
        assert.isAbove(validation?.meanReturn ?? -1, 0.3, `training: ${meanReturn}`)
      }),
    { tags: "slow" },
  )
})
