/**
 * From several episodes of a task to one number: none depends on the order of the episodes.
 *
 * @example
 * ```ts
 * const tries = [0, 1, 0, 1].map((value) => ({ value, answer: null }))
 * mean(tries) // 0.5
 * passAt(2)(tries) // 0.8333…: one minus the share of pairs without a solved one
 * bestOf(2)(tries) // the same, as these are 0 and 1
 * ```
 */
import { normalise, unboxed } from "../task/answers/text.ts"

/** An episode of a task. */
export interface Sample {
  readonly value: number
  /** What was answered at its end; null where nothing was. */
  readonly answer: string | null
}

/** Null where there are too few episodes to tell. */
export type Reducer = (samples: ReadonlyArray<Sample>) => number | null

/** Sums depend on their order in their last bits, so there is one order. */
const ordered = (samples: ReadonlyArray<Sample>): Float64Array =>
  Float64Array.from(samples, ({ value }) => value).sort()

export const mean: Reducer = (samples) =>
  samples.length === 0 ? null : ordered(samples).reduce((sum, value) => sum + value, 0) / samples.length

/**
 * The chance that at least one of `k` episodes reaches the threshold, without bias from those that were played
 * (Chen et al. 2021, arXiv:2107.03374).
 */
export const passAt =
  (k: number, threshold = 1): Reducer =>
  (samples) => {
    const { length: n } = samples
    if (n < k) return null
    const missed = samples.filter(({ value }) => !(value >= threshold)).length
    // C(missed, k) / C(n, k), factor by factor.
    let none = 1
    for (let drawn = 0; drawn < k; drawn++) none *= Math.max(0, missed - drawn) / (n - drawn)
    return 1 - none
  }

/** What the best of `n` episodes is expected to be: the mean over all choices of `n` of those that were played. */
export const bestOf =
  (n: number): Reducer =>
  (samples) => {
    const { length } = samples
    if (length < n) return null
    const sorted = ordered(samples)
    // The chance that the i-th lowest is the best: C(i, n - 1) / C(length, n). From the highest on, where it is n / length.
    let chance = n / length
    let sum = 0
    for (let at = length - 1; at >= n - 1; at--) {
      sum += chance * sorted[at]
      chance *= (at - n + 1) / at
    }
    return sum
  }

/**
 * What the answer that was given most often is worth. Between answers that were given equally often chance decides, so
 * that it is their mean; who gave none has no vote.
 */
export const majority: Reducer = (samples) => {
  const votes = new Map<string, Array<Sample>>()
  for (const sample of samples) {
    if (sample.answer === null) continue
    const answer = normalise(unboxed(sample.answer))
    const group = votes.get(answer)
    if (group === undefined) votes.set(answer, [sample])
    else group.push(sample)
  }
  const most = Math.max(0, ...[...votes.values()].map(({ length }) => length))
  return mean(most === 0 ? samples : [...votes.values()].filter(({ length }) => length === most).flat())
}
