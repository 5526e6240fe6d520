import { Effect } from "effect"
import { joined } from "../text/bytes.ts"
import { FormatError } from "./FormatError.ts"

/**
 * Compresses a text and returns the bytes of a gzip file; `rl/train/stepFolder.ts` writes them. `CompressionStream`, which
 * Node and browsers have, doesn't block the thread, and for 13 MiB of JSON it is 1.7 times as fast as fflate.
 */
export const gzip = (text: string): Effect.Effect<Uint8Array> => packed(new Blob([text]), "gzip")

/** Compresses bytes; `deflate` is the format of zlib, which PNG files have, and `deflate-raw` that of zip archives. */
export const pack = (bytes: Uint8Array, format: "deflate" | "deflate-raw" | "gzip"): Effect.Effect<Uint8Array> =>
  packed(new Blob([Uint8Array.from(bytes)]), format)

const packed = (content: Blob, format: "deflate" | "deflate-raw" | "gzip"): Effect.Effect<Uint8Array> =>
  Effect.promise(async () => {
    const compressed = content.stream().pipeThrough(new CompressionStream(format))
    return new Uint8Array(await new Response(compressed).arrayBuffer())
  })

/**
 * The largest allowed ratio of unpacked to compressed bytes (texts have ten or twenty), and a size that is always
 * allowed.
 */
const mostPerByte = 100
const alwaysAllowed = 64 * 2 ** 20

/** Returns how many bytes a file of this size may have when it is unpacked, which is `most` or fewer. */
export const mostUnpacked = (bytes: number, most: number): number =>
  Math.min(most, Math.max(alwaysAllowed, mostPerByte * bytes))

/** Unpacks the bytes of a gzip file; fails if they are damaged, or more than `most`. */
export const gunzip = Effect.fnUntraced(function* (
  bytes: Uint8Array,
  most: number,
): Effect.fn.Return<Uint8Array, FormatError> {
  const unpacked = yield* Effect.mapError(
    unpack(bytes, "gzip", most),
    () => new FormatError({ message: "the gzip file is damaged" }),
  )
  if (unpacked.length <= most) return unpacked
  const message = `the gzip file has more than ${most} bytes when unpacked, too many for its ${bytes.length} bytes`
  return yield* new FormatError({ message })
})

/**
 * Unpacks compressed bytes (`brotli` needs Node 22.20 or 24.7); fails if they are damaged. Stops as soon as there are
 * more than `most` bytes, and returns the bytes so far, because a small file can unpack to one that does not fit in
 * memory.
 */
export const unpack = (
  bytes: Uint8Array,
  format: "deflate" | "deflate-raw" | "gzip" | "brotli",
  most: number,
): Effect.Effect<Uint8Array, unknown> =>
  Effect.tryPromise({
    try: async () => {
      // TypeScript's types for browsers lack the format brotli, so call the constructor by `Reflect`.
      const unpacking: DecompressionStream = Reflect.construct(DecompressionStream, [format])
      const stream = new Blob([Uint8Array.from(bytes)]).stream().pipeThrough(unpacking)
      const parts: Array<Uint8Array> = []
      let length = 0
      // Leaving the loop cancels the stream.
      for await (const part of stream) {
        parts.push(part)
        length += part.length
        if (length > most) break
      }
      return joined(parts)
    },
    catch: (error) => error,
  })
