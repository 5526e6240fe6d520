/**
 * Compares two evaluations of the same tasks, called left and right, by the difference on each task. So it does not
 * matter that some tasks are harder than others. `agents/evaluate/Report.ts` calls it.
 *
 * @example
 * ```ts
 * const before = new Map([["a", 0], ["b", 1], ["c", 0]])
 * const after = new Map([["a", 1], ["b", 1], ["c", 1]])
 * paired(before, after)?.difference // 0.666…
 * ```
 */
import { Schema } from "effect"
import { meanOf, type Resampling } from "./resampling.ts"
import { stream } from "../rng/Rng.ts"
import { highest, lowest } from "./extremes.ts"
import { manyValues, normalBelow } from "./intervals.ts"
import { meanDifference, tango } from "./pairedInterval.ts"

export const Paired = Schema.Struct({
  /** The number of tasks that have a value on both sides. */
  tasks: Schema.Int,
  leftMean: Schema.Finite,
  rightMean: Schema.Finite,
  /**
   * The mean of the differences (right minus left), with an interval over the tasks: Tango's score interval if all values are 0
   * or 1, otherwise Student's, which is widened if most differences are equal. It has a width also if all are.
   */
  difference: Schema.Finite,
  low: Schema.Finite,
  high: Schema.Finite,
  /** The number of tasks whose right value is higher; `worse` counts those whose right value is lower. */
  better: Schema.Int,
  worse: Schema.Int,
  /** The two-sided p-value of the permutation test, which flips the signs of differences. */
  permutationP: Schema.Finite,
  /** The p-value of the exact sign test. If all values are 0 or 1, it is McNemar's exact test. */
  signP: Schema.Finite,
  test: Schema.Literals(["permutation", "mcnemar"]),
  /** The p-value of the test that suits the values best; `test` names that test. */
  p: Schema.Finite,
})
export type Paired = typeof Paired.Type

/**
 * Computes the p-value of the two-sided sign test from the numbers of positive and of negative differences: twice the
 * chance of at most min(better, worse) heads in better + worse tosses of a fair coin.
 */
export const signTest = (better: number, worse: number): number => {
  const tosses = better + worse
  const fewer = Math.min(better, worse)
  // The chance of `heads` heads in `tosses` tosses, as a logarithm, since the chance itself can be too small for a
  // double.
  let [logChance, tail] = [-tosses * Math.LN2, 0]
  for (let heads = 0; heads <= fewer; heads++) {
    tail += Math.exp(logChance)
    logChance += Math.log((tosses - heads) / (heads + 1))
  }
  return Math.min(1, 2 * tail)
}

/** Up to this number n of differences, `permutationTest` tries all 2^n choices of signs; above it, `draws` of them. */
const exactUpTo = 14
const draws = 10_000

/**
 * Returns the chance that the sum of numbers with the absolute values `sizes` and random signs is at least as far from
 * 0 as `sum`, by the normal approximation.
 */
const normalTest = (sum: number, sizes: ReadonlyArray<number>): number => {
  const spread = Math.sqrt(sizes.reduce((total, size) => total + size * size, 0))
  // `normalBelow` is accurate up to 7.
  return 2 * normalBelow(-Math.min(7, sum / spread))
}

/**
 * Computes the two-sided p-value of the permutation test: of all ways to choose the signs of the differences, the share
 * that makes their sum at least as far from 0 as it is. With more than `exactUpTo` differences, it is an estimate.
 */
export const permutationTest = (differences: ReadonlyArray<number>, seed = 0): number => {
  const sizes = differences.map(Math.abs).filter((size) => size > 0)
  const { length } = sizes
  if (length === 0) return 1
  const observed = Math.abs(differences.reduce((sum, value) => sum + value, 0))
  if (length >= manyValues) return normalTest(observed, sizes)
  // Allow for rounding: the last bits of a sum depend on the order of its terms.
  const least = observed - 1e-9 * sizes.reduce((sum, size) => sum + size, 0)
  const reaches = (isPlus: (at: number) => boolean): boolean => {
    let sum = 0
    for (let at = 0; at < length; at++) sum += isPlus(at) ? sizes[at] : -sizes[at]
    return Math.abs(sum) >= least
  }
  let reached = 0
  if (length <= exactUpTo) {
    const ways = 2 ** length
    // Bit `at` of `way` is the sign of difference `at`.
    for (let way = 0; way < ways; way++) if (reaches((at) => (way & (1 << at)) !== 0)) reached++
    return reached / ways
  }
  const random = stream(seed, "permutation", length)
  for (let draw = 0; draw < draws; draw++) if (reaches(() => random.uint32() >= 0x8000_0000)) reached++
  // Count the observed signs as one of the draws, so that the p-value is never 0.
  return (reached + 1) / (draws + 1)
}

/** Values this close to each other, as a share of the largest one, count as equal: the order of a sum can set them apart. */
const rounding = 1e-9

/** Returns how far apart the values of a task may be: as far as those of all tasks, or if all are equal, as far as 0. */
const scaleOf = (values: ReadonlyArray<number>, tolerance: number): number => {
  const spread = highest(values) - lowest(values)
  return spread > tolerance ? spread : Math.abs(values[0])
}

type ByTask = ReadonlyMap<string, number>

/**
 * Compares two evaluations task by task; null if no task is in both. Swapping left and right swaps their values and
 * changes the sign of the difference, but leaves the p-values unchanged.
 */
export const paired = (left: ByTask, right: ByTask, how: Resampling = {}): Paired | null => {
  const tasks = [...left.keys()].filter((task) => right.has(task)).sort()
  if (tasks.length === 0) return null
  const [lefts, rights] = [left, right].map((side) => tasks.flatMap((task) => side.get(task) ?? []))
  const values = [...lefts, ...rights]
  const tolerance = rounding * highest(values.map(Math.abs))
  const differences = rights.map((value, at) => (Math.abs(value - lefts[at]) > tolerance ? value - lefts[at] : 0))
  const difference = meanOf(differences)
  const better = differences.filter((value) => value > 0).length
  const worse = differences.filter((value) => value < 0).length
  const permutationP = permutationTest(differences, how.seed)
  const signP = signTest(better, worse)
  const isBinary = values.every((value) => value === 0 || value === 1)
  const { confidence } = how
  const [low, high] = isBinary
    ? tango({ pairs: tasks.length, rises: better, falls: worse }, confidence)
    : meanDifference(differences, { scale: scaleOf(values, tolerance), confidence })
  return {
    tasks: tasks.length,
    leftMean: meanOf(lefts),
    rightMean: meanOf(rights),
    difference,
    low,
    high,
    better,
    worse,
    permutationP,
    signP,
    test: isBinary ? "mcnemar" : "permutation",
    p: isBinary ? signP : permutationP,
  }
}
