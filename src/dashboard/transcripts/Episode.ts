/** An episode of a language-model agent, as the list shows it; and the query that selects episodes. */

export interface Episode {
  /** The key in requests: `train-12`, `val50-3`, `rollouts-1`. */
  readonly key: string
  /** The beginning of the keys of episodes played together: `train`, `val50`, `rollouts`. */
  readonly group: string
  readonly phase: "train" | "validation" | "batch"
  /** In a validation: the number of training episodes until then. In an evaluation: the index of the agent. */
  readonly seen: number | null
  /** In an evaluation: the name of the agent. */
  readonly contestant: string | null
  /** The number in its group, from 1. */
  readonly number: number
  /** The id of its rollout; null if there are only scores. */
  readonly id: string | null
  readonly env: string
  readonly agent: string | null
  readonly player: string | null
  /** The return so far, if the episode is still in progress. */
  readonly return: number
  /** The number of scored steps. */
  readonly length: number
  readonly ending: "terminated" | "truncated" | null
  readonly reason: string | null
  /** The error that ended the episode, if it failed. */
  readonly failed: string | null
  /** The number of rollouts below it. */
  readonly delegated: number
}

export const orders = ["oldest", "newest", "highest", "lowest"] as const
export type Order = (typeof orders)[number]

export interface Asked {
  /** A phase or a group. */
  readonly phase: string
  /** The bounds of the return. */
  readonly least: number | null
  readonly most: number | null
  readonly failed: boolean
  readonly order: Order
}

/** Returns the selected episodes in the requested order. Equal returns keep the order of play. */
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

/** Tells whether any text in a value contains another text. Names of fields don't count. */
export const says = (value: unknown, wanted: string): boolean => {
  // A loop instead of recursion, since a file may nest lists deeper than the stack.
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
