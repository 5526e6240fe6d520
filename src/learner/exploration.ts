import { fraction, withDefault } from "../config/fields.ts"
import { argMax, cast, less, minimum, mul, reshape, slice, where } from "../graph/ops.ts"
import type { Tensor } from "../graph/Tensor.ts"

/** ε-greedy: how often a learner of action values tries something else. */
export const explorationFields = {
  /** The probability of a random action at the start of the run. */
  epsilonStart: withDefault(fraction, 1),
  /** The probability of a random action after the first `explorationFraction` of the run. */
  epsilonEnd: withDefault(fraction, 0.05),
  /** The share of the run in which that probability falls linearly. */
  explorationFraction: withDefault(fraction, 0.2),
}

interface Exploration {
  readonly epsilonStart: number
  readonly epsilonEnd: number
  readonly explorationFraction: number
}

/** ε after so many of the run's env steps. */
export const epsilonAt = (
  { epsilonStart, epsilonEnd, explorationFraction }: Exploration,
  step: number,
  totalSteps: number,
): number => {
  const share = explorationFraction === 0 ? 1 : Math.min(1, step / (explorationFraction * totalSteps))
  return epsilonStart + share * (epsilonEnd - epsilonStart)
}

/** The best action of each row, or with probability ε any: from values [rows, n] and noise [rows, 2]. */
export const epsilonGreedy = (values: Tensor, noise: Tensor, epsilon: Tensor): Tensor => {
  const [rows, n] = values.shape
  const column = (index: number): Tensor => reshape(slice(noise, [0, index], [rows, 1]), [rows])
  const any = minimum(cast(mul(column(1), n), "i32"), n - 1)
  return where(less(column(0), epsilon), any, argMax(values))
}
