/** Writes tar archives in the format `ustar`, which all programs read. */
import { joined } from "../../base/config/bytes.ts"
import { utf8 } from "../../base/config/utf8.ts"

interface TarFile {
  /** The name, at most 100 bytes. */
  readonly name: string
  readonly bytes: Uint8Array
}

const blockSize = 512

const headerOf = ({ name, bytes }: TarFile): Uint8Array => {
  const header = new Uint8Array(blockSize)
  const write = (at: number, text: string): void => header.set(utf8.encode(text), at)
  const octal = (value: number, digits: number): string => value.toString(8).padStart(digits, "0")
  write(0, name)
  write(100, `${octal(0o644, 7)}\0${octal(0, 7)}\0${octal(0, 7)}\0`)
  write(124, `${octal(bytes.length, 11)}\0${octal(0, 11)}\0`)
  // The checksum is the sum of all bytes, with spaces in its own place.
  write(148, "        0")
  write(257, "ustar\u000000")
  const checksum = header.reduce((sum, byte) => sum + byte, 0)
  write(148, `${octal(checksum, 6)}\0 `)
  return header
}

/** Returns the archive of some files. Files have no times and owners, so the same files give the same archive. */
export const tarOf = (files: ReadonlyArray<TarFile>): Uint8Array =>
  joined([
    ...files.flatMap((file) => {
      const padding = new Uint8Array((blockSize - (file.bytes.length % blockSize)) % blockSize)
      return [headerOf(file), file.bytes, padding]
    }),
    new Uint8Array(2 * blockSize),
  ])
