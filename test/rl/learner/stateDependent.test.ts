import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import * as A2c from "../../../src/rl/algorithms/rollouts/A2c.ts"
import * as Ppo from "../../../src/rl/algorithms/rollouts/Ppo.ts"
import * as Sac from "../../../src/rl/algorithms/replay/Sac.ts"
import * as Tqc from "../../../src/rl/algorithms/replay/Tqc.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as Pendulum from "../../../src/rl/env/classic/Pendulum.ts"
import * as Batch from "../../../src/rl/env/Batch.ts"
import * as Env from "../../../src/rl/env/Env.ts"
import { box } from "../../../src/rl/env/Space.ts"
import type { Algorithm } from "../../../src/rl/learner/Algorithm.ts"
import { drawOf, noiseSharing, Sde } from "../../../src/rl/learner/stateDependent.ts"
import { keep } from "../train/inMemory.ts"
import { learnerOf } from "../../../src/rl/learner/learnerOf.ts"

/** Actions are recorded by an env whose observation stays the same, so equal noise is an equal action. */
const recorded: Array<ReadonlyArray<number>> = []
const still = Env.make({
  id: "still",
  observationSpace: box(-1, 1, [2]),
  actionSpace: box(-1, 1, [2]),
  reset: () => 0,
  observe: () => [0.5, -0.3],
  step: (state, action) => {
    recorded.push(Array.from(action))
    return { state, reward: 0, terminated: false }
  },
})

/** The number of the distinct actions of one env in each of its steps, without updates between them. */
const actionsOf = (algorithm: Algorithm, iterations: number) =>
  Effect.gen(function* () {
    recorded.length = 0
    const configured = yield* algorithm.configure(algorithm.input, { source: "test" })
    const { observationSpace, actionSpace } = still
    const learner = yield* learnerOf(configured, {
      observationSpace,
      actionSpace,
      numEnvs: 2,
      totalSteps: 100,
      seed: 1,
    })
    const envs = Batch.make(still, 2)
    envs.reset(1)
    for (let iteration = 0, step = 0; iteration < iterations; iteration++)
      step += yield* learner.rollout(envs, { iteration, step })
    const seen = new Map<string, number>()
    const numbers = recorded.map((action) => {
      const key = action.join()
      if (!seen.has(key)) seen.set(key, seen.size)
      return seen.get(key) ?? -1
    })
    return [0, 1].map((env) => numbers.filter((_, at) => at % 2 === env))
  }).pipe(Effect.scoped, Effect.provide(Wasm.layer))

const hidden = [4]

describe("state-dependent exploration", () => {
  it.effect(
    "holds an env's noise for sampleFreq steps, and for whole rollouts with −1; each env has its own",
    () =>
      Effect.gen(function* () {
        const sde = { atWarmup: true }
        for (const [algorithm, iterations, expected] of [
          [Ppo.make({ hidden, nsteps: 4, logStdInit: -1, sde: {} }), 2, [0, 0, 0, 0, 2, 2, 2, 2]],
          [
            Ppo.make({ hidden, nsteps: 5, minibatches: 1, logStdInit: -1, sde: { sampleFreq: 2 } }),
            2,
            [0, 0, 2, 2, 4, 6, 6, 8, 8, 10],
          ],
          [A2c.make({ hidden, nsteps: 2, logStdInit: -1, sde: { sampleFreq: 1 } }), 2, [0, 2, 4, 6]],
          [Sac.make({ hidden, trainEvery: 6, sde }), 2, [0, 0, 0, 2, 2, 2]],
          [Sac.make({ hidden, trainEvery: 8, sde: { ...sde, sampleFreq: 2 } }), 2, [0, 0, 2, 2, 4, 4, 6, 6]],
          [Tqc.make({ hidden, trainEvery: 8, sde: { ...sde, sampleFreq: 3 } }), 2, [0, 0, 0, 2, 4, 4, 4, 6]],
        ] as const) {
          const [first, second] = yield* actionsOf(algorithm, iterations)
          assert.deepEqual(first, [...expected])
          assert.deepEqual(
            second,
            expected.map((number) => number + 1),
          )
        }
      }),
    { tags: "slow" },
  )

  it.effect("acts at random in the first steps of SAC unless atWarmup is set", () =>
    Effect.gen(function* () {
      const [first] = yield* actionsOf(Sac.make({ hidden, trainEvery: 8, sde: {} }), 2)
      assert.strictEqual(new Set(first).size, 8)
    }),
  )

  it("numbers its draws without a gap, and none twice", () => {
    for (const sampleFreq of [-1, 1, 2, 3, 5, 7])
      for (const steps of [1, 2, 5, 6]) {
        const sharing = noiseSharing({ noiseRepeat: 1, sde: { ...Schema.decodeSync(Sde)({}), sampleFreq } })
        const draws = Array.from({ length: 4 * steps }, (_, at) =>
          drawOf(sharing, steps, { iteration: Math.floor(at / steps), t: at % steps }),
        )
        assert.deepEqual(
          [...new Set(draws)],
          Array.from({ length: draws[draws.length - 1] + 1 }, (_, at) => at),
        )
        for (let at = 1; at < draws.length; at++) if (at % steps === 0) assert.strictEqual(draws[at], draws[at - 1] + 1)
      }
  })

  it.effect("is refused for choices, with noiseRepeat, and with rollouts in the graph", () =>
    Effect.gen(function* () {
      for (const [env, algorithm, message] of [
        [CartPole.env, Ppo.make({ sde: {} }), "algorithm.sde: expected null, since the actions are no real numbers"],
        [Pendulum.env, A2c.make({ sde: {}, noiseRepeat: 4 }), "algorithm.noise_repeat: expected 1 with algorithm.sde"],
        [Pendulum.env, Sac.make({ sde: {}, noiseRepeat: 4 }), "algorithm.noise_repeat: expected 1 with algorithm.sde"],
        [
          Pendulum.env,
          Ppo.make({ sde: {}, rollouts: "graph" }),
          'algorithm.sde: expected null with algorithm.rollouts "graph"',
        ],
      ] as const) {
        const error = yield* Effect.flip(keep({ env, algorithm, totalSteps: 128 }))
        assert.include(error.message, message)
      }
    }),
  )
})
