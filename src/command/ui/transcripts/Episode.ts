/**
 * Defines an episode in the list of episodes, and selects, sorts and searches episodes. The server and the page use this
 * file.
 */

export interface ListedEpisode {
  /** The key by which requests name the episode, such as `train-12`, `val50-3` or `rollouts-1`. */
  readonly key: string
  /** The name of the episodes that were played together, such as `train` or `val50`. The key begins with it. */
  readonly group: string
  readonly phase: "train" | "validation" | "batch"
  /** The number of training episodes before this validation, or the index of an evaluated agent; null for others. */
  readonly seen: number | null
  /** The name of the agent that played, in an evaluation; null for other episodes. */
  readonly contestant: string | null
  /** The number of the episode in its group; the first is 1. */
  readonly number: number
  /** The id of the episode's rollout; null if there are only scores. */
  readonly id: string | null
  readonly env: string
  readonly agent: string | null
  readonly player: string | null
  /** The return. For an episode in progress, it is the return so far. */
  readonly return: number
  /** The number of scored steps. */
  readonly length: number
  readonly ending: "terminated" | "truncated" | null
  readonly reason: string | null
  /** The error that ended the episode; null if it didn't fail. */
  readonly failed: string | null
  /** The number of rollouts of other agents to which the agent delegated, directly or through others. */
  readonly delegated: number
  /** The step, the group and the advantage that a multi-run trainer assigned to the episode; null for other episodes. */
  readonly trained: TrainedEpisode | null
}

/** An episode that a multi-run trainer trained on. */
interface TrainedEpisode {
  /** The step of the run to which the episode belongs. */
  readonly step: number
  /** The number of the group in its step. The episodes of a group answer the same task and are compared with each other. */
  readonly group: number
  /** The episode's reward in comparison with the rewards of its group; null if the step compared no rewards. */
  readonly advantage: number | null
  /** The beginnings of the task and of the last answer; null if they were not recorded. */
  readonly task: string | null
  readonly answer: string | null
}

export const orders = ["oldest", "newest", "highest", "lowest", "highestAdvantage", "lowestAdvantage"] as const
/** The conditions and the order of a requested list. */
export interface EpisodeQuery {
  /** The phase or the group of the episodes to select. */
  readonly phase: string
  /** The lowest return (`least`) and the highest return (`most`) of the episodes to select; null for no bound. */
  readonly least: number | null
  readonly most: number | null
  /**
   * The lowest and the highest advantage of the episodes to select; null for no bound. With a bound, only episodes that have
   * an advantage are selected.
   */
  readonly leastAdvantage: number | null
  readonly mostAdvantage: number | null
  /** Whether only failed episodes are selected. */
  readonly failed: boolean
  readonly order: (typeof orders)[number]
}

const advantageOf = ({ trained }: ListedEpisode): number | null => trained?.advantage ?? null

const isWithin = (value: number | null, least: number | null, most: number | null): boolean =>
  (least === null || (value !== null && value >= least)) && (most === null || (value !== null && value <= most))

/** Moves all episodes of a group next to the first one of the group. */
const together = <One extends ListedEpisode>(episodes: ReadonlyArray<One>): ReadonlyArray<One> => {
  const groupOf = ({ key, trained }: One): string => (trained === null ? key : `${trained.step} ${trained.group}`)
  return [...Map.groupBy(episodes, groupOf).values()].flat()
}

/**
 * Returns the largest absolute advantage of all episodes, which gets the strongest colour; null if no episode has an
 * advantage.
 */
export const largestAdvantage = (episodes: ReadonlyArray<ListedEpisode>): number | null =>
  episodes.reduce<number | null>((largest, one) => {
    const advantage = advantageOf(one)
    return advantage === null ? largest : Math.max(largest ?? 0, Math.abs(advantage))
  }, null)

/**
 * Returns the selected episodes in the requested order. Episodes with equal values stay in the order in which they were
 * played; episodes without an advantage come after those that have one. In the order by time, the episodes of a group are
 * next to each other.
 */
export const chosen = <One extends ListedEpisode>(
  episodes: ReadonlyArray<One>,
  { phase, least, most, leastAdvantage, mostAdvantage, failed, order }: EpisodeQuery,
): ReadonlyArray<One> => {
  const selected = episodes.filter(
    (one) =>
      (phase === "" || one.phase === phase || one.group === phase) &&
      isWithin(one.return, least, most) &&
      isWithin(advantageOf(one), leastAdvantage, mostAdvantage) &&
      (!failed || one.failed !== null),
  )
  if (order === "newest") return together(selected.toReversed())
  if (order === "oldest") return together(selected)
  const isDescending = order === "highest" || order === "highestAdvantage"
  const last = isDescending ? -Infinity : Infinity
  const valueOf = (one: One): number =>
    order === "highest" || order === "lowest" ? one.return : (advantageOf(one) ?? last)
  return selected.toSorted((a, b) => {
    const [x, y] = isDescending ? [valueOf(b), valueOf(a)] : [valueOf(a), valueOf(b)]
    return x === y ? 0 : x - y
  })
}

/**
 * Returns the requested part of the selected episodes: the part from index `from`, or the part that contains the episode with
 * the key `at`.
 */
export const pageOf = <One extends ListedEpisode>(
  matching: ReadonlyArray<One>,
  { from, count, at }: { readonly from: number; readonly count: number; readonly at?: string | null },
) => {
  const place = matching.findIndex(({ key }) => key === at)
  const first = place < 0 ? from : Math.floor(place / count) * count
  return { matching: matching.length, from: first, episodes: matching.slice(first, first + count) }
}

/** Tells whether any string in a value contains `wanted`, which is in lower case. Names of fields are not searched. */
export const says = (value: unknown, wanted: string): boolean => {
  // This is a loop instead of a recursion, because a file may nest lists more deeply than the stack allows.
  const left = [value]
  while (left.length > 0) {
    const one = left.pop()
    if (typeof one === "string") {
      if (one.toLowerCase().includes(wanted)) return true
    } else if (Array.isArray(one)) {
      // Lists of numbers, such as token ids, have no strings.
      if (typeof one[0] !== "number") for (const item of one) left.push(item)
    } else if (typeof one === "object" && one !== null) {
      for (const item of Object.values(one)) left.push(item)
    }
  }
  return false
}
