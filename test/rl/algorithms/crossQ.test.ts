import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as CrossQ from "../../../src/rl/algorithms/replay/CrossQ.ts"
import * as safetensors from "../../../src/base/formats/safetensors.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as Pendulum from "../../../src/rl/env/classic/Pendulum.ts"
import { box } from "../../../src/rl/env/Space.ts"
import * as Env from "../../../src/rl/env/Env.ts"
import { keep } from "../train/inMemory.ts"

const small = { hidden: [8], criticHidden: [8], batchSize: 16, learningStarts: 20, bufferSize: 200 }

const filesOf = (totalSteps: number, options: CrossQ.CrossQOptions = {}) =>
  Effect.map(
    keep({ env: Pendulum.env, algorithm: CrossQ.make({ ...small, ...options }), numEnvs: 1, totalSteps }),
    (run) => {
      const last = (file: string) =>
        [...run.files.keys()]
          .filter((path) => path.endsWith(file))
          .sort()
          .at(-1) ?? ""
      return {
        result: run.result,
        weights: safetensors.decode(run.files.get(last("/weights.safetensors")) ?? new Uint8Array(0)),
        optimizer: safetensors.decode(run.files.get(last("/optimizer.safetensors")) ?? new Uint8Array(0)),
      }
    },
  )

describe("CrossQ", () => {
  it.effect("has no target networks; its layers count the batches that they learned from", () =>
    Effect.gen(function* () {
      const { weights, optimizer } = yield* filesOf(50, { policyDelay: 3 })
      assert.deepEqual(
        Object.keys(optimizer).filter((name) => name.startsWith("target.")),
        [],
      )
      // 30 updates follow the steps 21 to 50; the actor learns in every third of them.
      assert.deepEqual([...weights["critic1.norm0.batches"].data], [30])
      assert.deepEqual([...weights["critic2.norm1.batches"].data], [30])
      assert.deepEqual([...weights["actor.norm0.batches"].data], [10])
      assert.isTrue([...weights["critic1.norm0.mean"].data].every(Number.isFinite))
    }),
  )

  it.effect("keeps the statistics out of the reach of optimisers that decay weights", () =>
    Effect.gen(function* () {
      const { weights } = yield* filesOf(50, { optimiser: { name: "adamw", weightDecay: 10 } })
      assert.deepEqual([...weights["critic1.norm0.batches"].data], [30])
    }),
  )

  it.effect("refuses choices and images", () =>
    Effect.gen(function* () {
      const refusal = (env: typeof CartPole.env) =>
        Effect.map(Effect.flip(keep({ env, algorithm: CrossQ.make(small), totalSteps: 50 })), ({ message }) => message)
      assert.include(yield* refusal(CartPole.env), "cross-q")
      const painter = Env.make({
        id: "painter",
        observationSpace: box(0, 1, [1, 8, 8]),
        actionSpace: box(-1, 1),
        reset: () => 0,
        observe: () => new Float32Array(64),
        step: (state) => ({ state, reward: 0, terminated: false }),
      })
      const error = yield* Effect.flip(keep({ env: painter, algorithm: CrossQ.make(small), totalSteps: 50 }))
      assert.include(error.message, "has no layers for images")
    }),
  )
})
