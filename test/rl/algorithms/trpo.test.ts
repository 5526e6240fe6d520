import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Daac from "../../../src/rl/algorithms/rollouts/Daac.ts"
import * as Trpo from "../../../src/rl/algorithms/rollouts/Trpo.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import * as Batch from "../../../src/rl/env/Batch.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as Env from "../../../src/rl/env/Env.ts"
import { box, discrete } from "../../../src/rl/env/Space.ts"
import type { Algorithm } from "../../../src/rl/learner/Algorithm.ts"
import { learnerOf } from "../../../src/rl/learner/learnerOf.ts"

/** Three levers of which the last one is the best. There is one observation, so the KL divergence has one term. */
const levers = Env.make({
  id: "levers",
  observationSpace: box(-1, 1, [1]),
  actionSpace: discrete(3),
  reset: () => 0,
  observe: () => [0.5],
  step: (state, lever) => ({ state, reward: lever, terminated: true }),
})

type Numbers = Readonly<Record<string, ReadonlyArray<number>>>

/** The weights before and after one update, and its metrics. */
const updated = (algorithm: Algorithm, env: Env.Env) =>
  Effect.gen(function* () {
    const configured = yield* algorithm.configure(algorithm.input, { source: "test" })
    const { observationSpace, actionSpace } = env
    const learner = yield* learnerOf(configured, {
      observationSpace,
      actionSpace,
      numEnvs: 4,
      totalSteps: 1000,
      seed: 1,
    })
    const envs = Batch.make(env, 4)
    envs.reset(1)
    const position = { iteration: 0, step: 0 }
    const weights = Effect.map(learner.weights, (named): Numbers =>
      Object.fromEntries(Object.entries(named).map(([name, { data }]) => [name, [...data]])),
    )
    const before = yield* weights
    yield* learner.rollout(envs, position)
    yield* learner.update(position)
    return { before, after: yield* weights, metrics: learner.metrics() }
  }).pipe(Effect.scoped, Effect.provide(Wasm.layer))

const partOf = (weights: Numbers, network: string): Numbers =>
  Object.fromEntries(Object.entries(weights).filter(([name]) => name.startsWith(`${network}.`)))

const decaying = { name: "adamw", weightDecay: 10 } as const
const small = { hidden: [4], nsteps: 16 }

describe("the critic's phase", () => {
  it.effect("of TRPO leaves the actor alone, also with weight decay", () =>
    Effect.gen(function* () {
      const algorithm = Trpo.make({ ...small, valueMinibatches: 4, maxKl: 1e-12, optimiser: decaying })
      const { before, after } = yield* updated(algorithm, CartPole.env)
      const [first, last] = [before, after].map((weights) => partOf(weights, "actor"))
      for (const [name, numbers] of Object.entries(first))
        for (const [at, number] of numbers.entries()) assert.closeTo(last[name][at], number, 1e-4, name)
      assert.notDeepEqual(partOf(after, "critic"), partOf(before, "critic"))
    }),
  )

  it.effect("of DAAC leaves the actor alone, and the actor's phase the critic", () =>
    Effect.gen(function* () {
      const of = (settings: Daac.DaacOptions) =>
        updated(Daac.make({ ...small, optimiser: decaying, minibatches: 4, ...settings }), CartPole.env)
      const [once, often, passes] = [
        yield* of({ valueEpochs: 1 }),
        yield* of({ valueEpochs: 3 }),
        yield* of({ valueEpochs: 1, advantageCoefficient: 0.5 }),
      ]
      assert.deepStrictEqual(partOf(often.after, "actor"), partOf(once.after, "actor"))
      assert.notDeepEqual(partOf(often.after, "critic"), partOf(once.after, "critic"))
      assert.deepStrictEqual(partOf(passes.after, "critic"), partOf(once.after, "critic"))
      assert.notDeepEqual(partOf(passes.after, "actor"), partOf(once.after, "actor"))
    }),
  )
})

describe("the policy's step of TRPO", () => {
  /** The probabilities of the levers, worked out from the weights. */
  const policyOf = (weights: Numbers): ReadonlyArray<number> => {
    const units = weights["actor.0.bias"].map((bias, unit) => Math.tanh(0.5 * weights["actor.0.weight"][unit] + bias))
    const logits = weights["actor.1.bias"].map((bias, lever) =>
      units.reduce((sum, unit, at) => sum + unit * weights["actor.1.weight"][at * 3 + lever], bias),
    )
    const total = logits.reduce((sum, logit) => sum + Math.exp(logit), 0)
    return logits.map((logit) => Math.exp(logit) / total)
  }

  it.effect("has the divergence KL(π_old ‖ π) that it reports, and makes better actions more probable", () =>
    Effect.gen(function* () {
      const algorithm = Trpo.make({ ...small, gamma: 0.9, lambda: 1, maxKl: 0.3 })
      const { before, after, metrics } = yield* updated(algorithm, levers)
      const [old, next] = [policyOf(before), policyOf(after)]
      const divergence = old.reduce((sum, p, lever) => sum + p * Math.log(p / next[lever]), 0)
      assert.closeTo(metrics["losses/kl"], divergence, 1e-5)
      assert.isAbove(divergence, 0.15)
      assert.isAtMost(divergence, 0.3)
      assert.isAbove(next[2], old[2] + 0.1)
      assert.isBelow(next[0], old[0] - 0.1)
      const reversed = next.reduce((sum, p, lever) => sum + p * Math.log(p / old[lever]), 0)
      assert.isAbove(Math.abs(reversed - divergence), 1e-3)
    }),
  )

  it.effect("improves the policy with a damping of 0 and more iterations than the step needs", () =>
    Effect.gen(function* () {
      const algorithm = Trpo.make({ hidden: [16], nsteps: 64, cgDamping: 0, cgIterations: 25 })
      const { metrics } = yield* updated(algorithm, CartPole.env)
      assert.isAbove(metrics["losses/line_search"], 0)
      assert.isAbove(metrics["losses/kl"], 0.001)
    }),
  )
})
