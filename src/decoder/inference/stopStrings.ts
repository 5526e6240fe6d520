/**
 * Finds stop strings in a text that comes in pieces. The text ends before the stop string that is complete first; of those
 * that are complete at the same character, before the longest. The result does not depend on where the pieces end.
 */
export interface StopSearch {
  /**
   * Takes the next piece of the text, and returns what is certain to precede every stop string. The rest, which could be the
   * beginning of one, is held back.
   */
  readonly push: (piece: string) => string
  /** The stop string that was found; the text ends before it. */
  readonly found: () => string | null
  /** Returns the text that was held back. Call it when no further piece comes. */
  readonly end: () => string
}

export const makeStopSearch = (stops: ReadonlyArray<string>): StopSearch => {
  let longest = 0
  for (const stop of stops) longest = Math.max(longest, stop.length)
  let held = ""
  let found: string | null = null

  const push = (piece: string): string => {
    if (found !== null) return ""
    if (longest === 0) return piece
    const text = held + piece
    for (let end = held.length + 1; end <= text.length; end++) {
      for (const stop of stops) {
        if (stop.length > (found?.length ?? 0) && text.endsWith(stop, end)) found = stop
      }
      if (found !== null) {
        held = ""
        return text.slice(0, end - found.length)
      }
    }
    let keep = Math.min(longest - 1, text.length)
    while (keep > 0 && !stops.some((stop) => stop.length > keep && stop.startsWith(text.slice(text.length - keep))))
      keep--
    held = text.slice(text.length - keep)
    return text.slice(0, text.length - keep)
  }

  return {
    push,
    found: () => found,
    end: () => {
      const rest = held
      held = ""
      return rest
    },
  }
}
