/** Describes on-policy learners as plain values: an experience with an update. `learnerOf.ts` compiles them. */
import type { Schedule } from "../../../tensor/graph/schedules.ts"
import type { Columns } from "../Batch.ts"
import type { Experience } from "./Experience.ts"
import type { AnyPhase } from "./Phase.ts"
import type { BaseColumns } from "./RolloutData.ts"

/** Describes how a learner learns from each rollout. */
export interface RolloutUpdate<C> {
  /** The learning rate as a function of the run's progress, from 0 to 1. */
  readonly learningRate: Schedule
  /** The parts of an update, in the order in which they run; most algorithms have one. */
  readonly phases: ReadonlyArray<AnyPhase<C>>
  /** Where rollouts are played: in JavaScript, or in one program of the backend (`GraphLearner.ts`). `envs` by default. */
  readonly rollouts?: "envs" | "graph" | undefined
}

/**
 * The description of an on-policy learner: an experience with an update. It needs no backend; `learnerOf` compiles it.
 */
export interface DescribedLearner {
  readonly _tag: "DescribedLearner"
  /** Calls `body` with the experience and the update. So the type of their columns need not be known outside. */
  readonly use: <A>(
    make: <C extends BaseColumns & Columns>(experience: Experience<C>, update: RolloutUpdate<C>) => A,
  ) => A
}

/**
 * Describes the learner of an on-policy algorithm. In each iteration it plays a rollout with the current policy, turns rewards
 * into advantages and value targets, learns from that rollout, and discards it.
 *
 * @example
 * ```ts
 * const returns = { gamma: 0.99, lambda: 1 }
 * const plain = Learner.experience({ name: "critic", task, actor: network, steps: 100, returns })
 * const loss = ({ batch, weights }: Learner.Minibatch<Learner.BaseColumns>): Learner.Loss => {
 *   const { value } = network.evaluate(weights, batch.observations)
 *   return { loss: Losses.valueLoss({ v_t: value, target_t: batch.targets }), metrics: {} }
 * }
 * const phase = { name: "update", epochs: 1, minibatches: 1, maxGradNorm: 0.5, optimiser: Optimisers.adam }
 * rolloutLearner(plain, { learningRate: Schedules.linear(7e-4), phases: [{ ...phase, loss }] })
 * ```
 */
export const rolloutLearner = <C extends BaseColumns & Columns>(
  experience: Experience<C>,
  update: RolloutUpdate<C>,
): DescribedLearner => ({ _tag: "DescribedLearner", use: (make) => make(experience, update) })
