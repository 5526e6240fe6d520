/**
 * Defines the losses of Tinker's protocol. All of them are functions of the log-probabilities of the target tokens, and a
 * request's loss is the sum over its tokens:
 *
 *     cross_entropy        −w log π
 *     importance_sampling  −w r A                                    r = π / π_sampling
 *     ppo                  −w min(r A, clip(r, low, high) A)
 *     cispo                −w stop(clip(r, low, high)) A log π
 *     dro                  −w (A log π − β/2 (log π − log π_sampling)²)
 *
 * `slopeGraph` computes the factor of ∇ log π in the gradient, which differs between the losses, so one program serves all.
 */
import { exp } from "../../../base/rng/Elementary.ts"
import * as Graph from "../../../tensor/graph/ops.ts"
import type { Tensor } from "../../../tensor/graph/Tensor.ts"

export const lossNames = ["cross_entropy", "importance_sampling", "ppo", "cispo", "dro"] as const
export type LossName = (typeof lossNames)[number]

/** The columns of a loss, with a number for each token. */
export const columnNames = ["weights", "logprobs", "advantages", "clipLow", "clipHigh"] as const
export type ColumnName = (typeof columnNames)[number]

/** The values of columns that a request does not set. */
export const columnDefaults: Readonly<Record<ColumnName, number>> = {
  weights: 1,
  logprobs: 0,
  advantages: 0,
  clipLow: 0.8,
  clipHigh: 1.2,
}

/** The default of β in `dro`. */
export const defaultBeta = 0.05

const { add, greater, lessEqual, maximum, minimum, mul, reshape, slice, stopGradient, sub, where } = Graph

interface SlopeInputs {
  readonly columns: Readonly<Record<ColumnName, Tensor>>
  readonly logProbability_t: Tensor
  /** f32 [5]: 1 for the loss of the request, in the order of `lossNames`, and 0 for the others. */
  readonly chosen: Tensor
  /** f32 []: β of `dro`. */
  readonly beta: Tensor
}

/** Returns the factor of ∇ log π of each token in the gradient of −loss. No gradient flows through it. */
export const slopeGraph = ({ columns, logProbability_t, chosen, beta }: SlopeInputs): Tensor => {
  const { weights, logprobs, advantages, clipLow, clipHigh } = columns
  const self_t = stopGradient(logProbability_t)
  const difference_t = sub(self_t, logprobs)
  const ratio_t = Graph.exp(difference_t)
  const clipped_t = minimum(maximum(ratio_t, clipLow), clipHigh)
  const unclippedGain_t = mul(ratio_t, advantages)
  const clippedGain_t = mul(clipped_t, advantages)
  const slopes: Readonly<Record<Exclude<LossName, "cross_entropy">, Tensor>> = {
    importance_sampling: unclippedGain_t,
    ppo: where(lessEqual(unclippedGain_t, clippedGain_t), unclippedGain_t, 0),
    cispo: clippedGain_t,
    dro: sub(advantages, mul(beta, difference_t)),
  }
  const isChosen = (name: LossName): Tensor => greater(reshape(slice(chosen, [lossNames.indexOf(name)], [1]), []), 0.5)
  // `where` instead of a sum of products: the slope of another loss may be infinite here, and 0 · ∞ is NaN.
  let slope_t = add(mul(weights, 0), 1)
  for (const name of lossNames) if (name !== "cross_entropy") slope_t = where(isChosen(name), slopes[name], slope_t)
  return mul(weights, slope_t)
}

/** The numbers of one token. */
type TokenNumbers = Readonly<Record<ColumnName, number>> & { readonly logProbability: number }

/** Computes the loss of one token. */
export const lossOfToken = (name: LossName, token: TokenNumbers, beta: number): number => {
  const { weights, logprobs, advantages, clipLow, clipHigh, logProbability } = token
  const difference = logProbability - logprobs
  const clipped = (ratio: number): number => Math.min(Math.max(ratio, clipLow), clipHigh)
  switch (name) {
    case "cross_entropy":
      return -weights * logProbability
    case "importance_sampling":
      return -weights * exp(difference) * advantages
    case "ppo":
      return -weights * Math.min(exp(difference) * advantages, clipped(exp(difference)) * advantages)
    case "cispo":
      return -weights * clipped(exp(difference)) * advantages * logProbability
    case "dro":
      return -weights * (advantages * logProbability - 0.5 * beta * difference * difference)
  }
}
