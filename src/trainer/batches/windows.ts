/**
 * Places samples in windows of equal width, from the longest to the shortest. Each goes to the window with room to which it
 * adds the fewest tokens, so to other samples with its prompt (see `sharedPrompts`); among equal ones to the first; and
 * without any to a new one. If no samples share tokens, this is first-fit decreasing. A sample never crosses a window.
 *
 * The tokens of the windows, read one window after another, are sorted by run, as the grouped products of several
 * adapters need it. So two runs share at most one window: the one where the first run ends and the second begins. There
 * the second run begins at a multiple of `block`.
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

/** The place of an item. */
export interface Placement {
  /** The position in the list of items. */
  readonly item: number
  readonly window: number
  /** The number of its first tokens that stand in the window already, as those of the item before it. */
  readonly shared: number
  /** The place in the window of its first token that is not shared. */
  readonly start: number
}

interface Windows {
  /** The number of windows. */
  readonly windows: number
  /** One for each item, sorted by window and then by start; so they are also sorted by run. */
  readonly placements: ReadonlyArray<Placement>
}

/** The size of windows: `width` tokens, and `block`, a divisor of it, at whose multiples a run begins in a window. */
interface WindowSize {
  readonly width: number
  readonly block: number
}

/** An item with its position in the list of items. */
interface Indexed extends Item {
  readonly index: number
}

/** A window while it is filled with the samples of one run, which begin at a place in it. */
interface Open {
  readonly begin: number
  readonly filled: SharedPrompts<Indexed>
}

/** Rounds up to a multiple of `block`. */
export const roundUp = (count: number, block: number): number => Math.ceil(count / block) * block

const longestFirst = (a: Indexed, b: Indexed): number => b.tokens.length - a.tokens.length || a.index - b.index

/**
 * Returns the items of a run in the order in which they are placed: by groups with the same prompt, from that with the
 * longest sample to that with the shortest, and in a group from the longest sample to the shortest. So the samples of a
 * group come to each other before a window is full of others.
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
  /** The last window so far, where the next run begins if it has room: the tokens that are used in it. */
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
        // Many windows are full, even for a sample that shares its whole prompt.
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
    // The window with the most room comes last, because the next run can begin there.
    const roomiest = added.reduce((least, window, at) => (usedIn(window) < usedIn(added[least]) ? at : least), 0)
    const sorted = [...added.filter((_, at) => at !== roomiest), ...added.slice(roomiest, roomiest + 1)]
    for (const window of sorted) place(window, windows++)
    usedInLast = usedIn(sorted.at(-1) ?? last)
  }
  return { windows, placements }
}
