/** Arranges the pictures of episodes in movies, and bounds their number. It draws nothing, so browsers can load it. */

/** A picture of a movie: an SVG document, or one for each of several episodes, side by side in tiles. */
export type Frame = string | ReadonlyArray<string>

/**
 * Returns the pictures of episodes that are played at the same time, in tiles. An episode that has ended shows its last
 * picture until the others have ended, too.
 */
export const sideBySide = (episodes: ReadonlyArray<ReadonlyArray<string>>): ReadonlyArray<ReadonlyArray<string>> => {
  const drawn = episodes.filter(({ length }) => length > 0)
  const longest = drawn.reduce((most, { length }) => Math.max(most, length), 0)
  return Array.from({ length: longest }, (_, index) =>
    drawn.map((pictures) => pictures[Math.min(index, pictures.length - 1)]),
  )
}

/**
 * Leaves out pictures so that at most `most` are left: every `stride`-th one and the last. A movie of them must be slower
 * by `stride`.
 */
export const thinnedFrames = <Picture>(
  pictures: ReadonlyArray<Picture>,
  most: number,
): { readonly frames: ReadonlyArray<Picture>; readonly stride: number } => {
  const last = pictures.length - 1
  if (most < 2) return { frames: pictures.slice(-most), stride: Math.max(1, pictures.length) }
  const stride = Math.max(1, Math.ceil(last / (most - 1)))
  return { frames: pictures.filter((_, index) => index % stride === 0 || index === last), stride }
}

/** The pictures of a movie, how many of them it shows per second, and the longer side in pixels, if that is not their own. */
export interface Movie {
  readonly frames: ReadonlyArray<Frame>
  readonly speed: number
  readonly side?: number
}
