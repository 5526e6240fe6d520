import { Effect } from "effect"

/** A text, packed as `gunzip` unpacks it. Every platform here has the streams of the web. */
export const gzip = (text: string): Effect.Effect<Uint8Array> =>
  Effect.promise(async () => {
    const packed = new Blob([text]).stream().pipeThrough(new CompressionStream("gzip"))
    return new Uint8Array(await new Response(packed).arrayBuffer())
  })
