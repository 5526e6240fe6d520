/**
 * Places samples in windows of equal width by first-fit decreasing: the longest sample first, each in the first window
 * that has room, else in a new one. A sample never crosses a window. It is plain arithmetic on lengths.
 *
 * The tokens of the windows, read one window after another, are sorted by run, as the grouped products of several
 * adapters need it. So two runs share at most one window: the one where the first run ends and the second begins. There
 * the second run begins at a multiple of `block`.
 *
 * @example
 * ```ts
 * const { windows, placements } = placeInWindows([{ run: 0, length: 5 }, { run: 1, length: 3 }], { width: 8, block: 4 })
 * // windows: 2, because run 1 begins at a multiple of 4, where it has no room: 5 is rounded up to 8
 * ```
 */

/** A sample to place: the index of its run, and its number of tokens. */
export interface Item {
  readonly run: number
  readonly length: number
}

/** The place of an item: its position in the list of items, its window, and its first token in the window. */
export interface Placement {
  readonly item: number
  readonly window: number
  readonly start: number
}

export interface Windows {
  /** The number of windows. */
  readonly windows: number
  /** One for each item, sorted by window and then by start; so they are also sorted by run. */
  readonly placements: ReadonlyArray<Placement>
}

/** The size of windows: `width` tokens, and `block`, a divisor of it, at whose multiples a run begins in a window. */
export interface WindowSize {
  readonly width: number
  readonly block: number
}

/** A window while it is filled with the samples of one run. */
interface Open {
  used: number
  /** The items of the run with their starts. */
  readonly items: Array<{ readonly item: number; readonly start: number }>
}

/** Rounds up to a multiple of `block`. */
export const roundUp = (count: number, block: number): number => Math.ceil(count / block) * block

/** Places all items. Every item must have at least one token, and at most `width`. */
export const placeInWindows = (items: ReadonlyArray<Item>, { width, block }: WindowSize): Windows => {
  // By run, then from the longest to the shortest. The sort is stable, so equal ones keep the order of the list.
  const order = Array.from(items.keys()).sort(
    (a, b) => items[a].run - items[b].run || items[b].length - items[a].length,
  )
  const placements: Array<Placement> = []
  let windows = 0
  /** The last window so far, where the next run begins if it has room: the tokens that are used in it. */
  let usedInLast = width
  for (let from = 0, to = 0; from < order.length; from = to) {
    const { run } = items[order[from]]
    while (to < order.length && items[order[to]].run === run) to++
    const shared: Open = { used: roundUp(usedInLast, block), items: [] }
    const open = [shared]
    for (const item of order.slice(from, to)) {
      const { length } = items[item]
      let window = open.find(({ used }) => used + length <= width)
      if (window === undefined) {
        window = { used: 0, items: [] }
        open.push(window)
      }
      window.items.push({ item, start: window.used })
      window.used += length
    }
    const [, ...added] = open
    for (const { item, start } of shared.items) placements.push({ item, window: windows - 1, start })
    // The window with the most room comes last, because the next run can begin there.
    const roomiest = added.reduce((least, { used }, at) => (used < added[least].used ? at : least), 0)
    const sorted = [...added.filter((_, at) => at !== roomiest), ...added.slice(roomiest, roomiest + 1)]
    for (const window of sorted) {
      for (const { item, start } of window.items) placements.push({ item, window: windows, start })
      windows++
    }
    usedInLast = sorted.at(-1)?.used ?? shared.used
  }
  return { windows, placements }
}
