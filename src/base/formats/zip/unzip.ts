/**
 * Unpacks entries of a zip archive, one at a time, each up to a size that the caller allows: a few kilobytes can unpack to
 * gigabytes.
 *
 * @example
 * ```ts
 * const entries = zipEntries(bytes)
 * const first = yield* unzip(entries[0], { most: 1024 * 1024 })
 * ```
 */
import { Effect } from "effect"
import { crc32 } from "../crc.ts"
import { FormatError } from "../FormatError.ts"
import { mostUnpacked, unpack } from "../gzip.ts"
import type { ZipEntry } from "./directory.ts"

/** Unpacks Zstandard, which no web platform does; `zstd-node.ts` has such a function. Fails for more than `most` bytes. */
export type Unzstd = (bytes: Uint8Array, most: number) => Effect.Effect<Uint8Array, unknown>

interface UnzipOptions {
  /** The largest number of bytes that are unpacked. */
  readonly most: number
  readonly unzstd?: Unzstd | undefined
}

/** Returns the contents of an entry. Fails if they are damaged, or more than allowed. */
export const unzip = Effect.fnUntraced(function* (
  entry: ZipEntry,
  { most, unzstd }: UnzipOptions,
): Effect.fn.Return<Uint8Array, FormatError> {
  const { name, method, size, stored, offset } = entry
  const refuse = (problem: string) => new FormatError({ message: `"${name}" ${problem}`, offset })
  const allowed = mostUnpacked(stored.length, most)
  const unpacker = unpackerOf(method, unzstd)
  if (unpacker === undefined) return yield* refuse(`is compressed by the unknown method ${method}`)
  const tooMany = `has ${size} bytes when unpacked, too many for its ${stored.length} bytes`
  if (size > allowed) return yield* refuse(tooMany)
  const contents = yield* Effect.mapError(unpacker(stored, allowed), () => refuse("is damaged"))
  if (contents.length > allowed) return yield* refuse(tooMany)
  if (contents.length !== size) return yield* refuse(`has ${contents.length} bytes, expected ${size}`)
  if (crc32(contents) !== entry.crc) return yield* refuse("does not match its CRC-32")
  return contents
})

const unpackerOf = (method: number, unzstd: Unzstd | undefined): Unzstd | undefined => {
  if (method === 0) return (bytes) => Effect.succeed(bytes)
  if (method === 8) return (bytes, most) => unpack(bytes, "deflate-raw", most)
  return method === 93 ? unzstd : undefined
}
