import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Gail from "../../../src/rl/algorithms/demonstrations/Gail.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import * as Batch from "../../../src/rl/env/Batch.ts"
import * as Env from "../../../src/rl/env/Env.ts"
import { box } from "../../../src/rl/env/Space.ts"
import type { Demonstrations } from "../../../src/rl/learner/Demonstrations.ts"
import { keep } from "../train/inMemory.ts"
import { learnerOf } from "../../../src/rl/learner/learnerOf.ts"

/** A room with one observation, whose rewards are this factor of the action. It notes the actions that it gets. */
const room = (factor: number, noted: Array<number> = []) =>
  Env.make({
    id: "room",
    observationSpace: box(-1, 1, [1]),
    actionSpace: box(-2, 2, [1]),
    maxSteps: 5,
    reset: () => 0,
    observe: () => [0.5],
    step: (state, [action]) => {
      noted.push(action)
      return { state, reward: factor * action, terminated: false }
    },
  })

/** An expert who always chooses 1.5. */
const shown: Demonstrations = {
  rows: 3,
  observations: Float32Array.of(0.5, 0.5, 0.5),
  actions: Float32Array.of(1.5, 1.5, 1.5),
  returns: [0],
}
const small = { hidden: [4], discriminatorHidden: [], nsteps: 8, learningRate: 0.02 }

type Numbers = Readonly<Record<string, ReadonlyArray<number>>>

/** The weights before and after some iterations, and the metrics of the last one. */
const trained = (factor: number, options: Gail.GailOptions, iterations: number) =>
  Effect.gen(function* () {
    const actions: Array<number> = []
    const env = room(factor, actions)
    const algorithm = Gail.make(shown, { ...small, ...options })
    const configured = yield* algorithm.configure(algorithm.input, { source: "test" })
    const { observationSpace, actionSpace } = env
    const learner = yield* learnerOf(configured, {
      observationSpace,
      actionSpace,
      numEnvs: 4,
      totalSteps: 1e6,
      seed: 1,
    })
    const weights = Effect.map(learner.weights, (named): Numbers =>
      Object.fromEntries(Object.entries(named).map(([name, { data }]) => [name, [...data]])),
    )
    const before = yield* weights
    const envs = Batch.make(env, 4)
    envs.reset(1, "env")
    for (let iteration = 0; iteration < iterations; iteration++) {
      learner.metrics()
      yield* learner.rollout(envs, { iteration, step: iteration * 32 })
      yield* learner.update({ iteration, step: iteration * 32 })
    }
    return { before, after: yield* weights, metrics: learner.metrics(), actions }
  }).pipe(Effect.scoped, Effect.provide(Wasm.layer))

describe("GAIL", () => {
  it.effect("rewards steps by the discriminator as it was before it learnt from them", () =>
    Effect.gen(function* () {
      const once = { discriminatorMinibatches: 1, epochs: 1, minibatches: 1 }
      const { before, metrics, actions } = yield* trained(1, { reward: "logit", ...once }, 1)
      // The demonstrations' only observation is scaled to 0, and an action of ±2 to ±1.
      const [, slope] = before["discriminator.0.weight"]
      const logits = actions.map((action) => (slope * action) / 2)
      const meanOf = (numbers: ReadonlyArray<number>) => numbers.reduce((sum, one) => sum + one, 0) / numbers.length
      const softplus = (x: number) => Math.log1p(Math.exp(x))
      assert.strictEqual(logits.length, 32)
      assert.closeTo(metrics["charts/intrinsic_reward"], meanOf(logits), 1e-4)
      const expected = softplus((-slope * 1.5) / 2) + meanOf(logits.map(softplus))
      assert.closeTo(metrics["losses/discriminator_loss"], expected, 1e-4)
      assert.strictEqual(metrics["charts/expert_accuracy"], slope > 0 ? 1 : 0)
    }),
  )

  it.effect("does not read the env's rewards", () =>
    Effect.gen(function* () {
      const { after } = yield* trained(1, {}, 3)
      assert.deepStrictEqual((yield* trained(-7, {}, 3)).after, after)
    }),
  )

  it.effect("moves the policy to the expert's actions, for each form of the reward", () =>
    Effect.gen(function* () {
      for (const reward of ["positive", "negative", "logit"] as const) {
        const { before, after } = yield* trained(-1, { reward, entropyCoefficient: 0 }, 40)
        const bias = ({ "actor.1.bias": [mean] }: Numbers): number => mean
        assert.isAbove(bias(after), bias(before) + 0.2, reward)
      }
    }),
  )

  const problems: Readonly<Record<string, readonly [Parameters<typeof keep>[0], string]>> = {
    "demonstrations of another env": [
      {
        env: room(1),
        algorithm: Gail.make({ ...shown, actions: Float32Array.of(1, 2, 3, 4, 5, 6) }),
        totalSteps: 400,
      },
      "gail: the data are of another env: an action has 2 numbers in the data and 1 in the env",
    ],
    "normalised observations": [
      { env: room(1), algorithm: Gail.make(shown), totalSteps: 400, normalize: { observations: true } },
      'normalize.observations: expected false with algorithm "gail"',
    ],
    "normalised rewards": [
      { env: room(1), algorithm: Gail.make(shown), totalSteps: 400, normalize: { rewards: true } },
      'normalize.rewards: expected false with algorithm "gail"',
    ],
  }
  for (const [what, [input, message]] of Object.entries(problems)) {
    it.effect(`refuses ${what}`, () =>
      Effect.gen(function* () {
        assert.include((yield* Effect.flip(keep(input))).message, message)
      }),
    )
  }
})
