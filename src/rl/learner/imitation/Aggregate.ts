/**
 * Holds a growing set of demonstrations: DAgger adds the states that it visits with the expert's actions, and learns
 * from all.
 */
import { sizeOf } from "../../env/Space.ts"
import type { Task } from "../Learner.ts"
import type { NamedArrays } from "../../../tensor/graph/Parameters.ts"
import { misfit } from "../learnerState.ts"
import { GrowingRows } from "../rollout/Rollout.ts"

/** Returns the bytes of the demonstrations of a whole run. */
export const aggregateBytes = ({ observationSpace, actionSpace, totalSteps }: Task): number =>
  totalSteps * (sizeOf(observationSpace) + sizeOf(actionSpace)) * 4

/** Makes an empty set of demonstrations for the observations and actions of a task. */
export const makeAggregate = ({ observationSpace, actionSpace, numEnvs }: Task) => {
  const columns = { observations: sizeOf(observationSpace), actions: sizeOf(actionSpace) }
  const observations = new GrowingRows(columns.observations, 1024)
  const actions = new GrowingRows(columns.actions, 1024)

  /** Adds a row of each of the arrays. */
  const add = (observed: ArrayLike<number>, labels: ArrayLike<number>, row: number): void => {
    observations.add(observed, row * columns.observations)
    actions.add(labels, row * columns.actions)
  }
  return {
    rows: (): number => observations.count,
    /** Adds the current observations of all envs, with the labels of each. */
    add: (observed: Float32Array, labels: Float32Array | Int32Array): void => {
      for (let env = 0; env < numEnvs; env++) add(observed, labels, env)
    },
    /** The demonstrations so far. Choices are whole numbers here, too, although the array has floats. */
    contents: (): { readonly observations: Float32Array; readonly actions: Float32Array } => ({
      observations: observations.numbers,
      actions: actions.numbers,
    }),
    state: (): NamedArrays => ({
      observations: { shape: [observations.count, columns.observations], data: observations.numbers },
      actions: { shape: [actions.count, columns.actions], data: actions.numbers },
    }),
    restore: (arrays: NamedArrays): void => {
      const [saved, labels] = [arrays.observations?.data, arrays.actions?.data]
      const rows = (saved?.length ?? NaN) / columns.observations
      if (saved === undefined || labels === undefined || rows * columns.actions !== labels.length) {
        throw misfit(`"observations" and "actions" have lengths that do not match`)
      }
      observations.clear()
      actions.clear()
      for (let row = 0; row < rows; row++) add(saved, labels, row)
    },
  }
}
