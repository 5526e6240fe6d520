const rotate = (value: number, by: number): number => (value << by) | (value >>> (32 - by))

/**
 * Computes Bob Jenkins' lookup3 hash with initial value 0, which is the checksum of HDF5's metadata. The original is in
 * the public domain (https://burtleburtle.net/bob/c/lookup3.c); this code was written from its description.
 */
export const lookup3 = (bytes: Uint8Array): number => {
  const { length } = bytes
  let a = (0xdeadbeef + length) | 0
  let b = a
  let c = a
  let at = 0
  /** Reads four bytes as an integer; bytes after the end count as 0. */
  const word = (offset: number): number =>
    (bytes[at + offset] ?? 0) |
    ((bytes[at + offset + 1] ?? 0) << 8) |
    ((bytes[at + offset + 2] ?? 0) << 16) |
    ((bytes[at + offset + 3] ?? 0) << 24)
  /** Adds the next twelve bytes to a, b and c. */
  const addBlock = (): void => {
    a = (a + word(0)) | 0
    b = (b + word(4)) | 0
    c = (c + word(8)) | 0
  }
  for (; length - at > 12; at += 12) {
    addBlock()
    a = (a - c) ^ rotate(c, 4)
    c = (c + b) | 0
    b = (b - a) ^ rotate(a, 6)
    a = (a + c) | 0
    c = (c - b) ^ rotate(b, 8)
    b = (b + a) | 0
    a = (a - c) ^ rotate(c, 16)
    c = (c + b) | 0
    b = (b - a) ^ rotate(a, 19)
    a = (a + c) | 0
    c = (c - b) ^ rotate(b, 4)
    b = (b + a) | 0
  }
  // The loop leaves 1 to 12 bytes for the code below, unless the input is empty.
  if (length === 0) return c >>> 0
  addBlock()
  c = (c ^ b) - rotate(b, 14)
  a = (a ^ c) - rotate(c, 11)
  b = (b ^ a) - rotate(a, 25)
  c = (c ^ b) - rotate(b, 16)
  a = (a ^ c) - rotate(c, 4)
  b = (b ^ a) - rotate(a, 14)
  c = (c ^ b) - rotate(b, 24)
  return c >>> 0
}
