/**
 * Credit assignment: `own`, `mixed`, `parents` and `shared` distribute rewards among the rollouts of agents and
 * sub-agents; then `episodic` and `toGo` distribute a rollout's credit among its steps, for training samples.
 *
 * @example
 * ```ts
 * // A sub-agent gets half of its parent's credit and half of its own reward; later rewards are discounted.
 * const credit = Credit.toGo(Credit.mixed({ share: 0.5, discount: 0.9 }), { discount: 0.99 })
 * const samples = yield* Samples.of(rollouts, { credit })
 * ```
 */
import type { Rollout, RolloutStep } from "../Rollout.ts"

/**
 * Computes the credit of each rollout, by its id. A rollout's parent is the rollout whose agent delegated it; a rollout
 * whose parent is not among `rollouts` counts as one without a parent.
 */
export type RolloutCredit = (rollouts: ReadonlyArray<Rollout>) => ReadonlyMap<string, number>

/** Computes the credit of each step of the rollouts, by the step's id. */
export type StepCredit = (rollouts: ReadonlyArray<Rollout>) => ReadonlyMap<string, number>

/** Credits each rollout with its total reward. */
export const own: RolloutCredit = (rollouts) => new Map(rollouts.map(({ id, totalReward }) => [id, totalReward]))

export interface Mix {
  /** The share of the parent's credit in a rollout's credit, from 0 (as in `own`) to 1. */
  readonly share: number
  /** The factor for the parent's credit at each level of delegation. */
  readonly discount: number
}

const checkFraction = (name: string, value: number): void => {
  if (!(value >= 0 && value <= 1)) throw new RangeError(`${name}: expected a number from 0 to 1, found ${value}`)
}

/**
 * Credits a rollout with `1 − share` of its reward plus `share · discount` of its parent's credit. A rollout without a parent
 * gets its whole reward.
 */
export const mixed = ({ share, discount }: Mix): RolloutCredit => {
  checkFraction("share", share)
  checkFraction("discount", discount)
  return (rollouts) => {
    const byId = new Map(rollouts.map((rollout) => [rollout.id, rollout]))
    const credits = new Map<string, number>()
    const creditOf = ({ id, totalReward, meta: { parentRolloutId } }: Rollout): number => {
      const computed = credits.get(id)
      if (computed !== undefined) return computed
      const parent = parentRolloutId === null ? undefined : byId.get(parentRolloutId)
      const credit =
        parent === undefined ? totalReward : (1 - share) * totalReward + share * discount * creditOf(parent)
      credits.set(id, credit)
      return credit
    }
    for (const rollout of rollouts) creditOf(rollout)
    return credits
  }
}

/** Credits each rollout with the reward of its first ancestor, which was not delegated. */
export const parents: RolloutCredit = mixed({ share: 1, discount: 1 })

/**
 * Lets each rollout pass credit on to its children (the rollouts that it delegated). It starts with its own reward plus the
 * credit from its parent. It gives `share` of this sum to its children, in equal parts, and keeps the rest; without children
 * it keeps all. So the sum of all credits is the sum of all rewards.
 */
export const shared = ({ share }: Pick<Mix, "share">): RolloutCredit => {
  checkFraction("share", share)
  return (rollouts) => {
    const credits = new Map(rollouts.map(({ id, totalReward }) => [id, totalReward]))
    const children = Map.groupBy(
      rollouts.filter(({ meta: { parentRolloutId } }) => parentRolloutId !== null && credits.has(parentRolloutId)),
      ({ meta }) => meta.parentRolloutId,
    )
    for (const { id } of rollouts.toSorted((a, b) => a.meta.depth - b.meta.depth)) {
      const ownChildren = children.get(id) ?? []
      const total = credits.get(id) ?? 0
      if (ownChildren.length === 0) continue
      credits.set(id, (1 - share) * total)
      for (const child of ownChildren)
        credits.set(child.id, (credits.get(child.id) ?? 0) + (share * total) / ownChildren.length)
    }
    return credits
  }
}

/** Tells whether a turn is a reflection. Reflections come after all rewards, so they get no credit. */
const isReflection = (steps: ReadonlyArray<RolloutStep>): boolean =>
  steps.every((step) => step._tag === "AgentStep" && step.call.purpose === "reflection")

/** Groups the steps of a rollout by turns, in order. */
export const turnsOf = ({ steps }: Rollout): ReadonlyArray<ReadonlyArray<RolloutStep>> =>
  Array.from(Map.groupBy(steps, ({ turnId }) => turnId).values())

/** Makes a `StepCredit` from a function that returns the credit of each turn. All steps of a turn get the turn's credit. */
const perTurn =
  (
    credit: RolloutCredit,
    creditsOf: (turns: ReturnType<typeof turnsOf>, total: number, rollout: Rollout) => ReadonlyArray<number>,
  ): StepCredit =>
  (rollouts) => {
    const credits = credit(rollouts)
    const all = new Map<string, number>()
    for (const rollout of rollouts) {
      const turns = turnsOf(rollout)
      const values = creditsOf(turns, credits.get(rollout.id) ?? 0, rollout)
      for (const [at, steps] of turns.entries()) for (const { id } of steps) all.set(id, values[at])
    }
    return all
  }

/** Credits every step with its rollout's credit, and reflections with 0. */
export const episodic = (credit: RolloutCredit = own): StepCredit =>
  perTurn(credit, (turns, total) => turns.map((steps) => (isReflection(steps) ? 0 : total)))

/**
 * Credits the steps of a turn with the rewards of this turn and later ones, discounted by turn (reward to go). If `credit`
 * differs from the rollout's own reward, the difference counts as a reward of the last turn.
 */
export const toGo = (
  credit: RolloutCredit = own,
  { discount = 1 }: Partial<Pick<Mix, "discount">> = {},
): StepCredit => {
  checkFraction("discount", discount)
  return perTurn(credit, (turns, total, { totalReward }) => {
    const values: Array<number> = turns.map(() => 0)
    // The discounted rewards after turn `at`. It starts with the difference between the rollout's credit and its reward.
    let ahead = total - totalReward
    let isLast = true
    for (let at = turns.length - 1; at >= 0; at--) {
      if (isReflection(turns[at])) continue
      const earned = turns[at].reduce((sum, { reward }) => sum + reward, 0)
      ahead = earned + (isLast ? 1 : discount) * ahead
      isLast = false
      values[at] = ahead
    }
    return values
  })
}
