/**
 * Divides adjacent items, such as the episodes of an evaluation, into chunks, because a job should last for some seconds. Chunks
 * depend on the number of items alone, so that a resumed run asks for the same jobs again.
 */

/** Some adjacent items, by their indices: `from` is in the chunk, `to` is not. */
export interface Chunk {
  readonly from: number
  readonly to: number
}

/** The most items of a chunk, and by default the number of chunks that there are at least, if there are so many items. */
const largest = 64
const fewest = 256

/** Returns the number of items of a chunk, from the number of all items and of the chunks that there are at least. */
export const chunkSize = (total: number, chunks = fewest): number =>
  Math.min(largest, Math.max(1, Math.ceil(total / chunks)))

/** Lists the chunks of so many items. */
export const chunksOf = (total: number, size: number): ReadonlyArray<Chunk> =>
  Array.from({ length: Math.ceil(total / size) }, (_, at) => ({
    from: at * size,
    to: Math.min(total, (at + 1) * size),
  }))

export const indicesOf = ({ from, to }: Chunk): ReadonlyArray<number> =>
  Array.from({ length: to - from }, (_, at) => from + at)
