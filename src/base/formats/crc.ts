/**
 * Makes a function that computes a CRC-32, a checksum of the bytes from `start` to before `end`. Zip files and event
 * files use two variants of it with different polynomials. The bits of `polynomial` are in reversed order.
 */
export const crcOf = (polynomial: number): ((bytes: Uint8Array, start?: number, end?: number) => number) => {
  const table = Uint32Array.from({ length: 256 }, (_, byte) => {
    let rest = byte
    for (let bit = 0; bit < 8; bit++) rest = (rest >>> 1) ^ ((rest & 1) === 0 ? 0 : polynomial)
    return rest
  })
  return (bytes, start = 0, end = bytes.length) => {
    let crc = 0xffffffff
    for (let at = start; at < end; at++) crc = (crc >>> 8) ^ table[(crc ^ bytes[at]) & 0xff]
    return ~crc >>> 0
  }
}

/** Computes the CRC-32 of zip files, which zlib calls `crc32`. */
export const crc32 = crcOf(0xedb88320)
