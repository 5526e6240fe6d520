/**
 * Who is credited with what: rewards of rollouts that were delegated from one another, shared out among them, and then
 * among their steps.
 *
 * @example
 * ```ts
 * // A sub-agent gets half of what its parent does, and half of what it earned by itself; later turns count less.
 * const credit = Credit.toGo(Credit.mixed({ share: 0.5, discount: 0.9 }), { discount: 0.99 })
 * const samples = yield* Samples.of(rollouts, { credit })
 * ```
 */
import type { Rollout, Step } from "../Rollout.ts"

/** What each of the rollouts, by its id, is credited with. Whose parent isn't among them is a first one. */
export type RolloutCredit = (rollouts: ReadonlyArray<Rollout>) => ReadonlyMap<string, number>

/** What each of the steps, by its id, is credited with. */
export type StepCredit = (rollouts: ReadonlyArray<Rollout>) => ReadonlyMap<string, number>

/** Each gets the reward that it earned itself. */
export const own: RolloutCredit = (rollouts) => new Map(rollouts.map(({ id, totalReward }) => [id, totalReward]))

export interface Mix {
  /** From 0, which is `own`, to 1. */
  readonly share: number
  /** For each level of depth. */
  readonly discount: number
}

/** Throws where a number can't be meant. */
const within = (name: string, value: number): void => {
  if (!(value >= 0 && value <= 1)) throw new RangeError(`${name}: expected a number from 0 to 1, found ${value}`)
}

/** Each gets `1 − share` of its own reward, and `share`, discounted, of what its parent is credited with. */
export const mixed = ({ share, discount }: Mix): RolloutCredit => {
  within("share", share)
  within("discount", discount)
  return (rollouts) => {
    const byId = new Map(rollouts.map((rollout) => [rollout.id, rollout]))
    const credits = new Map<string, number>()
    const creditOf = ({ id, totalReward, meta: { parentRolloutId } }: Rollout): number => {
      const known = credits.get(id)
      if (known !== undefined) return known
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

/** Each gets what the first one of its tree got in the end: whoever helped is as good as the outcome. */
export const parents: RolloutCredit = mixed({ share: 1, discount: 1 })

/**
 * What a rollout has, of its own and from its parent, it keeps but for `share`, which its children get in equal parts: so
 * the credits of a tree add up to its rewards.
 */
export const shared = ({ share }: Pick<Mix, "share">): RolloutCredit => {
  within("share", share)
  return (rollouts) => {
    const credits = new Map(rollouts.map(({ id, totalReward }) => [id, totalReward]))
    const children = Map.groupBy(
      rollouts.filter(({ meta: { parentRolloutId } }) => parentRolloutId !== null && credits.has(parentRolloutId)),
      ({ meta }) => meta.parentRolloutId,
    )
    for (const { id } of rollouts.toSorted((a, b) => a.meta.depth - b.meta.depth)) {
      const heirs = children.get(id) ?? []
      const has = credits.get(id) ?? 0
      if (heirs.length === 0) continue
      credits.set(id, (1 - share) * has)
      for (const heir of heirs) credits.set(heir.id, (credits.get(heir.id) ?? 0) + (share * has) / heirs.length)
    }
    return credits
  }
}

/** A turn that only looks back: everything was earned before it. */
const isAfterwards = (steps: ReadonlyArray<Step>): boolean =>
  steps.every((step) => step._tag === "AgentStep" && step.call.purpose === "reflection")

/** The steps of each turn, in order. */
export const turnsOf = ({ steps }: Rollout): ReadonlyArray<ReadonlyArray<Step>> =>
  Array.from(Map.groupBy(steps, ({ turnId }) => turnId).values())

const perTurn =
  (credit: RolloutCredit, turns: (rollout: Rollout, credited: number) => ReadonlyArray<number>): StepCredit =>
  (rollouts) => {
    const credits = credit(rollouts)
    const all = new Map<string, number>()
    for (const rollout of rollouts) {
      const grouped = turnsOf(rollout)
      const values = turns(rollout, credits.get(rollout.id) ?? 0)
      for (const [at, steps] of grouped.entries()) for (const { id } of steps) all.set(id, values[at])
    }
    return all
  }

/** Every step gets what its rollout is credited with; those that look back when all is over get nothing. */
export const episodic = (credit: RolloutCredit = own): StepCredit =>
  perTurn(credit, (rollout, credited) => turnsOf(rollout).map((steps) => (isAfterwards(steps) ? 0 : credited)))

/**
 * The steps of a turn get what was earned from that turn on, discounted from turn to turn. What a rollout is credited
 * with beyond its own reward counts as earned in its last turn.
 */
export const toGo = (
  credit: RolloutCredit = own,
  { discount = 1 }: Partial<Pick<Mix, "discount">> = {},
): StepCredit => {
  within("discount", discount)
  return perTurn(credit, (rollout, credited) => {
    const turns = turnsOf(rollout)
    const values: Array<number> = turns.map(() => 0)
    let ahead = credited - rollout.totalReward
    let isLast = true
    for (let at = turns.length - 1; at >= 0; at--) {
      if (isAfterwards(turns[at])) continue
      const earned = turns[at].reduce((sum, { reward }) => sum + reward, 0)
      ahead = earned + (isLast ? 1 : discount) * ahead
      isLast = false
      values[at] = ahead
    }
    return values
  })
}
