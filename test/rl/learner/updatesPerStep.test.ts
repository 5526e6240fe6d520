import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import * as Batch from "../../../src/rl/env/Batch.ts"
import * as Env from "../../../src/rl/env/Env.ts"
import { box } from "../../../src/rl/env/Space.ts"
import { constant } from "../../../src/tensor/graph/initialisers.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import { replayFields, type ReplayOptions } from "../../../src/rl/learner/replay/fields.ts"
import { replayExperience, withPriorities } from "../../../src/rl/learner/replay/ReplayExperience.ts"
import { replayLearner } from "../../../src/rl/learner/replay/ReplayLearner.ts"
import { gradientStep } from "../../../src/rl/learner/replay/steps.ts"
import type { Actor } from "../../../src/rl/model/Actor.ts"

const still = Env.make({
  id: "still",
  observationSpace: box(0, 1),
  actionSpace: box(0, 1),
  reset: () => 0,
  observe: () => [0],
  step: () => ({ state: 0, reward: 0, terminated: false }),
})

/** The number of gradient steps in a run of 120 env steps, each of which moves the only weight by −1. */
const gradientSteps = (numEnvs: number, options: ReplayOptions, prioritised = false) =>
  Effect.gen(function* () {
    const actor: Actor = {
      parameters: { w: { shape: [1], init: constant(0) } },
      noiseSize: 1,
      memorySize: 0,
      keeps: [],
      act: ({ noise }) => ({ actions: noise, kept: {} }),
      greedy: ({ observations }) => ({ actions: observations }),
    }
    const { observationSpace, actionSpace } = still
    const task = { observationSpace, actionSpace, numEnvs, totalSteps: 120, seed: 4 }
    const settings = { learningStarts: 0, batchSize: 1, bufferSize: 100, ...options }
    const config = yield* Schema.decodeEffect(Schema.Struct(replayFields))(settings)
    const plain = replayExperience({ name: "count", task, config, actor, networks: {} })
    const experience = withPriorities(plain, prioritised ? { alpha: 0.6, beta: 0.4, epsilon: 1e-6 } : null)
    const learner = yield* replayLearner(experience, {
      learningRates: { learningRate: 1 },
      noiseSize: 0,
      update: ({ batch, networks: { actor: net }, learningRates }) => {
        const { observations, actions, rewards, nextObservations, discounts, importance } = batch
        const read = [observations, actions, nextObservations, rewards, discounts, importance].map((rows) =>
          G.sum(rows),
        )
        const all = read.reduce((sum, one) => G.add(sum, one))
        const loss = G.add(G.sum(net.weights.w), G.mul(G.stopGradient(all), 0))
        const { states } = gradientStep(net, loss, { ...learningRates, maxGradNorm: 0, optimiser: "sgd" })
        return { states, metrics: { loss }, errors: rewards }
      },
    })
    const envs = Batch.make(still, numEnvs)
    envs.reset(1)
    for (let iteration = 0, step = 0; step < task.totalSteps; iteration++) {
      const position = { iteration, step }
      step += yield* learner.rollout(envs, position)
      yield* learner.update(position)
    }
    const { w } = yield* learner.weights
    return -w.data[0]
  }).pipe(Effect.scoped, Effect.provide(Wasm.layer))

describe("the number of gradient steps", () => {
  for (const [text, options, expected] of [
    ["one an env step by default", {}, 120],
    ["one in four env steps", { trainEvery: 4 }, 30],
    ["two in ten env steps", { trainEvery: 10, gradientSteps: 2 }, 24],
    ["as many as env steps with gradientSteps −1", { trainEvery: 6, gradientSteps: -1 }, 120],
  ] as const) {
    it.effect(`is the same with 1 to 12 envs: ${text}`, () =>
      Effect.gen(function* () {
        for (const numEnvs of [1, 2, 3, 4, 8, 12])
          assert.strictEqual(yield* gradientSteps(numEnvs, options), expected, `${numEnvs} envs`)
        assert.strictEqual(yield* gradientSteps(8, options, true), expected, "8 envs, prioritised")
      }),
    )
  }

  it.effect("is refused if the batches of an update would fill the memory", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(gradientSteps(1, { batchSize: 256, gradientSteps: 1_000_000 }))
      assert.match(
        String(error),
        /count: algorithm.gradient_steps: expected at most 16777216 rows in the batches of an update, found gradient_steps 1000000 with batch_size 256, which are 256000000; lower one of them/,
      )
    }),
  )
})
