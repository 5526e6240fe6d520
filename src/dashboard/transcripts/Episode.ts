/** An episode of an agent that talks, as a line of the list; and which of them somebody asks for. */

export interface Episode {
  /** What it is asked for by: `train-12`, `val50-3`, `rollouts-1`. */
  readonly key: string
  /** `train`, `val50`, `rollouts`: what the keys of those played together begin with. */
  readonly group: string
  readonly phase: "train" | "validation" | "batch"
  /** In a validation: after how many training episodes; in an evaluation: the place of its agent. */
  readonly seen: number | null
  /** In an evaluation: the name of the agent that played it. */
  readonly contestant: string | null
  /** In its group, from 1. */
  readonly number: number
  /** Of its rollout; null of one that only its scores tell of. */
  readonly id: string | null
  readonly env: string
  readonly agent: string | null
  readonly player: string | null
  /** What it has earned so far, of one that goes on. */
  readonly return: number
  /** Scored steps. */
  readonly length: number
  readonly ending: "terminated" | "truncated" | null
  readonly reason: string | null
  /** Why there is no more of it. */
  readonly failed: string | null
  /** Rollouts below it. */
  readonly delegated: number
}

export const orders = ["oldest", "newest", "highest", "lowest"] as const
export type Order = (typeof orders)[number]

export interface Asked {
  /** A phase, or a group. */
  readonly phase: string
  /** Bounds of the return. */
  readonly least: number | null
  readonly most: number | null
  readonly failed: boolean
  readonly order: Order
}

/** The episodes that are asked for, in that order; equal returns stay as they were played. */
export const chosen = <One extends Episode>(
  episodes: ReadonlyArray<One>,
  { phase, least, most, failed, order }: Asked,
): ReadonlyArray<One> => {
  const found = episodes.filter(
    (one) =>
      (phase === "" || one.phase === phase || one.group === phase) &&
      (least === null || one.return >= least) &&
      (most === null || one.return <= most) &&
      (!failed || one.failed !== null),
  )
  if (order === "newest") return found.toReversed()
  if (order === "oldest") return found
  return found.toSorted((a, b) => (order === "highest" ? b.return - a.return : a.return - b.return))
}

/** Does any of the texts in it, at whatever depth, hold this one? Names of fields are no texts. */
export const says = (value: unknown, wanted: string): boolean => {
  // Not by calling itself: a file may hold lists in lists that are deeper than a stack.
  const left = [value]
  while (left.length > 0) {
    const one = left.pop()
    if (typeof one === "string") {
      if (one.toLowerCase().includes(wanted)) return true
    } else if (Array.isArray(one)) {
      if (typeof one[0] !== "number") for (const item of one) left.push(item)
    } else if (typeof one === "object" && one !== null) {
      for (const item of Object.values(one)) left.push(item)
    }
  }
  return false
}
