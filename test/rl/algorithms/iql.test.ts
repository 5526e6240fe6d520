import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Bc from "../../../src/rl/algorithms/demonstrations/Bc.ts"
import * as Iql from "../../../src/rl/algorithms/demonstrations/Iql.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import * as Batch from "../../../src/rl/env/Batch.ts"
import * as Env from "../../../src/rl/env/Env.ts"
import { box, discrete } from "../../../src/rl/env/Space.ts"
import type { Algorithm } from "../../../src/rl/learner/Algorithm.ts"
import type { Transitions } from "../../../src/rl/learner/transitions/Transitions.ts"
import { learnerOf } from "../../../src/rl/learner/learnerOf.ts"

/** Two levers in a room with one observation; only the second one gives a reward. */
const levers = Env.make({
  id: "levers",
  observationSpace: box(-1, 1, [1]),
  actionSpace: discrete(2),
  reset: () => 0,
  observe: () => [0.5],
  step: (state, lever) => ({ state, reward: lever, terminated: true }),
})

/** Episodes of one step each, with these actions. */
const dataOf = (
  actions: ReadonlyArray<number>,
  { rewards = actions, next = 0.5, terminated = 1 } = {},
): Transitions => ({
  rows: actions.length,
  observations: Float32Array.from(actions, () => 0.5),
  actions: Int32Array.from(actions),
  rewards: Float32Array.from(rewards),
  returns: rewards,
  lengths: Int32Array.from(actions, () => 1),
  terminated: Uint8Array.from(actions, () => terminated),
  finalObservations: Float32Array.from(actions, () => next),
})

type Numbers = Readonly<Record<string, ReadonlyArray<number>>>

/** The weights before and after some updates, and the mean metrics. */
const updated = (algorithm: Algorithm, updates: number) =>
  Effect.gen(function* () {
    const configured = yield* algorithm.configure(algorithm.input, { source: "test" })
    const { observationSpace, actionSpace } = levers
    const learner = yield* learnerOf(configured, {
      observationSpace,
      actionSpace,
      numEnvs: 1,
      totalSteps: 1e6,
      seed: 1,
    })
    const weights = Effect.map(learner.weights, (named): Numbers =>
      Object.fromEntries(Object.entries(named).map(([name, { data }]) => [name, [...data]])),
    )
    const before = yield* weights
    const envs = Batch.make(levers, 1)
    for (let iteration = 0; iteration < updates; iteration++) {
      yield* learner.rollout(envs, { iteration, step: 0 })
      yield* learner.update({ iteration, step: 0 })
    }
    return { before, after: yield* weights, metrics: learner.metrics() }
  }).pipe(Effect.scoped, Effect.provide(Wasm.layer))

/** The outputs of a linear layer for an observation and what else it reads. */
const linear = (weights: Numbers, name: string, inputs: ReadonlyArray<number>): ReadonlyArray<number> =>
  weights[`${name}.bias`].map((bias, out) =>
    inputs.reduce(
      (sum, one, at) => sum + one * weights[`${name}.weight`][at * weights[`${name}.bias`].length + out],
      bias,
    ),
  )

describe("IQL", () => {
  it.effect(
    "takes V after its own step for the advantage and for the critics' target, as Algorithm 1 of the paper",
    () =>
      Effect.gen(function* () {
        const data = dataOf([1], { rewards: [0.3], next: -0.8, terminated: 0 })
        const settings = { hidden: [], batchSize: 4, learningRate: 0.1, gamma: 0.9, rewardScale: 2 }
        const { before, after, metrics } = yield* updated(Iql.make(data, settings), 1)
        const value = (weights: Numbers, observation: number) => linear(weights, "value.0", [observation])[0]
        const q = ["critic1.0", "critic2.0"].map((name) => linear(before, name, [0.5, 0, 1])[0])
        const target = 2 * 0.3 + 0.9 * value(after, -0.8)
        assert.closeTo(metrics["losses/critic_loss"], (q[0] - target) ** 2 + (q[1] - target) ** 2, 1e-5)
        const advantage = Math.min(...q) - value(after, 0.5)
        assert.closeTo(metrics["charts/weight"], Math.exp(3 * advantage), 1e-4)
        const difference = Math.min(...q) - value(before, 0.5)
        assert.closeTo(metrics["losses/value_loss"], (difference < 0 ? 0.3 : 0.7) * difference ** 2, 1e-5)
        assert.isAbove(Math.abs(value(after, 0.5) - value(before, 0.5)), 0.05)
      }),
  )

  it.effect("prefers the better of two actions, where behaviour cloning prefers the more frequent one", () =>
    Effect.gen(function* () {
      const data = dataOf([0, 0, 0, 1, 0, 0, 0, 1])
      const settings = { hidden: [], batchSize: 32, learningRate: 0.02 }
      const preference = ({ after }: { readonly after: Numbers }) => {
        const [first, second] = linear(after, "actor.0", [0.5])
        return second - first
      }
      const options = { ...settings, rewardScale: 1, expectile: 0.9, beta: 10 }
      assert.isAbove(preference(yield* updated(Iql.make(data, options), 400)), 0.5)
      assert.isBelow(preference(yield* updated(Bc.make(data, settings), 400)), -0.5)
    }),
  )
})
