/**
 * Decides which trials are stopped early, with asynchronous successive halving (ASHA; Li et al. 2020, arXiv:1810.05934): at
 * each rung (a number of steps), a trial continues only if it is among the best 1/η of the trials that have reached the rung.
 *
 * A trial is compared with the trials whose results are known when it starts. So its limits can be computed before it
 * starts, and it stops at the same step on any machine, whatever else runs at that time. These are pure functions.
 */
import type { TrialPoint, EndedTrial } from "./Trial.ts"

interface AshaOptions {
  /** The number of steps of the first rung. */
  readonly minSteps: number
  /** The factor η between the steps of two rungs; a share of 1/η of the trials continues at each rung. */
  readonly reduction: number
  /** A trial is stopped at a rung only if at least this number of earlier trials have reached the rung. */
  readonly warmup: number
}

/** A limit of a run: it stops if its first validation at this step or later has a mean return below `return`. */
export interface Limit {
  readonly step: number
  readonly return: number
}

/** Returns the steps of the rungs, which are all before the end of a training of `totalSteps`. */
export const rungsOf = ({ minSteps, reduction }: AshaOptions, totalSteps: number): ReadonlyArray<number> => {
  const rungs: Array<number> = []
  for (let step = minSteps; step < totalSteps; step *= reduction) rungs.push(Math.round(step))
  return rungs
}

/** Returns the value of a learning curve at a rung: that of the first validation at the rung or later. */
const valueAtRung = (curve: ReadonlyArray<TrialPoint>, rung: number): number | undefined =>
  curve.find(({ step }) => step >= rung)?.value

/**
 * Returns the limits of a trial from the trials whose results are known when it starts. A larger mean return counts as
 * better.
 */
export const limitsOf = (
  ended: ReadonlyArray<Pick<EndedTrial, "curve">>,
  options: AshaOptions,
  totalSteps: number,
): ReadonlyArray<Limit> =>
  rungsOf(options, totalSteps).flatMap((step) => {
    const values = ended.flatMap(({ curve }) => valueAtRung(curve, step) ?? []).sort((one, other) => other - one)
    // The new trial itself counts as one of the trials; the best 1/η of them continue.
    const promoted = Math.max(1, Math.floor((values.length + 1) / options.reduction))
    return values.length < Math.max(options.warmup, promoted) ? [] : [{ step, return: values[promoted - 1] }]
  })

/**
 * Returns the validation at which a run with these limits stops, and the limit that it misses; undefined if it misses none.
 */
export const stopOf = (
  curve: ReadonlyArray<TrialPoint>,
  limits: ReadonlyArray<Limit>,
): { readonly point: TrialPoint; readonly limit: Limit } | undefined => {
  for (const [index, point] of curve.entries()) {
    const before = curve[index - 1]?.step ?? 0
    const limit = limits.find(({ step, return: least }) => before < step && step <= point.step && point.value < least)
    if (limit !== undefined) return { point, limit }
  }
  return undefined
}
