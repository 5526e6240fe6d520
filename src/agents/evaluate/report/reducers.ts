/**
 * Defines reducers: functions that combine the scores of a task's episodes into one value. The order of the episodes does not
 * matter. `Report.ts` applies them.
 *
 * @example
 * ```ts
 * const samples = [0, 1, 0, 1].map((value) => ({ value, answer: null }))
 * mean(samples) // 0.5
 * passAt(2)(samples) // 0.8333…: one minus the share of pairs without a success
 * bestOf(2)(samples) // also 0.8333…, since the values are 0 and 1
 * ```
 */
import { meanOrNull } from "../../../base/statistics/resampling.ts"
import { normalise, unboxed } from "../../task/answers/text.ts"

/** The score of an episode, and its answer. */
export interface EpisodeScore {
  readonly value: number
  /** The last action of the episode; null if there was none. */
  readonly answer: string | null
}

/** Combines the episodes of a task into one value. Returns null if there are too few episodes. */
export type Reducer = (samples: ReadonlyArray<EpisodeScore>) => number | null

/** Returns the values in ascending order, because the order in which values are added affects the last bits of a sum. */
const ordered = (samples: ReadonlyArray<EpisodeScore>): Float64Array =>
  Float64Array.from(samples, ({ value }) => value).sort()

export const mean: Reducer = (samples) => meanOrNull(ordered(samples))

/**
 * Makes the reducer for pass@k: the probability that at least one of `k` episodes reaches the threshold, estimated
 * without bias (Chen et al. 2021, arXiv:2107.03374).
 */
export const passAt =
  (k: number, threshold = 1): Reducer =>
  (samples) => {
    const { length: n } = samples
    if (n < k) return null
    const missed = samples.filter(({ value }) => !(value >= threshold)).length
    // The probability that k episodes all fail is C(missed, k) / C(n, k). Multiplying factors avoids large numbers.
    let allMiss = 1
    for (let drawn = 0; drawn < k; drawn++) allMiss *= Math.max(0, missed - drawn) / (n - drawn)
    return 1 - allMiss
  }

/** Makes the reducer for the expected best score of `n` episodes: its mean over all ways to choose `n` episodes. */
export const bestOf =
  (n: number): Reducer =>
  (samples) => {
    const { length } = samples
    if (length < n) return null
    const sorted = ordered(samples)
    // Value `at` is the best of n episodes if the other n - 1 come before it, with probability C(at, n - 1) / C(length, n).
    // For the last value that is n / length; each step down multiplies it by a simple factor.
    let chance = n / length
    let sum = 0
    for (let at = length - 1; at >= n - 1; at--) {
      sum += chance * sorted[at]
      chance *= (at - n + 1) / at
    }
    return sum
  }

/**
 * Returns the mean score of the episodes with the most frequent answer. If several answers are equally frequent, returns the
 * mean over the episodes with any of them. Case, spaces and quotes do not matter. Episodes without an answer count only if no
 * episode has one.
 */
export const majority: Reducer = (samples) => {
  const answered = samples.flatMap(({ value, answer }) => (answer === null ? [] : [{ value, answer }]))
  const votes = [...Map.groupBy(answered, ({ answer }) => normalise(unboxed(answer))).values()]
  const most = Math.max(0, ...votes.map(({ length }) => length))
  return mean(most === 0 ? samples : votes.filter(({ length }) => length === most).flat())
}
