import { sizeOf } from "../../env/Space.ts"
import type { Task } from "../Algorithm.ts"
import { actionColumn, f32 } from "../Batch.ts"

/** Declares the columns of a batch of transitions. A program gets only those that its update reads. */
export const replayColumns = ({ observationSpace, actionSpace }: Task, noiseSize: number) => ({
  observations: f32(sizeOf(observationSpace)),
  /** The actions that the env took. */
  actions: actionColumn(actionSpace),
  /** The discounted sum of the transition's rewards. */
  rewards: f32(),
  nextObservations: f32(sizeOf(observationSpace)),
  /** The factor of the next observation's value: γⁿ, or 0 where the episode terminated. */
  discounts: f32(),
  /** The importance weight of the transition; only an experience made by `withPriorities` has this column. */
  importance: f32(),
  /** Uniform random numbers in [0, 1). */
  noise: f32(noiseSize),
})
export type ReplayColumns = ReturnType<typeof replayColumns>
