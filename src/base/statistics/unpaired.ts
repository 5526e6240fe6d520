/**
 * Compares two algorithms by the scores of their trainings in one or several environments, as Agarwal et al. (2021,
 * arXiv:2108.13264) do: by the difference of interquartile means, the probability of improvement and performance
 * profiles, with bootstrap intervals that resample the trainings of each environment. Trainings with the same seed count
 * as independent; for evaluations of the same tasks see `paired.ts`. The page of `effect ui` loads this file in the
 * browser, so it may import only files without Node or Effect.
 *
 * @example
 * ```ts
 * const { difference, improvement, p } = unpaired([{ left: [1, 2, 3], right: [4, 5, 6] }])
 * // difference 3; improvement 1: each training on the right is better; p 0.1, since 3 and 3 trainings allow no less
 * ```
 */
import { stream } from "../rng/Rng.ts"
import { interquartileMean, meanOf, quantile, type Resampling } from "./resampling.ts"
import { highest, lowest } from "./extremes.ts"

/** The scores of two algorithms in one environment, one for each training. */
export interface Scores {
  readonly left: ReadonlyArray<number>
  readonly right: ReadonlyArray<number>
}

/** An estimate with its confidence interval; without one if a side has only one training in an environment. */
export interface Estimate {
  readonly value: number
  readonly low: number | null
  readonly high: number | null
}

export interface Unpaired {
  /** The numbers of trainings, in all environments together. */
  readonly leftRuns: number
  readonly rightRuns: number
  /** The interquartile means of all scores of a side. */
  readonly left: number
  readonly right: number
  /** The difference of the interquartile means, right minus left. */
  readonly difference: Estimate
  /** The probability that a training of the right side scores higher than one of the left; a tie counts as half. */
  readonly improvement: Estimate
  /**
   * The two-sided p-value of the hypothesis that the sides do not differ, from a permutation test of the probability of
   * improvement. With one environment this is the exact Mann-Whitney test. Null if there is no interval.
   */
  readonly p: number | null
  /** The lowest p-value that is possible with this number of trainings. */
  readonly smallestP: number
}

/** The share of trainings that score higher than each threshold, with its interval. */
export interface Profile {
  readonly threshold: number
  readonly left: Estimate
  readonly right: Estimate
}

/** Returns the chance that a score of `right` is above one of `left`, where a tie counts as half. */
export const probabilityOfImprovement = ({ left, right }: Scores): number => {
  const before = Float64Array.from(left).sort()
  const after = Float64Array.from(right).sort()
  let [wins, below, notAbove] = [0, 0, 0]
  for (const score of after) {
    while (below < before.length && before[below] < score) below++
    while (notAbove < before.length && before[notAbove] <= score) notAbove++
    wins += (below + notAbove) / 2
  }
  return wins / (left.length * right.length)
}

/** Maps lists of scores linearly so that the lowest of all their scores is 0 and the highest 1; all 0.5 if equal. */
export const scaledTogether = (lists: ReadonlyArray<ReadonlyArray<number>>): ReadonlyArray<ReadonlyArray<number>> => {
  const all = lists.flat()
  const least = lowest(all)
  const range = highest(all) - least
  return lists.map((scores) => scores.map((score) => (range > 0 ? (score - least) / range : 0.5)))
}

/** Maps the scores of an environment linearly so that the lowest of both sides is 0 and the highest 1; all 0.5 if equal. */
export const normalised = (scores: Scores): Scores => {
  const [left, right] = scaledTogether([scores.left, scores.right])
  return { left, right }
}

const refuseMissing = (environments: ReadonlyArray<Scores>): void => {
  if (environments.length === 0 || environments.some(({ left, right }) => left.length === 0 || right.length === 0))
    throw new RangeError("unpaired: expected scores on both sides")
}

/** Compares two sides over environments, whose scores must have the same scale. Throws a RangeError if one has no scores. */
export const unpaired = (environments: ReadonlyArray<Scores>, how: Resampling = {}): Unpaired => {
  refuseMissing(environments)
  const [lefts, rights] = [environments.flatMap(({ left }) => left), environments.flatMap(({ right }) => right)]
  const isMeasurable = environments.every(({ left, right }) => left.length > 1 && right.length > 1)
  const estimate = estimatorOf(environments, how)
  return {
    leftRuns: lefts.length,
    rightRuns: rights.length,
    left: interquartileMean(lefts),
    right: interquartileMean(rights),
    difference: estimate(differenceOf),
    improvement: estimate(improvementOf),
    p: isMeasurable ? permutationTest(environments, how.seed) : null,
    smallestP: Math.min(1, 2 / environments.reduce((ways, { left, right }) => ways * waysToSplit(left, right), 1)),
  }
}

/**
 * Estimates the probability that a training of the right side scores higher than one of the left in the same environment, as
 * `unpaired` does, without its test, which takes longer. Throws a RangeError if a side has no scores.
 */
export const improvement = (environments: ReadonlyArray<Scores>, how: Resampling = {}): Estimate => {
  refuseMissing(environments)
  return estimatorOf(environments, how)(improvementOf)
}

/**
 * Computes the performance profiles of two sides: how large a share of their trainings scores above each threshold. A
 * side whose line is higher everywhere is better, whatever statistic one prefers.
 */
export const profiles = (
  environments: ReadonlyArray<Scores>,
  thresholds: ReadonlyArray<number>,
  how: Resampling = {},
): ReadonlyArray<Profile> => {
  const estimate = estimatorOf(environments, how)
  return thresholds.map((threshold) => {
    const above = (values: ReadonlyArray<number>): number =>
      values.reduce((count, value) => count + Number(value > threshold), 0) / values.length
    return {
      threshold,
      left: estimate((sampled) => above(sampled.flatMap(({ left }) => left))),
      right: estimate((sampled) => above(sampled.flatMap(({ right }) => right))),
    }
  })
}

/** The scores of an algorithm's trainings by their environment. */
export type ByEnvironment = ReadonlyMap<string, ReadonlyArray<number>>

export interface AlgorithmComparison {
  readonly environments: ReadonlyArray<Unpaired & { readonly environment: string }>
  /** The comparison over all environments, whose scores are normalised; null if there is only one. */
  readonly overall: Unpaired | null
  /** The performance profiles of the normalised scores over all environments. */
  readonly profiles: ReadonlyArray<Profile>
  /** The environments in which only one side has trainings, which are left out. */
  readonly leftOut: ReadonlyArray<string>
}

/** The thresholds of the profiles of normalised scores: 0, 0.05 … 0.95. */
const thresholds = Array.from({ length: 20 }, (_, index) => index / 20)

/** Compares two algorithms in each environment, and over all of them; null if no environment has trainings of both. */
export const compareAlgorithms = (
  left: ByEnvironment,
  right: ByEnvironment,
  how: Resampling = {},
): AlgorithmComparison | null => {
  const all = [...new Set([...left.keys(), ...right.keys()])].sort()
  const shared = all.flatMap((environment) => {
    const scores = { left: left.get(environment) ?? [], right: right.get(environment) ?? [] }
    return scores.left.length === 0 || scores.right.length === 0 ? [] : [{ environment, scores }]
  })
  if (shared.length === 0) return null
  const scaled = shared.map(({ scores }) => normalised(scores))
  return {
    environments: shared.map(({ environment, scores }) => ({ environment, ...unpaired([scores], how) })),
    overall: shared.length > 1 ? unpaired(scaled, how) : null,
    profiles: profiles(scaled, thresholds, how),
    leftOut: all.filter((environment) => shared.every((one) => one.environment !== environment)),
  }
}

const differenceOf = (environments: ReadonlyArray<Scores>): number =>
  interquartileMean(environments.flatMap(({ right }) => right)) -
  interquartileMean(environments.flatMap(({ left }) => left))

const improvementOf = (environments: ReadonlyArray<Scores>): number =>
  meanOf(environments.map(probabilityOfImprovement))

type Statistic = (environments: ReadonlyArray<Scores>) => number

/** Makes the function that estimates a statistic with its interval, which resamples each side of each environment. */
const estimatorOf = (
  environments: ReadonlyArray<Scores>,
  { resamples = 2000, confidence = 0.95, seed = 0 }: Resampling,
) => {
  const isMeasurable = environments.every(({ left, right }) => left.length > 1 && right.length > 1)
  const random = stream(seed, "unpaired")
  const resampled = (values: ReadonlyArray<number>): ReadonlyArray<number> =>
    values.map(() => values[random.integer(values.length)])
  const samples = Array.from({ length: isMeasurable ? resamples : 0 }, () =>
    environments.map(({ left, right }) => ({ left: resampled(left), right: resampled(right) })),
  )
  return (statistic: Statistic): Estimate => {
    const value = statistic(environments)
    if (!isMeasurable) return { value, low: null, high: null }
    const sorted = Float64Array.from(samples, statistic).sort()
    const [low, high] = [quantile(sorted, (1 - confidence) / 2), quantile(sorted, (1 + confidence) / 2)]
    return { value, low: Math.min(low, value), high: Math.max(high, value) }
  }
}

/** Returns the number of ways to divide the scores of an environment among two sides of these sizes. */
const waysToSplit = (left: ReadonlyArray<number>, right: ReadonlyArray<number>): number => {
  let ways = 1
  for (let at = 1; at <= right.length; at++) ways = (ways * (left.length + at)) / at
  return ways
}

/** With up to this many scores in one environment, the permutation test counts all divisions; else it draws some. */
const mostCounted = 60
const mostDraws = 20_000
/**
 * With many scores, fewer divisions are drawn, though never fewer than `fewestDraws`, so that scores times draws stay below this:
 * otherwise, hundreds of trainings would take minutes.
 */
const mostDrawn = 4_000_000
const fewestDraws = 1000

/** Computes the two-sided p-value of the permutation test that divides the scores of each environment anew. */
const permutationTest = (environments: ReadonlyArray<Scores>, seed = 0): number => {
  const [first] = environments
  if (environments.length === 1 && first.left.length + first.right.length <= mostCounted) return exactTest(first)
  // Rounding depends on the order of a sum, so allow for it: a division as extreme as the observed one must count.
  const observed = Math.abs(improvementOf(environments) - 0.5) * (1 - 1e-9)
  const random = stream(seed, "unpairedPermutation")
  const pools = environments.map(({ left, right }) => ({ all: [...left, ...right], at: left.length }))
  const scores = pools.reduce((sum, { all }) => sum + all.length, 0)
  const draws = Math.max(fewestDraws, Math.min(mostDraws, Math.floor(mostDrawn / scores)))
  let reached = 0
  for (let draw = 0; draw < draws; draw++) {
    const divided = pools.map(({ all, at }) => {
      // Fisher and Yates' shuffle.
      for (let last = all.length - 1; last > 0; last--) {
        const other = random.integer(last + 1)
        ;[all[last], all[other]] = [all[other], all[last]]
      }
      return { left: all.slice(0, at), right: all.slice(at) }
    })
    if (Math.abs(improvementOf(divided) - 0.5) >= observed) reached++
  }
  // Count the observed division as one of the draws, so that the p-value is never 0.
  return (reached + 1) / (draws + 1)
}

/**
 * Computes the exact p-value of one environment: the share of all divisions whose rank sum of the right side is at least
 * as far from the middle as the observed one. Ranks are doubled, so that the mean ranks of ties are whole numbers.
 */
const exactTest = ({ left, right }: Scores): number => {
  const all = [...left, ...right]
  const ranks = all.map((value) => all.reduce((rank, other) => rank + (other < value ? 2 : other === value ? 1 : 0), 1))
  const total = ranks.reduce((sum, rank) => sum + rank, 0)
  /** The number of ways to choose some of the ranks, by how many are chosen and by their sum. */
  const ways = Array.from({ length: right.length + 1 }, () => new Float64Array(total + 1))
  ways[0][0] = 1
  for (const rank of ranks) {
    for (let count = right.length; count > 0; count--) {
      for (let sum = total; sum >= rank; sum--) ways[count][sum] += ways[count - 1][sum - rank]
    }
  }
  const middle = (total * right.length) / all.length
  const distance = Math.abs(ranks.slice(left.length).reduce((sum, rank) => sum + rank, 0) - middle)
  let [reached, count] = [0, 0]
  ways[right.length].forEach((some, sum) => {
    count += some
    if (Math.abs(sum - middle) >= distance - 1e-9) reached += some
  })
  return reached / count
}
