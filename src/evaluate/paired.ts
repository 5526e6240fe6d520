/**
 * Two evaluations of the same tasks, compared task by task: what is hard for both is hard in both, and tells nothing
 * about which is better, so it is taken out.
 *
 * @example
 * ```ts
 * const before = new Map([["a", 0], ["b", 1], ["c", 0]])
 * const after = new Map([["a", 1], ["b", 1], ["c", 1]])
 * paired(before, after)?.difference // 0.666…
 * ```
 */
import { Schema } from "effect"
import { meanOf, type Resampling } from "../statistics/resampling.ts"
import { stream } from "../rng/Rng.ts"
import { intervalOfMean, manyValues, normalBelow } from "./intervals.ts"

export const Paired = Schema.Struct({
  /** Tasks that both have a value of. */
  tasks: Schema.Int,
  leftMean: Schema.Finite,
  rightMean: Schema.Finite,
  /** How much more the right one has, in the mean, and an interval of that by drawing the tasks again. */
  difference: Schema.Finite,
  low: Schema.Finite,
  high: Schema.Finite,
  /** Tasks of which the right one has a higher value, and a lower one: of tokens, lower is better. */
  better: Schema.Int,
  worse: Schema.Int,
  /** How likely so much of a difference is, whichever way, if which is which meant nothing: signs of differences are swapped. */
  permutationP: Schema.Finite,
  /** The same by the signs alone, exactly. Where all values are 0 or 1 it is McNemar's exact test. */
  signP: Schema.Finite,
  test: Schema.Literals(["permutation", "mcnemar"]),
  /** That test's: the one to look at first. */
  p: Schema.Finite,
})
export type Paired = typeof Paired.Type

/** How likely it is that a fair coin is at least as uneven: two-sided, exact. */
export const signTest = (better: number, worse: number): number => {
  const tosses = better + worse
  const fewer = Math.min(better, worse)
  let [logChance, tail] = [-tosses * Math.LN2, 0]
  for (let heads = 0; heads <= fewer; heads++) {
    tail += Math.exp(logChance)
    logChance += Math.log((tosses - heads) / (heads + 1))
  }
  return Math.min(1, 2 * tail)
}

/** So many differences have few enough signs (16,384) to look at all of them. */
const fewEnough = 14
const draws = 10_000

/** How likely it is that a normal sum of so much spread is as far from zero. */
const normalTest = (sum: number, sizes: ReadonlyArray<number>): number => {
  const spread = Math.sqrt(sizes.reduce((total, size) => total + size * size, 0))
  return 2 * normalBelow(-Math.min(7, sum / spread))
}

/** How many ways of giving signs to the differences make a sum as far from zero as theirs. */
export const permutationTest = (differences: ReadonlyArray<number>, seed = 0): number => {
  const sizes = differences.map(Math.abs).filter((size) => size > 0)
  const { length } = sizes
  if (length === 0) return 1
  const found = Math.abs(differences.reduce((sum, value) => sum + value, 0))
  if (length >= manyValues) return normalTest(found, sizes)
  // Sums of the same numbers in other orders differ in their last bits.
  const least = found - 1e-9 * sizes.reduce((sum, size) => sum + size, 0)
  const reaches = (isPlus: (at: number) => boolean): boolean => {
    let sum = 0
    for (let at = 0; at < length; at++) sum += isPlus(at) ? sizes[at] : -sizes[at]
    return Math.abs(sum) >= least
  }
  let reached = 0
  if (length <= fewEnough) {
    const ways = 2 ** length
    for (let way = 0; way < ways; way++) if (reaches((at) => (way & (1 << at)) !== 0)) reached++
    return reached / ways
  }
  const random = stream(seed, "permutation", length)
  for (let draw = 0; draw < draws; draw++) if (reaches(() => random.uint32() >= 0x8000_0000)) reached++
  // What was found is one of the ways, too, so it is never impossible.
  return (reached + 1) / (draws + 1)
}

type ByTask = ReadonlyMap<string, number>

/** Null where they have no task in common. Swapped, they give the same tests, and the difference with the other sign. */
export const paired = (left: ByTask, right: ByTask, how: Resampling = {}): Paired | null => {
  const tasks = [...left.keys()].filter((task) => right.has(task)).sort()
  if (tasks.length === 0) return null
  const [lefts, rights] = [left, right].map((side) => tasks.flatMap((task) => side.get(task) ?? []))
  const differences = rights.map((value, at) => value - lefts[at])
  const { mean: difference, low, high } = intervalOfMean(differences, how)
  const better = differences.filter((value) => value > 0).length
  const worse = differences.filter((value) => value < 0).length
  const permutationP = permutationTest(differences, how.seed)
  const signP = signTest(better, worse)
  const areShares = [...lefts, ...rights].every((value) => value === 0 || value === 1)
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
    test: areShares ? "mcnemar" : "permutation",
    p: areShares ? signP : permutationP,
  }
}
