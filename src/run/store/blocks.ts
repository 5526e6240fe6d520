/** Joins small parts of a file to blocks, which are written at once. */
const blockSize = 1 << 20

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
  const block = new Uint8Array(blockSize)
  let used = 0
  for (const part of parts) {
    if (used > 0 && used + part.length > blockSize) {
      yield block.subarray(0, used)
      used = 0
    }
    if (part.length > blockSize) yield part
    else {
      block.set(part, used)
      used += part.length
    }
  }
  if (used > 0) yield block.subarray(0, used)
}
