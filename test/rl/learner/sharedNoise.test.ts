import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import * as Batch from "../../../src/rl/env/Batch.ts"
import * as Env from "../../../src/rl/env/Env.ts"
import { box } from "../../../src/rl/env/Space.ts"
import { constant } from "../../../src/tensor/graph/initialisers.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import { replayFields } from "../../../src/rl/learner/replay/fields.ts"
import { replayExperience } from "../../../src/rl/learner/replay/ReplayExperience.ts"
import { replayLearner } from "../../../src/rl/learner/replay/ReplayLearner.ts"
import { gradientStep } from "../../../src/rl/learner/replay/steps.ts"
import type { Actor } from "../../../src/rl/model/Actor.ts"

const still = Env.make({
  id: "still",
  observationSpace: box(0, 1),
  actionSpace: box(0, 1, [5]),
  reset: () => 0,
  observe: () => [0],
  step: () => ({ state: 0, reward: 0, terminated: false }),
})

const numEnvs = 3

/** Acts by its noise, so that the replay buffer holds it; returns the noise of each env in three steps. */
const noiseOf = (sharedNoiseSize: number) =>
  Effect.gen(function* () {
    const actor: Actor = {
      parameters: { w: { shape: [1], init: constant(0) } },
      noiseSize: 5,
      sharedNoiseSize,
      memorySize: 0,
      keeps: [],
      act: ({ noise }) => ({ actions: noise, kept: {} }),
      greedy: ({ observations }) => ({ actions: observations }),
    }
    const task = {
      observationSpace: still.observationSpace,
      actionSpace: still.actionSpace,
      numEnvs,
      totalSteps: 9,
      seed: 4,
    }
    const config = yield* Schema.decodeEffect(Schema.Struct(replayFields))({
      learningStarts: 0,
      batchSize: 1,
      trainEvery: 9,
    })
    const learner = yield* replayLearner(replayExperience({ name: "noise", task, config, actor, networks: {} }), {
      learningRates: { learningRate: 1 },
      noiseSize: 0,
      update: ({ batch, networks: { actor: net }, learningRates }) => {
        const { observations, actions, rewards, nextObservations, discounts } = batch
        const read = [observations, actions, nextObservations].map((rows) => G.sum(rows))
        const all = [...read, G.sum(rewards), G.sum(discounts)].reduce((sum, one) => G.add(sum, one))
        const loss = G.add(G.sum(net.weights.w), G.stopGradient(all))
        const { states } = gradientStep(net, loss, { ...learningRates, maxGradNorm: 0 })
        return { states, metrics: { loss } }
      },
    })
    const envs = Batch.make(still, numEnvs)
    envs.reset(1)
    yield* learner.rollout(envs, { iteration: 0, step: 0 })
    const { replay } = yield* learner.state
    // A row of the buffer is an observation, the 5 numbers of an action, a reward and a flag.
    return Array.from({ length: numEnvs }, (_, env) =>
      Array.from({ length: 3 }, (_, step) =>
        Array.from(replay[`rows.${env}`].data.subarray(step * 8 + 1, step * 8 + 6)),
      ),
    )
  }).pipe(Effect.scoped, Effect.provide(Wasm.layer))

describe("the noise of an actor", () => {
  it.effect(
    "is drawn once for all envs where they share it",
    () =>
      Effect.gen(function* () {
        const [shared, own] = [yield* noiseOf(3), yield* noiseOf(0)]
        for (let step = 0; step < 3; step++) {
          for (let env = 0; env < numEnvs; env++) {
            const drawn = shared[env][step].filter((number) => number !== 0).length
            assert.strictEqual(drawn, env === 0 ? 5 : 2, `env ${env}, step ${step}`)
            assert.strictEqual(new Set(own[env][step]).size, 5)
          }
          // The first row has the numbers that it would have if nothing were shared.
          assert.deepEqual(shared[0][step], own[0][step])
          assert.strictEqual(new Set(shared.flatMap((rows) => rows[step])).size, 5 + 2 + 2 + 1)
        }
      }),
    { tags: "slow" },
  )
})
