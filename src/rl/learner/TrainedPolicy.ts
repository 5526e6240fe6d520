/** Describes the policy in a checkpoint with its weights, for programs outside of the run. `validate` returns it. */
import type { Constants } from "../env/Normalise.ts"
import type { ActionSpace, RowSpace } from "../env/Space.ts"
import type { PolicyGraph } from "./Learner.ts"

export interface TrainedPolicy extends PolicyGraph {
  readonly algorithm: string
  readonly env: string
  /** The step of the run at which the policy was saved. */
  readonly step: number
  /** The space of the rows that the policy reads: observations, with action masks after them if the env has any. */
  readonly observationSpace: RowSpace
  readonly actionSpace: ActionSpace
  /** The numbers by which the training normalised observations before the policy read them. */
  readonly normalisation: Constants | undefined
}
