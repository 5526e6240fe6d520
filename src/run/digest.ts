/** Computes the digests by which runs and data are compared: SHA-256 over arrays and scores, in hex. */
import type { Effect } from "effect"
import { joined } from "../base/text/bytes.ts"
import { utf8 } from "../base/text/utf8.ts"
import { sha256 } from "../base/text/sha256.ts"
import type { NamedArrays, NamedTensors } from "../tensor/graph/Parameters.ts"
import type { ScoreHash } from "./ScoreHash.ts"

/** Returns the digest of a run: a hash of its final weights (sorted by name), of its scores, and of an agent's memory. */
export const digestOf = (weights: NamedTensors, scores: ScoreHash, memory = new Uint8Array(0)): Effect.Effect<string> =>
  sha256(joined([...bytesOf(weights), new Uint8Array(Uint32Array.from(scores.words).buffer), memory]))

/** Returns the SHA-256 over arrays, sorted by name. */
export const digestOfArrays = (arrays: NamedArrays): Effect.Effect<string> => sha256(joined(bytesOf(arrays)))

const bytesOf = (arrays: NamedArrays): ReadonlyArray<Uint8Array> =>
  Object.keys(arrays)
    .sort()
    .flatMap((name) => {
      const { shape, data } = arrays[name]
      const heading = utf8.encode(`${name}[${shape.join(",")}]`)
      return [heading, new Uint8Array(data.buffer, data.byteOffset, data.byteLength)]
    })
