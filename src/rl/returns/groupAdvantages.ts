/** Computes advantages of completions relative to their group. `Returns.ts` exports it for users of the library. */
import { checkFromZero, checkRows, emptyLike, type Numbers } from "./inputs.ts"

export interface GroupAdvantageInputs<A extends Numbers> {
  /** The reward of each completion. */
  readonly rewards: A
  /** The group of each completion: completions of one prompt have the same integer, in any order. */
  readonly groups: ArrayLike<number>
  /**
   * The number that is subtracted from a reward: the mean of its group (`mean`), or the mean of the other completions of
   * its group (`leave_one_out`).
   */
  readonly baseline: "mean" | "leave_one_out"
  /**
   * Whether the difference is divided by a standard deviation plus ε, and which: that of its group, where `sample` divides
   * the sum of squares by n − 1 and `population` by n, or that of all differences (`batch`), without those of dropped groups.
   * By default it is not divided.
   */
  readonly deviation?: "none" | "sample" | "population" | "batch"
  /** The ε that is added to the deviation. 0.0001 by default. */
  readonly epsilon?: number
  /** Whether advantages below 0 become 0, so that completions worse than the others are not punished. False by default. */
  readonly positiveOnly?: boolean
  /**
   * Chooses how groups are handled whose rewards are all equal, which give no gradient: `keep` gives them advantages of 0, and
   * `drop` also marks them in `kept`, so that they are neither trained on nor counted in the normalisation of a loss.
   */
  readonly zeroDeviation?: "keep" | "drop"
}

export interface GroupAdvantages<A extends Numbers> {
  readonly advantages: A
  /** 1 for each completion to train on, and 0 for the completions of dropped groups. */
  readonly kept: Uint8Array
  /** The number of groups. */
  readonly groups: number
  /** The number of groups whose rewards are all equal, which includes groups of a single completion. */
  readonly zeroDeviationGroups: number
  /** The number of groups that were dropped. */
  readonly droppedGroups: number
}

/**
 * Computes the advantage of each completion relative to the completions of the same prompt. For a reward r_i in a group
 * of n with mean μ and standard deviation σ:
 *
 *     GRPO (Shao et al. 2024, arXiv:2402.03300)       A_i = (r_i − μ) / (σ + ε)    baseline mean, deviation sample
 *     Dr. GRPO (Liu et al. 2025, arXiv:2503.20783)    A_i = r_i − μ                baseline mean
 *     ScaleRL (Khatri et al. 2025, arXiv:2510.13786)  A_i = (r_i − μ) / (σ_batch + ε)   baseline mean, deviation batch
 *     RLOO (Ahmadian et al. 2024, arXiv:2402.14740)   A_i = r_i − Σ_{j≠i} r_j / (n − 1)   baseline leave_one_out
 *
 * Where all rewards of a group are equal, its advantages are exactly 0. Throws a `RangeError` that names the completion
 * if a reward is not finite.
 *
 * @example
 * ```ts
 * const rewards = Float64Array.of(1, 0, 0.5, 0, 0, 0)
 * const groups = [0, 0, 0, 1, 1, 1]
 * Returns.groupAdvantages({ rewards, groups, baseline: "mean" }).advantages // [0.5, −0.5, 0, 0, 0, 0]
 * Returns.groupAdvantages({ rewards, groups, baseline: "leave_one_out" }).advantages // [0.75, −0.75, 0, 0, 0, 0]
 * Returns.groupAdvantages({ rewards, groups, baseline: "mean", zeroDeviation: "drop" }).kept // [1, 1, 1, 0, 0, 0]
 * ```
 */
export const groupAdvantages = <A extends Numbers>(inputs: GroupAdvantageInputs<A>): GroupAdvantages<A> => {
  const { rewards, groups, baseline, deviation = "none", epsilon = 1e-4, zeroDeviation = "keep" } = inputs
  const least = inputs.positiveOnly === true ? 0 : -Infinity
  checkRows(rewards.length, { groups })
  checkFromZero({ epsilon })
  const members = new Map<number, Array<number>>()
  for (let row = 0; row < rewards.length; row++) {
    const group = groups[row]
    if (!Number.isInteger(group)) throw new RangeError(`groups[${row}]: expected an integer, found ${group}`)
    if (!Number.isFinite(rewards[row]))
      throw new RangeError(`rewards[${row}]: expected a finite number, found ${rewards[row]}`)
    const rows = members.get(group)
    if (rows === undefined) members.set(group, [row])
    else rows.push(row)
  }
  const advantages = emptyLike(rewards)
  const kept = new Uint8Array(rewards.length).fill(1)
  let zeroDeviationGroups = 0
  for (const rows of members.values()) {
    if (rows.every((row) => rewards[row] === rewards[rows[0]])) {
      zeroDeviationGroups++
      if (zeroDeviation === "drop") for (const row of rows) kept[row] = 0
      continue
    }
    const n = rows.length
    // Subtract one reward of the group first, so that a large common part of the rewards costs no precision.
    const origin = rewards[rows[0]]
    let sum = 0
    for (const row of rows) sum += rewards[row] - origin
    const mean = sum / n
    let squares = 0
    for (const row of rows) squares += (rewards[row] - origin - mean) ** 2
    const isScaled = deviation === "sample" || deviation === "population"
    const divisor = isScaled ? Math.sqrt(squares / (deviation === "sample" ? n - 1 : n)) + epsilon : 1
    const factor = baseline === "leave_one_out" ? n / (n - 1) : 1
    for (const row of rows) advantages[row] = (factor * (rewards[row] - origin - mean)) / divisor
  }
  if (deviation === "batch") divideByDeviation(advantages, kept, epsilon)
  for (let row = 0; row < rewards.length; row++) advantages[row] = Math.max(least, advantages[row])
  return {
    advantages,
    kept,
    groups: members.size,
    zeroDeviationGroups,
    droppedGroups: zeroDeviation === "drop" ? zeroDeviationGroups : 0,
  }
}

/** Divides advantages, whose mean is 0 in each group, by their deviation over all completions that are trained on. */
const divideByDeviation = (advantages: Numbers, kept: Uint8Array, epsilon: number): void => {
  let squares = 0
  let counted = 0
  for (let row = 0; row < advantages.length; row++) {
    squares += advantages[row] ** 2
    counted += kept[row]
  }
  const divisor = Math.sqrt(squares / Math.max(1, counted)) + epsilon
  for (let row = 0; row < advantages.length; row++) if (advantages[row] !== 0) advantages[row] /= divisor
}
