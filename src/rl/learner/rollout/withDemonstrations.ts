/** Adds demonstrations to an on-policy algorithm: for each step of a rollout, a step of an expert (GAIL). */
import { Effect } from "effect"
import { wholeColumns } from "../../env/internal/values.ts"
import { make as makeMoments } from "../../env/RunningMoments.ts"
import { type RowSpace, sizeOf } from "../../env/Space.ts"
import { constant, maximum, minimum, mul, sub } from "../../../tensor/graph/ops.ts"
import type { Tensor } from "../../../tensor/graph/Tensor.ts"
import { stream } from "../../../base/rng/Rng.ts"
import { type Action, actionColumn, type Arrays, type Columns, copyRows, type F32, f32 } from "../Batch.ts"
import { dataOf, type Demonstrations } from "../Demonstrations.ts"
import type { Experience } from "./Experience.ts"

/** The columns of demonstrated steps. A column that is not read costs nothing. */
export type DemonstrationColumns = {
  readonly shownObservations: F32
  readonly shownActions: Action
}

/**
 * Adds demonstrations to an experience: each row of a rollout comes with a demonstrated step, which is drawn anew for each
 * update. They must fit the task's spaces: `Demonstrations.checkFit`.
 *
 * @example
 * ```ts
 * const plain = Learner.experience({ name: "imitating", task, actor: network, steps: 5, returns: () => {} })
 * withDemonstrations(plain, demonstrations).columns.shownActions
 * ```
 */
export const withDemonstrations = <C extends Columns>(
  experience: Experience<C>,
  demonstrations: Demonstrations,
): Experience<C & DemonstrationColumns> => {
  const { rows, observations, actions } = demonstrations
  const { observationSpace, actionSpace, seed } = experience.task
  const columns: DemonstrationColumns = {
    shownObservations: f32(sizeOf(observationSpace)),
    shownActions: actionColumn(actionSpace),
  }
  return {
    ...experience,
    columns: { ...experience.columns, ...columns },
    data: { ...experience.data, ...dataOf(demonstrations) },
    features: [
      ...experience.features,
      ({ rollout }) =>
        Effect.sync(() => {
          const { shownObservations, shownActions }: Arrays<DemonstrationColumns> = rollout.columns
          const drawn = new Int32Array(rollout.steps * rollout.numEnvs)
          return {
            beforeUpdate: (iteration) => {
              const random = stream(seed, "demonstrations", iteration)
              for (let row = 0; row < drawn.length; row++) drawn[row] = random.integer(rows)
              copyRows(observations, drawn, shownObservations)
              copyRows(actions, drawn, shownActions)
            },
          }
        }),
    ],
  }
}

/** The limit to which standardised numbers are clipped. */
const bound = 5

/**
 * Returns a function that scales observations [rows, size] so that real numbers have mean 0 and standard deviation 1
 * over the demonstrations, and clips them to ±5. Choices, switches and masks stay as they are.
 *
 * @example
 * ```ts
 * const scaled = standardisedBy(demonstrations, task.observationSpace)
 * scaled(Graph.input("observations", [8, 4])) // of the same shape
 * ```
 */
export const standardisedBy = (
  { observations }: Pick<Demonstrations, "observations">,
  space: RowSpace,
): ((rows: Tensor) => Tensor) => {
  const moments = makeMoments(sizeOf(space), 0)
  moments.update(observations)
  const isWhole = new Set(wholeColumns(space))
  const perColumn = (real: (column: number) => number, whole: number): Tensor =>
    constant(Array.from({ length: moments.size }, (_, column) => (isWhole.has(column) ? whole : real(column))))
  const centre = perColumn((column) => moments.mean[column], 0)
  const scale = perColumn((column) => (moments.variance[column] > 1e-6 ? moments.variance[column] ** -0.5 : 1), 1)
  const [low, high] = [perColumn(() => -bound, -Infinity), perColumn(() => bound, Infinity)]
  return (rows) => minimum(maximum(mul(sub(rows, centre), scale), low), high)
}
