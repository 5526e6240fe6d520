/**
 * Bob Jenkins' lookup3 hash of bytes, starting from 0: the checksum of HDF5's metadata.
 * Public domain, https://burtleburtle.net/bob/c/lookup3.c; written anew from its description.
 */
const rotate = (value: number, by: number): number => (value << by) | (value >>> (32 - by))

export const lookup3 = (bytes: Uint8Array): number => {
  const { length } = bytes
  let a = (0xdeadbeef + length) | 0
  let b = a
  let c = a
  let at = 0
  /** Four bytes, those after the end being 0. */
  const word = (offset: number): number =>
    (bytes[at + offset] ?? 0) |
    ((bytes[at + offset + 1] ?? 0) << 8) |
    ((bytes[at + offset + 2] ?? 0) << 16) |
    ((bytes[at + offset + 3] ?? 0) << 24)
  const take = (): void => {
    a = (a + word(0)) | 0
    b = (b + word(4)) | 0
    c = (c + word(8)) | 0
  }
  for (; length - at > 12; at += 12) {
    take()
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
  // No bytes are left only where there were none.
  if (length === 0) return c >>> 0
  take()
  c = (c ^ b) - rotate(b, 14)
  a = (a ^ c) - rotate(c, 11)
  b = (b ^ a) - rotate(a, 25)
  c = (c ^ b) - rotate(b, 16)
  a = (a ^ c) - rotate(c, 4)
  b = (b ^ a) - rotate(a, 14)
  c = (c ^ b) - rotate(b, 24)
  return c >>> 0
}
