import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import { Recorder } from "../../../src/run/record/Recorder.ts"
import { RunStore } from "../../../src/run/store/RunStore.ts"
import { RunOptions } from "../../../src/run/RunOptions.ts"
import type { Run } from "../../../src/rl/train/Train.ts"

/** Runs the training of an example for fewer steps, twice: with an interruption that a resume goes over, and without. */
const shortened = (training: Run, settings: Readonly<Record<string, unknown>>) =>
  Effect.gen(function* () {
    const overrides = Object.entries(settings).map(([path, value]) => ({ path, value, source: "test" }))
    const within = (layer: Layer.Layer<RunStore>) =>
      training.pipe(
        Effect.provideService(RunOptions, { overrides, source: "example", name: "run" }),
        Effect.provide(Layer.mergeAll(Wasm.layer, layer, Recorder.layerSilent)),
      )
    const store = RunStore.memory()
    const whole = yield* within(store.layer)
    const steps = [...store.files.keys()].flatMap((path) => {
      const step = /checkpoints\/step_(\d+)\//.exec(path)?.[1]
      return step === undefined ? [] : [Number(step)]
    })
    const first = Math.min(...steps)
    const left = new Map([...store.files].filter(([path]) => !isAfter(path, first)))
    const resumed = yield* within(RunStore.memory({ files: left, resume: whole.runDir }).layer)
    return { whole, resumed }
  })

const isAfter = (path: string, step: number): boolean => Number(/checkpoints\/step_(\d+)\//.exec(path)?.[1]) > step

describe("examples of parts of one's own", () => {
  it.effect("own-algorithm.ts trains, validates, and resumes to the same bits", () =>
    Effect.gen(function* () {
      const { default: training } = yield* Effect.promise(() => import("../../../examples/own-parts/own-algorithm.ts"))
      const settings = { totalSteps: 3200, "validation.everySteps": 1600, "checkpoint.strategy": keepAll }
      const { whole, resumed } = yield* shortened(training, settings)
      assert.strictEqual(whole.steps, 3200)
      assert.strictEqual(whole.validation?.step, 3200)
      assert.strictEqual(resumed.digest, whole.digest)
    }),
  )

  it.effect(
    "own-network.ts trains, and resumes to the same bits",
    () =>
      Effect.gen(function* () {
        const { default: training } = yield* Effect.promise(() => import("../../../examples/own-parts/own-network.ts"))
        const settings = { totalSteps: 2048, "validation.everySteps": 1024, "checkpoint.strategy": keepAll }
        const { whole, resumed } = yield* shortened(training, settings)
        assert.strictEqual(whole.steps, 2048)
        assert.strictEqual(resumed.digest, whole.digest)
      }),
    { tags: "slow" },
  )

  it.effect("own-loss.ts learns from what it is shown, and resumes to the same bits", () =>
    Effect.gen(function* () {
      const { default: training } = yield* Effect.promise(() => import("../../../examples/own-parts/own-loss.ts"))
      const settings = { totalSteps: 4096, "validation.everySteps": 2048, "checkpoint.strategy": keepAll }
      const { whole, resumed } = yield* shortened(training, settings)
      assert.strictEqual(resumed.digest, whole.digest)
      const without = yield* shortened(training, { ...settings, "algorithm.loss": null })
      assert.notStrictEqual(without.whole.digest, whole.digest)
    }),
  )

  it.effect(
    "own-callback.ts steers, and resumes to the same bits",
    () =>
      Effect.gen(function* () {
        const { default: training } = yield* Effect.promise(() => import("../../../examples/own-parts/own-callback.ts"))
        const settings = { totalSteps: 8192, "validation.everySteps": 1024, "checkpoint.strategy": keepAll }
        const { whole, resumed } = yield* shortened(training, settings)
        assert.strictEqual(whole.validation?.step, whole.steps)
        assert.strictEqual(resumed.digest, whole.digest)
      }),
    { tags: "slow" },
  )
})

const keepAll = { _tag: "LastN", keep: 0 }
