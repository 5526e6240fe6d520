import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import recurrent from "../../examples/dqn-lstm-cartpole.ts"
import quantiles from "../../examples/qr-dqn-cartpole.ts"
import rainbow from "../../examples/rainbow-cartpole.ts"
import * as Wasm from "../../src/backend/wasm.ts"
import { Recorder } from "../../src/run/record/Recorder.ts"
import { RunStore } from "../../src/run/store/RunStore.ts"
import { RunOptions } from "../../src/train/RunOptions.ts"

describe("examples of DQN's extensions", () => {
  const examples = {
    "qr-dqn-cartpole.ts": quantiles,
    "rainbow-cartpole.ts": rainbow,
    "dqn-lstm-cartpole.ts": recurrent,
  }
  for (const [name, training] of Object.entries(examples)) {
    it.effect(`${name} trains and validates`, () =>
      Effect.gen(function* () {
        const settings = { totalSteps: 1400, "validation.everySteps": 1400, "validation.episodes": 2 }
        const overrides = Object.entries(settings).map(([path, value]) => ({ path, value, source: "test" }))
        const { steps, validation } = yield* training.pipe(
          Effect.provideService(RunOptions, { overrides, source: "example", name: "run" }),
          Effect.provide(Layer.mergeAll(Wasm.layer, RunStore.memory().layer, Recorder.layerSilent)),
        )
        assert.strictEqual(steps, 1400)
        assert.isAbove(validation?.meanReturn ?? 0, 0)
      }),
    )
  }
})
