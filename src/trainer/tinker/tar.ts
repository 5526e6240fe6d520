/**
 * Writes tar archives in the format `ustar`, which all programs read. An archive is, for each file, its header, its bytes and
 * its padding, and then the end. Files have no times and owners, so the same files give the same archive.
 */
import { utf8 } from "../../base/text/utf8.ts"

interface TarEntry {
  /** The name, at most 100 bytes. */
  readonly name: string
  /** The number of bytes of the file. */
  readonly size: number
}

const blockSize = 512

/** Returns the bytes before a file. */
export const headerOf = ({ name, size }: TarEntry): Uint8Array => {
  const header = new Uint8Array(blockSize)
  const write = (at: number, text: string): void => header.set(utf8.encode(text), at)
  const octal = (value: number, digits: number): string => value.toString(8).padStart(digits, "0")
  write(0, name)
  write(100, `${octal(0o644, 7)}\0${octal(0, 7)}\0${octal(0, 7)}\0`)
  write(124, `${octal(size, 11)}\0${octal(0, 11)}\0`)
  // The checksum is the sum of all bytes, with spaces in its own place.
  write(148, "        0")
  write(257, "ustar\u000000")
  const checksum = header.reduce((sum, byte) => sum + byte, 0)
  write(148, `${octal(checksum, 6)}\0 `)
  return header
}

/** Returns the zeros after a file, up to the next block. */
export const paddingOf = ({ size }: Pick<TarEntry, "size">): Uint8Array =>
  new Uint8Array((blockSize - (size % blockSize)) % blockSize)

/** Returns the end of an archive. */
export const endOfArchive = (): Uint8Array => new Uint8Array(2 * blockSize)
