import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Wasm from "../../../../src/tensor/backend/wasm.ts"
import * as CartPole from "../../../../src/rl/env/classic/CartPole.ts"
import * as Graph from "../../../../src/tensor/graph/ops.ts"
import { sgd } from "../../../../src/tensor/graph/optimisers.ts"
import { constant } from "../../../../src/tensor/graph/schedules.ts"
import type { Tensor } from "../../../../src/tensor/graph/Tensor.ts"
import type { Columns } from "../../../../src/rl/learner/Batch.ts"
import { type Experience, experience } from "../../../../src/rl/learner/rollout/Experience.ts"
import type { BaseColumns } from "../../../../src/rl/learner/rollout/RolloutData.ts"
import { makeRolloutLearner } from "../../../../src/rl/learner/rollout/RolloutLearner.ts"
import type { Minibatch } from "../../../../src/rl/learner/rollout/Phase.ts"
import { withBonus } from "../../../../src/rl/learner/rollout/withBonus.ts"
import { withTarget } from "../../../../src/rl/learner/rollout/features.ts"
import { actorCritic } from "../../../../src/rl/model/ActorCritic.ts"

const task = { ...CartPole.env, numEnvs: 2, totalSteps: 100, seed: 1 }
const network = (lstm: number) => actorCritic({ ...task, hidden: [4], activation: "tanh", convolutions: null, lstm })

const plain = (lstm = 0) =>
  experience({
    name: "test",
    task,
    actor: network(lstm),
    steps: 4,
    returns: { gamma: 0.9, lambda: 1 },
  })

const change = withBonus(plain(), {
  parameters: {},
  surprise: ({ batch }) => Graph.mean(Graph.square(Graph.sub(batch.nextObservations, batch.observations)), 1),
  reward: { kind: "added", coefficient: 0.1 },
})

const learnerOf = <C extends BaseColumns & Columns>(
  from: Experience<C>,
  of: (minibatch: Minibatch<C>) => Tensor,
  minibatches = 2,
) =>
  makeRolloutLearner(from, {
    learningRate: constant(0.1),
    phases: [
      {
        name: "update",
        epochs: 1,
        minibatches,
        maxGradNorm: 0,
        loss: (minibatch) => ({ loss: of(minibatch), metrics: {} }),
        optimiser: sgd,
      },
    ],
  }).pipe(Effect.scoped, Effect.provide(Wasm.layer))

describe("a rollout learner", () => {
  it("does not compile with a loss that reads a column which its experience lacks", () => {
    const losses = [
      () => learnerOf(plain(), ({ batch }) => Graph.mean(batch.logProbs)),
      () => learnerOf(change, ({ batch }) => Graph.mean(batch.nextObservations)),
      // @ts-expect-error the column is called "advantages"
      () => learnerOf(plain(), ({ batch }) => Graph.mean(batch.advantage)),
      // @ts-expect-error only a bonus adds the next observations
      () => learnerOf(plain(), ({ batch }) => Graph.mean(batch.nextObservations)),
    ]
    assert.strictEqual(losses.length, 4)
  })

  it.effect("keeps in its state what each feature resumes from", () =>
    Effect.gen(function* () {
      const loss = ({ weights }: Minibatch<BaseColumns>) => Graph.mean(weights["actor.0.weight"])
      const keysOf = (learner: Effect.Success<ReturnType<typeof learnerOf>>) =>
        Effect.map(learner.state, ({ learner = {} }) => Object.keys(learner))
      assert.deepStrictEqual(yield* Effect.flatMap(learnerOf(plain(), loss), keysOf), [])
      const targeted = yield* learnerOf(withTarget(plain(), 10), loss)
      assert.strictEqual(targeted.target?.everySteps, 10)
      assert.deepStrictEqual(yield* keysOf(targeted), ["target"])
      assert.deepStrictEqual(yield* Effect.flatMap(learnerOf({ ...plain(3), sequence: 2 }, loss, 1), keysOf), [
        "memory",
        "fresh",
      ])
    }),
  )

  it.effect("refuses minibatches that do not divide the rollout, before anything is compiled", () =>
    Effect.gen(function* () {
      const loss = ({ batch }: Minibatch<BaseColumns>) => Graph.mean(batch.values)
      const { message } = yield* Effect.flip(learnerOf(plain(), loss, 3))
      assert.include(message, "minibatches: expected a divisor of a rollout's 2 envs × 4 steps = 8 rows, found 3")
    }),
  )
})
