/** How many single letters must be inserted, deleted or replaced to get from one word to the other. */
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

/** The candidate that somebody probably meant, if one is near: `closest("cartpol", ["cartpole", "acrobot"])`. */
export const closest = (word: string, candidates: ReadonlyArray<string>): string | undefined => {
  const plain = (text: string) => text.toLowerCase().replace(/[-_ ]/g, "")
  const ranked = candidates
    .map((candidate) => ({ candidate, distance: editDistance(plain(word), plain(candidate)) }))
    .filter(({ candidate, distance }) => distance <= Math.max(1, Math.floor(plain(candidate).length / 3)))
    .sort((a, b) => a.distance - b.distance)
  return ranked[0]?.candidate
}
