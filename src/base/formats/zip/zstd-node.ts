/** Unpacks Zstandard with Node, for zip archives that are compressed by it. */
import { zstdDecompress } from "node:zlib"
import { Effect } from "effect"
import type { Unzstd } from "./unzip.ts"

/** Unpacks bytes; fails if they are damaged, or more than `most` when they are unpacked. */
export const unzstd: Unzstd = (bytes, most) =>
  Effect.callback<Uint8Array, unknown>((resume) => {
    zstdDecompress(bytes, { maxOutputLength: most }, (error, unpacked) => {
      resume(error === null ? Effect.succeed(unpacked) : Effect.fail(error))
    })
  })
