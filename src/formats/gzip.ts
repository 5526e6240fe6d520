import { Effect } from "effect"

/** A text, packed as `gunzip` unpacks it. */
export const gzip = (text: string): Effect.Effect<Uint8Array> => packed(text, "gzip")

/** Bytes, packed as zlib does. */
export const deflate = (bytes: Uint8Array<ArrayBuffer>): Effect.Effect<Uint8Array> => packed(bytes, "deflate")

/** Every platform here has the streams of the web. */
const packed = (contents: string | Uint8Array<ArrayBuffer>, format: "gzip" | "deflate"): Effect.Effect<Uint8Array> =>
  Effect.promise(async () => {
    const stream = new Blob([contents]).stream().pipeThrough(new CompressionStream(format))
    return new Uint8Array(await new Response(stream).arrayBuffer())
  })
