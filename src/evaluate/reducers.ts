/**
 * Reducers: functions that combine the scores of a task's episodes into one value, whatever their order. `Report.ts`
 * applies them.
 *
 * @example
 * ```ts
 * const samples = [0, 1, 0, 1].map((value) => ({ value, answer: null }))
 * mean(samples) // 0.5
 * passAt(2)(samples) // 0.8333…: one minus the share of pairs without a success
 * bestOf(2)(samples) // the same, since the values are 0 and 1
 * ```
 */
import { meanOrNull } from "../statistics/resampling.ts"
import { normalise, unboxed } from "../task/answers/text.ts"

/** The score of an episode. */
export interface EpisodeScore {
  readonly value: number
  /** The last action of the episode; null if there was none. */
  readonly answer: string | null
}

/** Combines the episodes of a task into one value. Returns null if there are too few episodes. */
export type Reducer = (samples: ReadonlyArray<EpisodeScore>) => number | null

/** Returns the sorted values, because the order in which values are added changes the last bits of a sum. */
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
    // This is C(missed, k) / C(n, k), computed factor by factor to avoid large numbers.
    let none = 1
    for (let drawn = 0; drawn < k; drawn++) none *= Math.max(0, missed - drawn) / (n - drawn)
    return 1 - none
  }

/** Makes the reducer for the expected best score of `n` episodes: the mean over all choices of `n` of them. */
export const bestOf =
  (n: number): Reducer =>
  (samples) => {
    const { length } = samples
    if (length < n) return null
    const sorted = ordered(samples)
    // With values in ascending order, value i is the best of n with probability C(i, n - 1) / C(length, n). For the highest
    // value that is n / length.
    let chance = n / length
    let sum = 0
    for (let at = length - 1; at >= n - 1; at--) {
      sum += chance * sorted[at]
      chance *= (at - n + 1) / at
    }
    return sum
  }

/**
 * Returns the score of the most frequent answer, or the mean score of equally frequent ones. Episodes without an answer
 * do not count, unless none has one.
 */
export const majority: Reducer = (samples) => {
  const answered = samples.flatMap(({ value, answer }) => (answer === null ? [] : [{ value, answer }]))
  const votes = [...Map.groupBy(answered, ({ answer }) => normalise(unboxed(answer))).values()]
  const most = Math.max(0, ...votes.map(({ length }) => length))
  return mean(most === 0 ? samples : votes.filter(({ length }) => length === most).flat())
}
