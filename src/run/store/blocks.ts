/** Joins small parts of a file to blocks, which are written at once. */
const blockSize = 1 << 20
/** The size of the first block, which grows if the parts need it: most files are small, and a block costs time to clear. */
const smallestBlock = 1 << 14

/** Returns a block with room for `size` bytes that begins with the first `used` bytes of `block`. */
const withRoom = (block: Uint8Array, used: number, size: number): Uint8Array => {
  if (size <= block.length) return block
  const larger = new Uint8Array(Math.min(blockSize, Math.max(size, 2 * block.length, smallestBlock)))
  larger.set(block.subarray(0, used))
  return larger
}

/**
 * Joins small parts to blocks of at most one MiB, because even a small write is slow. Larger parts are not copied. The caller
 * must have used a block before it asks for the next one.
 *
 * @example
 * ```ts
 * [...blocksOf([Uint8Array.of(1, 2), Uint8Array.of(3)])] // one block: 1, 2, 3
 * ```
 */
export function* blocksOf(parts: Iterable<Uint8Array>): Generator<Uint8Array, void> {
  let block: Uint8Array = new Uint8Array(0)
  let used = 0
  for (const part of parts) {
    if (used > 0 && used + part.length > blockSize) {
      yield block.subarray(0, used)
      used = 0
    }
    if (part.length > blockSize) yield part
    else {
      block = withRoom(block, used, used + part.length)
      block.set(part, used)
      used += part.length
    }
  }
  if (used > 0) yield block.subarray(0, used)
}
