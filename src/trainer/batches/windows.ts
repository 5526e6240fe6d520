/**
 * Places samples in windows of equal width, from the longest to the shortest. Each sample goes to the window, among those
 * with room, to which it adds the fewest tokens, which is where its prompt already is (see `sharedPrompts`). If several
 * windows are equal, the first one is taken; if none has room, a new one. Without shared prompts, this is first-fit
 * decreasing. No sample is split between windows.
 *
 * All tokens, read window after window, are sorted by run, because the grouped products of several adapters need that. So two
 * runs share at most one window, in which the first run ends and the second begins at a multiple of `block`.
 *
 * @example
 * ```ts
 * const items = [
 *   { run: 0, tokens: Int32Array.of(1, 2, 3, 4, 5), prompt: 3 },
 *   { run: 0, tokens: Int32Array.of(1, 2, 3, 6), prompt: 3 },
 *   { run: 1, tokens: Int32Array.of(1, 2, 3), prompt: 2 },
 * ]
 * const { windows, placements } = placeInWindows(items, { width: 10, block: 4 })
 * // windows: 2, because run 1 begins at a multiple of 4, where it has no room: the 6 tokens of run 0 are rounded up to 8
 * ```
 */
import { type Prompted, type SharedPrompts, sharedPrompts } from "./sharedPrompts.ts"

/** A sample to place, with the index of its run. */
export interface Item extends Prompted {
  readonly run: number
}

/** The window in which an item is placed, and where. */
export interface Placement {
  /** The index in the list of items. */
  readonly item: number
  readonly window: number
  /** The number of the item's first tokens that are already in the window, because the item before has the same ones. */
  readonly shared: number
  /** The offset in the window of the item's first token that is not shared. */
  readonly start: number
}

interface Windows {
  /** The number of windows. */
  readonly windows: number
  /** The placement of each item, sorted by window and then by start, and thereby also by run. */
  readonly placements: ReadonlyArray<Placement>
}

/** The size of windows: `width` tokens. In a window, a run begins at a multiple of `block`, which divides `width`. */
interface WindowSize {
  readonly width: number
  readonly block: number
}

/** An item with its index in the list of items. */
interface Indexed extends Item {
  readonly index: number
}

/** A window that is being filled with samples of one run, from the offset `begin` on. */
interface Open {
  readonly begin: number
  readonly filled: SharedPrompts<Indexed>
}

/** Rounds up to a multiple of `block`. */
export const roundUp = (count: number, block: number): number => Math.ceil(count / block) * block

const longestFirst = (a: Indexed, b: Indexed): number => b.tokens.length - a.tokens.length || a.index - b.index

/**
 * Returns the items of a run in the order in which they are placed: grouped by prompt, the group with the longest sample
 * first, and in a group the longest sample first. So the samples of a group are placed together before other groups fill the
 * window.
 */
const inGroups = (items: ReadonlyArray<Indexed>): ReadonlyArray<Indexed> => {
  const all = sharedPrompts<Indexed>()
  for (const item of items.toSorted(longestFirst)) all.add(item)
  const groups: Array<Array<Indexed>> = []
  for (const { sample, shared } of all.samples()) {
    const last = groups.at(-1)
    if (last !== undefined && shared === sample.prompt && last[0].prompt === shared) last.push(sample)
    else groups.push([sample])
  }
  return groups.sort(([a], [b]) => longestFirst(a, b)).flat()
}

/** Places all items. Every item must have at least one token, and at most `width`. */
export const placeInWindows = (items: ReadonlyArray<Item>, { width, block }: WindowSize): Windows => {
  const placements: Array<Placement> = []
  let windows = 0
  /** The number of used tokens in the last window so far. The next run begins after them if it has room. */
  let usedInLast = width
  const usedIn = ({ begin, filled }: Open): number => begin + filled.tokens()
  const all = items.map((item, index): Indexed => ({ ...item, index }))
  const runs = [...new Set(items.map(({ run }) => run))].sort((a, b) => a - b)
  for (const run of runs) {
    const last: Open = { begin: roundUp(usedInLast, block), filled: sharedPrompts() }
    const open = [last]
    for (const item of inGroups(all.filter((one) => one.run === run))) {
      const own = item.tokens.length - item.prompt
      let best: Open | undefined
      let fewest = Infinity
      for (const window of open) {
        const room = width - usedIn(window)
        // Skip windows that are too full for this sample even if it shares its whole prompt, without computing the cost.
        if (room < own || fewest === own) continue
        const cost = window.filled.cost(item)
        if (cost > room || cost >= fewest) continue
        fewest = cost
        best = window
      }
      if (best === undefined) {
        best = { begin: 0, filled: sharedPrompts() }
        open.push(best)
      }
      best.filled.add(item)
    }
    const place = ({ begin, filled }: Open, window: number): void => {
      let start = begin
      for (const { sample, shared } of filled.samples()) {
        placements.push({ item: sample.index, window, shared, start })
        start += sample.tokens.length - shared
      }
    }
    const [, ...added] = open
    place(last, windows - 1)
    // The window with the most room is placed last, because the next run can begin in it.
    const roomiest = added.reduce((least, window, at) => (usedIn(window) < usedIn(added[least]) ? at : least), 0)
    const sorted = [...added.filter((_, at) => at !== roomiest), ...added.slice(roomiest, roomiest + 1)]
    for (const window of sorted) place(window, windows++)
    usedInLast = usedIn(sorted.at(-1) ?? last)
  }
  return { windows, placements }
}
