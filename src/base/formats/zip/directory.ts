/**
 * Reads the directory of a zip archive: small archives and zip64 (for large archives). It unpacks nothing: `torch/storedZip.ts`
 * and `unzip.ts` do. It refuses encrypted entries, and entries that lie in each other, which could be read many times.
 *
 * We do not use fflate because it copies every entry and checks no CRC-32: it accepted an archive with a flipped byte.
 */
import { utf8 } from "../../text/utf8.ts"
import { FormatError } from "../FormatError.ts"

/** An entry of an archive. */
export interface ZipEntry {
  readonly name: string
  /** The method of compression: 0 for none, 8 for deflate, 93 for Zstandard. */
  readonly method: number
  /** The size of the contents when they are unpacked, as the archive states it. */
  readonly size: number
  readonly crc: number
  /** The stored bytes, a view of the archive's. */
  readonly stored: Uint8Array
  /** The offset of the entry's header in the archive. */
  readonly offset: number
}

/** Reads the entries in the order of the directory. Throws a `FormatError`. */
export const zipEntries = (bytes: Uint8Array): ReadonlyArray<ZipEntry> => {
  const reader = readerOf(bytes)
  const directory = findDirectory(reader)
  const entries: Array<ZipEntry> = []
  let at = directory.offset
  // Contents that lie in each other would be hashed once for each, which takes hours for a few megabytes.
  let bytesLeft = bytes.length
  for (let index = 0; index < directory.entries; index++) {
    const { entry, next } = readEntry(reader, at, bytesLeft)
    entries.push(entry)
    bytesLeft -= entry.stored.length
    at = next
  }
  if (at !== directory.offset + directory.size)
    refuse("the archive's directory does not have the size recorded at its end", at)
  return entries
}

/** Throws the error for an archive that cannot be read; `offset` is where, if it is known. */
const refuse = (message: string, offset?: number): never => {
  throw new FormatError({ message, ...(offset === undefined ? {} : { offset }) })
}

type ZipReader = ReturnType<typeof readerOf>

/** Makes functions that read from the archive and refuse to read beyond its end. */
const readerOf = (bytes: Uint8Array) => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const checked = (at: number, size: number): number =>
    at >= 0 && at + size <= bytes.length ? at : refuse(`the archive ends before ${size} bytes at ${at}`, at)
  const slice = (at: number, size: number) => bytes.subarray(checked(at, size), at + size)
  return {
    size: bytes.length,
    u16: (at: number): number => view.getUint16(checked(at, 2), true),
    u32: (at: number): number => view.getUint32(checked(at, 4), true),
    u64: (at: number): number => {
      const value = Number(view.getBigUint64(checked(at, 8), true))
      return Number.isSafeInteger(value)
        ? value
        : refuse(`the archive has a size of ${value} bytes; expected at most 2^53`, at)
    },
    slice,
    text: (at: number, size: number): string => {
      try {
        return utf8.decodeExact(slice(at, size))
      } catch {
        return refuse("a name in the archive is not UTF-8", at)
      }
    },
  }
}

const endSize = 22 // the size of the record at the end of an archive, without the comment that may follow it
const largestComment = 0xffff

/**
 * Finds the central directory (the list of entries) with the record at the end of the archive, which only a comment can
 * follow.
 */
const findDirectory = (reader: ZipReader) => {
  for (let at = reader.size - endSize; at >= Math.max(0, reader.size - endSize - largestComment); at--) {
    if (reader.u32(at) !== 0x06054b50 || at + endSize + reader.u16(at + 20) !== reader.size) continue
    const small = { entries: reader.u16(at + 10), size: reader.u32(at + 12), offset: reader.u32(at + 16) }
    const isSmall = small.entries < 0xffff && small.size < 0xffffffff && small.offset < 0xffffffff
    // Large archives have two more records: the first begins with 0x07064b50 and has the address of the second.
    if (isSmall || at < 20 || reader.u32(at - 20) !== 0x07064b50) return small
    const large = reader.u64(at - 20 + 8)
    if (reader.u32(large) !== 0x06064b50) return refuse("the archive's zip64 record is not where it should be", large)
    return { entries: reader.u64(large + 32), size: reader.u64(large + 40), offset: reader.u64(large + 48) }
  }
  return refuse("expected a zip archive, found no record of its end; it may be cut short")
}

/** Reads an entry of the central directory, and the address of the next one. Refuses more than `most` stored bytes. */
const readEntry = (
  reader: ZipReader,
  at: number,
  most: number,
): { readonly entry: ZipEntry; readonly next: number } => {
  if (reader.u32(at) !== 0x02014b50) return refuse("the archive's directory is damaged", at)
  const flags = reader.u16(at + 8)
  const method = reader.u16(at + 10)
  const crc = reader.u32(at + 16)
  const nameSize = reader.u16(at + 28)
  const extraSize = reader.u16(at + 30)
  const name = reader.text(at + 46, nameSize)
  const next = at + 46 + nameSize + extraSize + reader.u16(at + 32)
  if ((flags & 1) !== 0) refuse(`"${name}" is encrypted`, at)

  // Numbers that do not fit in 32 bits are in the extra field (zip64), in the order in which they are read here.
  let zip64Offset = extraField(reader, at + 46 + nameSize, extraSize)
  const orZip64 = (value: number): number => {
    if (value !== 0xffffffff) return value
    if (zip64Offset === undefined) return refuse(`"${name}" lacks its zip64 field`, at)
    zip64Offset += 8
    return reader.u64(zip64Offset - 8)
  }
  const size = orZip64(reader.u32(at + 24))
  const stored = orZip64(reader.u32(at + 20))
  const header = orZip64(reader.u32(at + 42))
  if (stored > most)
    refuse(`"${name}" has ${stored} bytes; with the other entries, that is more than the archive has`, at)

  if (reader.u32(header) !== 0x04034b50) refuse(`"${name}" is not where the archive's directory says`, header)
  const localNameSize = reader.u16(header + 26)
  if (reader.text(header + 30, localNameSize) !== name) refuse(`"${name}" has another name at its contents`, header)
  const contents = reader.slice(header + 30 + localNameSize + reader.u16(header + 28), stored)
  return { entry: { name, method, size, crc, stored: contents, offset: header }, next }
}

/** Returns the offset of the first number in the zip64 part (id 1) of an entry's extra field; undefined without one. */
const extraField = (reader: ZipReader, start: number, size: number): number | undefined => {
  for (let at = start; at + 4 <= start + size; at += 4 + reader.u16(at + 2)) {
    if (reader.u16(at) === 1) return at + 4
  }
  return undefined
}
