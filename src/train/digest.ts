import type { Effect } from "effect"
import type { NamedArrays, NamedTensors } from "../learner/Algorithm.ts"
import { joined } from "../config/bytes.ts"
import { sha256 } from "../config/sha256.ts"
import { utf8 } from "../config/utf8.ts"

/**
 * SHA-256 over the final weights, by name, the running hash of all scores, and what else was learnt: equal digests mean
 * equal runs.
 */
export const digestOf = (
  weights: NamedTensors,
  scores: readonly [number, number],
  memory = new Uint8Array(0),
): Effect.Effect<string> =>
  sha256(joined([...partsOf(weights), new Uint8Array(Uint32Array.from(scores).buffer), memory]))

/** SHA-256 over arrays, by name. */
export const digestOfArrays = (arrays: NamedArrays): Effect.Effect<string> => sha256(joined(partsOf(arrays)))

const partsOf = (arrays: NamedArrays): ReadonlyArray<Uint8Array> =>
  Object.keys(arrays)
    .sort()
    .flatMap((name) => {
      const { shape, data } = arrays[name]
      const heading = utf8.encode(`${name}[${shape.join(",")}]`)
      return [heading, new Uint8Array(data.buffer, data.byteOffset, data.byteLength)]
    })
