import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as Dqn from "../../../src/rl/algorithms/replay/Dqn.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import * as safetensors from "../../../src/base/formats/safetensors.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as Wrapper from "../../../src/rl/env/Wrapper.ts"
import { RunStore } from "../../../src/run/store/RunStore.ts"
import { Recorder } from "../../../src/run/record/Recorder.ts"
import * as Train from "../../../src/rl/train/Train.ts"

const [numEnvs, bufferSize] = [2, 40]

describe("prioritised replay", () => {
  /** The places of the steps that have a priority, after some steps, are those of complete draws in a ring of this length. */
  const checkPlaces = Effect.fnUntraced(function* (
    settings: Parameters<typeof Dqn.make>[0],
    { stepsPerEnv, span, stride }: Readonly<Record<"stepsPerEnv" | "span" | "stride", number>>,
  ) {
    for (const totalSteps of [20, 40, 60, 98]) {
      const store = RunStore.memory()
      const result = yield* Train.run({
        env: Wrapper.timeLimit(CartPole.env, 7),
        numEnvs,
        totalSteps,
        algorithm: Dqn.make({ hidden: [8], batchSize: 4, learningStarts: 8, bufferSize, prioritised: {}, ...settings }),
      }).pipe(Effect.provide(Layer.mergeAll(Wasm.layer, store.layer, Recorder.layerSilent)))
      const path =
        [...store.files.keys()]
          .filter((file) => file.endsWith("/replay.safetensors"))
          .sort()
          .at(-1) ?? ""
      const saved = safetensors.decode(store.files.get(path) ?? new Uint8Array(0))
      const steps = result.steps / numEnvs
      for (let env = 0; env < numEnvs; env++) {
        const priorities = saved[`priorities.${env}`]
        if (priorities === undefined) return assert.fail("the priorities are saved")
        const drawable = Array.from({ length: stepsPerEnv }, (_, step) => Number(priorities.data[step] ?? 0) > 0)
        const head = steps % stepsPerEnv
        const held = Math.min(steps, stepsPerEnv - 1)
        const expected = Array.from({ length: stepsPerEnv }, (_, step) => {
          const age = (head - step + stepsPerEnv) % stepsPerEnv
          return step % stride === 0 && age >= span && age <= held
        })
        assert.deepEqual(drawable, expected, `${steps} steps, env ${env}`)
      }
    }
  })

  it.effect("draws complete transitions only: not the current step, and none whose later steps are missing", () =>
    checkPlaces({ nsteps: 3 }, { stepsPerEnv: bufferSize / numEnvs + 3, span: 3, stride: 1 }),
  )

  it.effect(
    "draws complete sequences only, which begin at every half sequence",
    () =>
      // A sequence needs 2 + 8 + 2 − 1 steps after its first one; 20 + 11 steps are rounded up to a multiple of 4.
      checkPlaces({ nsteps: 2, lstm: 4, sequence: 8, burnIn: 2 }, { stepsPerEnv: 32, span: 11, stride: 4 }),
    { tags: "slow" },
  )
})
