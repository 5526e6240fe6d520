/** Finds the name that a misspelt key, env or agent stands for, for hints in error messages. It only computes. */

/** Returns the smallest number of letters to insert, delete or replace to change one word into the other. */
export const editDistance = (from: string, to: string): number => {
  let previous = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (let i = 1; i <= from.length; i++) {
    const current = [i]
    for (let j = 1; j <= to.length; j++) {
      const replaced = previous[j - 1] + (from[i - 1] === to[j - 1] ? 0 : 1)
      current.push(Math.min(previous[j] + 1, current[j - 1] + 1, replaced))
    }
    previous = current
  }
  return previous[to.length]
}

/** Tells whether the words differ only by two swapped neighbouring letters: `modle`, `model`. */
const isSwapped = (from: string, to: string): boolean => {
  const at = [...from].findIndex((letter, index) => letter !== to[index])
  return at >= 0 && from === `${to.slice(0, at)}${to[at + 1] ?? ""}${to[at]}${to.slice(at + 2)}`
}

/**
 * Returns the candidate that `word` was probably meant to be: the nearest one, if at most a third of its letters (or
 * one letter) differ, as in `cartpole` for `cartpol`. If no candidate is near, it is the only one that begins with the
 * word, as `reflexion_agent` for `reflexion`. Returns undefined if there is neither.
 */
export const closest = (word: string, candidates: ReadonlyArray<string>): string | undefined => {
  const plain = (text: string) => text.toLowerCase().replace(/[-_ ]/g, "")
  const distanceTo = (candidate: string): number =>
    isSwapped(plain(word), plain(candidate)) ? 1 : editDistance(plain(word), plain(candidate))
  const ranked = candidates
    .map((candidate) => ({ candidate, distance: distanceTo(candidate) }))
    .filter(({ candidate, distance }) => distance <= Math.max(1, Math.floor(plain(candidate).length / 3)))
    .sort((a, b) => a.distance - b.distance)
  if (ranked.length > 0) return ranked[0].candidate
  const longer = candidates.filter((candidate) => beginsWith(candidate, word))
  return longer.length === 1 ? longer[0] : undefined
}

/** Returns the end of a message about an unknown value: a similar candidate, or the list of all candidates. */
export const choiceHint = (value: unknown, candidates: ReadonlyArray<string>): string => {
  const near = typeof value === "string" ? closest(value, candidates) : undefined
  return near === undefined ? `expected one of ${candidates.join(", ")}` : `did you mean "${near}"?`
}

/**
 * Tells whether a candidate begins with all parts of `word`: `tool` begins `tool_agent` and `toolAgent`, but not
 * `toolbox`. A word of one or two letters is too short to count.
 */
const beginsWith = (candidate: string, word: string): boolean => {
  const partsOf = (text: string) =>
    text
      .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
      .toLowerCase()
      .split(/[-_ ]+/)
  const [candidateParts, parts] = [partsOf(candidate), partsOf(word)]
  return word.length >= 3 && parts.every((part, index) => part === candidateParts[index])
}
