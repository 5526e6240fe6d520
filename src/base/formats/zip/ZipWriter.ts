/**
 * Makes a zip archive in memory, entry by entry. The entries are compressed by deflate, and all have the same date, so that equal
 * entries give equal bytes.
 *
 * @example
 * ```ts
 * const zip = new ZipWriter()
 * yield* zip.add("header.json", new TextEncoder().encode("{}"))
 * yield* fs.writeFile("log.eval", zip.finish())
 * ```
 */
import { Effect } from "effect"
import { crc32 } from "../crc.ts"
import { utf8 } from "../../text/utf8.ts"
import { joined } from "../../text/bytes.ts"
import { FormatError } from "../FormatError.ts"
import { pack } from "../gzip.ts"

/** The number of entries from which an archive needs the records of zip64. */
const mostSmall = 0xffff
/** The largest archive, with some room for the directory. */
const mostBytes = 2 ** 32 - 2 ** 28
/** The first of January 1980, the earliest date. */
const date = 0x21
/** The bit that says that names are UTF-8. */
const utf8Names = 1 << 11

export class ZipWriter {
  private readonly parts: Array<Uint8Array> = []
  private readonly directory: Array<Uint8Array> = []
  private length = 0

  /** Compresses the contents of an entry, and adds it. Fails if the archive would have more than 4 GiB. */
  add(name: string, contents: Uint8Array): Effect.Effect<void, FormatError> {
    return Effect.flatMap(pack(contents, "deflate-raw"), (packed) => {
      if (this.length + packed.length > mostBytes) {
        return Effect.fail(new FormatError({ message: `"${name}": the archive would have more than 4 GiB` }))
      }
      this.write(name, contents, packed)
      return Effect.void
    })
  }

  private write(name: string, contents: Uint8Array, packed: Uint8Array): void {
    const encoded = utf8.encode(name)
    const common = (to: DataView, at: number): void => {
      to.setUint16(at, 20, true) // the version of zip that a reader needs
      to.setUint16(at + 2, utf8Names, true)
      to.setUint16(at + 4, 8, true) // deflate
      to.setUint16(at + 8, date, true)
      to.setUint32(at + 10, crc32(contents), true)
      to.setUint32(at + 14, packed.length, true)
      to.setUint32(at + 18, contents.length, true)
      to.setUint16(at + 22, encoded.length, true)
    }
    const header = new DataView(new ArrayBuffer(30))
    header.setUint32(0, 0x04034b50, true)
    common(header, 4)
    const entry = new DataView(new ArrayBuffer(46))
    entry.setUint32(0, 0x02014b50, true)
    entry.setUint16(4, 20, true)
    common(entry, 6)
    entry.setUint32(42, this.length, true)
    this.directory.push(new Uint8Array(entry.buffer), encoded)
    for (const part of [new Uint8Array(header.buffer), encoded, packed]) {
      this.parts.push(part)
      this.length += part.length
    }
  }

  /** Returns the archive with all entries. */
  finish(): Uint8Array {
    const directory = joined(this.directory)
    const count = this.directory.length / 2
    const end = new DataView(new ArrayBuffer(22))
    end.setUint32(0, 0x06054b50, true)
    end.setUint16(8, Math.min(count, mostSmall), true)
    end.setUint16(10, Math.min(count, mostSmall), true)
    end.setUint32(12, directory.length, true)
    end.setUint32(16, this.length, true)
    const large = count < mostSmall ? [] : [this.zip64(count, directory.length)]
    return joined([...this.parts, directory, ...large, new Uint8Array(end.buffer)])
  }

  /** Makes the records with the number of entries that small archives cannot state, and with the address of these records. */
  private zip64(count: number, directorySize: number): Uint8Array {
    const record = new DataView(new ArrayBuffer(56 + 20))
    record.setUint32(0, 0x06064b50, true)
    record.setBigUint64(4, 44n, true) // the size of the rest of the record
    record.setUint16(12, 45, true)
    record.setUint16(14, 45, true)
    record.setBigUint64(24, BigInt(count), true)
    record.setBigUint64(32, BigInt(count), true)
    record.setBigUint64(40, BigInt(directorySize), true)
    record.setBigUint64(48, BigInt(this.length), true)
    record.setUint32(56, 0x07064b50, true)
    record.setBigUint64(64, BigInt(this.length + directorySize), true)
    record.setUint32(72, 1, true)
    return new Uint8Array(record.buffer)
  }
}
