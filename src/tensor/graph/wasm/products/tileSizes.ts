/** Chooses the sizes of the tiles and blocks of matrix products (`matmul.ts`) to fit caches and registers. */
import type { Lanes } from "../function.ts"

/** The size of the first-level data cache of most machines. It affects the order of the loops, not the results. */
export const firstCacheBytes = 32768

/** The number of rows of a that are packed together. */
export const panelWidth = 16

/** The bytes of scratch memory for a panel of b: as many columns as the widest tile has. */
export const panelBytes = (k: number, lanes: Lanes): number => 16 * vectorsFor(4, Infinity, lanes) * (k + 4)

/** The bytes of scratch memory that packing needs for this inner size: a panel of b, then a block of a. */
export const packedBytes = (k: number, lanes: Lanes): number => panelBytes(k, lanes) + 4 * mostBlockRows(k) * (k + 4)

/** The bytes of an array of m × n sums, whose rows are whole vectors. */
export const sumsBytes = (m: number, n: number): number => 16 * m * Math.ceil(n / 4)

/** The largest number of bytes for the sums of a product, whether it is computed as it is or transposed. */
export const waitingBytes = (m: number, n: number): number => Math.max(sumsBytes(m, n), sumsBytes(n, m))

/** The bytes of scratch memory that a product needs at most. */
export const scratchFor = (m: number, k: number, n: number, lanes: Lanes): number =>
  Math.max(
    packedBytes(k, lanes),
    ...[depthFor(m, k, n), longDepthFor(m, k, n), shortDepthFor(m, k, n)]
      .filter((depth) => depth < k)
      .map((depth) => packedBytes(depth, lanes) + waitingBytes(m, n)),
  )

/** The largest number of sums that are kept in memory between the parts of a long inner dimension. */
const mostSums = 1 << 18

/**
 * Returns how many steps of the inner dimension are computed for all tiles before the next steps follow, for a product
 * with a transposed a. The rows of these steps, of a and of b, stay in the caches; the sums wait in memory.
 */
export const depthFor = (m: number, k: number, n: number): number => (k >= 256 && m * n <= mostSums ? 128 : k)

/**
 * Returns the same for a product whose a is not transposed. Parts help only where k is very large: a panel of b with all steps
 * would not fit the second-level cache, and would be packed again for every few rows of a.
 */
export const longDepthFor = (m: number, k: number, n: number): number => (k >= 2048 && m * n <= 2 * mostSums ? 512 : k)

/**
 * Returns the same for products of few rows with a large b, whose speed is that of reading b: with few steps at a time, b is read
 * along its rows, and not down its columns.
 */
export const shortDepthFor = (m: number, k: number, n: number): number => (m < 4 && 4 * n * k > 1 << 17 ? 8 : k)

/** The part of the second-level cache that a block of rows of a may fill. */
const blockBytes = 1 << 18

/** Returns the largest number of rows of a block: a multiple of `panelWidth` from 16 to 128. */
const mostBlockRows = (k: number): number =>
  panelWidth * Math.max(1, Math.min(8, Math.floor(blockBytes / (4 * panelWidth * k))))

/** Returns the number of rows of a block. */
export const blockRowsFor = (m: number, k: number): number => evenSize(m, mostBlockRows(k), panelWidth)

/**
 * Returns a multiple of `unit` that is at most `most` (but at least one unit). It divides `count` if such a number is
 * not much smaller.
 */
export const evenSize = (count: number, most: number, unit: number): number => {
  const largest = Math.max(unit, most - (most % unit))
  for (let size = largest; size >= largest / 2; size -= unit) if (count % size === 0) return size
  return largest
}

/** Divides a count into pieces of one size, and a smaller piece for the remainder. */
export const pieces = (count: number, size: number): ReadonlyArray<{ readonly size: number; readonly times: number }> =>
  [
    { size, times: Math.floor(count / size) },
    { size: count % size, times: 1 },
  ].filter((piece) => piece.size > 0 && piece.times > 0)

/**
 * Returns the number of vectors in each row of a tile: a tile has at most 1 × 8, 2 × 4, 3 × 3, 4 × 2 or 8 × 1. Where a
 * register holds two vectors, it has at most 2 × 8, 3 × 4 or 4 × 4. A machine whose registers hold four has twice as many of
 * them, and a tile 4 × 16 at most.
 */
export const vectorsFor = (rows: number, available: number, lanes: Lanes): number => {
  const narrow = [8, 4, 3, 2][rows - 1] ?? 1
  const doubled = rows === 2 ? 8 : rows === 3 || rows === 4 ? 4 : narrow
  if (lanes === 16) return Math.min(available, 16)
  return Math.min(available, lanes === 8 ? doubled : narrow)
}

/** Returns the number of rows of a tile whose rows have this many vectors. */
export const rowsFor = (m: number, vectors: number): number => (vectors === 1 ? Math.min(m, 8) : Math.min(m, 4))
