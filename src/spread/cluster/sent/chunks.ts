/**
 * Divides a list of items, such as the episodes of an evaluation, into chunks, so that a job lasts for some seconds. The
 * chunks depend only on the number of items, so that a resumed run asks for the same jobs again.
 */

/** The items of a list from index `from` up to, but without, index `to`. */
export interface Chunk {
  readonly from: number
  readonly to: number
}

/**
 * The largest number of items in a chunk, and the default for the smallest number of chunks (fewer if there are fewer items).
 */
const largest = 64
const fewest = 256

/** Returns how many items a chunk has, for `total` items in at least `chunks` chunks. */
export const chunkSize = (total: number, chunks = fewest): number =>
  Math.min(largest, Math.max(1, Math.ceil(total / chunks)))

/** Lists the chunks of `total` items. */
export const chunksOf = (total: number, size: number): ReadonlyArray<Chunk> =>
  Array.from({ length: Math.ceil(total / size) }, (_, at) => ({
    from: at * size,
    to: Math.min(total, (at + 1) * size),
  }))

export const indicesOf = ({ from, to }: Chunk): ReadonlyArray<number> =>
  Array.from({ length: to - from }, (_, at) => from + at)
