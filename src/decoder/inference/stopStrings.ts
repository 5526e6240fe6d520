/**
 * Finds stop strings in a text that arrives in pieces. The text ends before the stop string that is completed first; if
 * several are completed by the same character, before the longest one. The result does not depend on where the pieces end.
 */
export interface StopSearch {
  /**
   * Adds the next piece of the text, and returns the text that certainly comes before every stop string. The rest, which
   * could be the beginning of a stop string, is held back.
   */
  readonly push: (piece: string) => string
  /** Returns the stop string that was found, before which the text ends; null if there is none yet. */
  readonly found: () => string | null
  /** Returns the text that was held back. Call it after the last piece. */
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
