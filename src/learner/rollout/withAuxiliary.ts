import { Effect } from "effect"
import type { TensorData } from "../../backend/Backend.ts"
import type { Declarations } from "../../model/trunk.ts"
import type { NamedArrays } from "../Algorithm.ts"
import type { Columns } from "../Batch.ts"
import type { Experience, FeatureInput } from "./Experience.ts"

/**
 * Tasks that the network learns besides the main one, from a memory of earlier rollouts. Their loss, which reads `columns`,
 * is added to the algorithm's loss.
 */
export interface Auxiliary<C extends Columns, Own extends Columns> {
  readonly parameters: Declarations
  /** The columns that the loss reads; they are the same for all minibatches of an update. */
  readonly columns: Own
  readonly start: (learner: FeatureInput<C>) => AuxiliaryMemory
}

export interface AuxiliaryMemory {
  /** Stores the rollout that was just played in the memory. */
  readonly remember: () => void
  /** Fills the auxiliary's columns for an update. */
  readonly prepare: (iteration: number, feeds: Readonly<Record<string, TensorData>>) => void
  readonly state: () => NamedArrays
  readonly restore: (arrays: NamedArrays) => void
}

/**
 * Adds auxiliary tasks to an experience.
 *
 * @example
 * ```ts
 * const plain = Learner.experience({ name: "replaying", task, actor: network, steps: 5, returns: () => {} })
 * const columns = { replayedRewards: Learner.perUpdate(Learner.f32(32)) }
 * const memory = { remember: () => {}, prepare: () => {}, state: () => ({}), restore: () => {} }
 * withAuxiliary(plain, { parameters: {}, columns, start: () => memory }).columns.replayedRewards
 * ```
 */
export const withAuxiliary = <C extends Columns, Own extends Columns>(
  experience: Experience<C>,
  { parameters, columns, start }: Auxiliary<C, Own>,
): Experience<C & Own> => ({
  ...experience,
  columns: { ...experience.columns, ...columns },
  parameters: { ...experience.parameters, ...parameters },
  features: [
    ...experience.features,
    (learner) =>
      Effect.sync(() => {
        const { remember, prepare, state, restore } = start(learner)
        return {
          afterRollout: remember,
          beforeUpdate: prepare,
          state: Effect.sync(() => ({ replay: state() })),
          restore: (files) => files.use("replay", restore),
        }
      }),
  ],
})
