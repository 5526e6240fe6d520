import type { Effect } from "effect"
import type { NamedTensors } from "../algorithm/Algorithm.ts"
import { sha256 } from "../experiment/sha256.ts"

/** SHA-256 over the final weights, by name, and the running hash of all scores: equal digests mean equal runs. */
export const digestOf = (weights: NamedTensors, scores: readonly [number, number]): Effect.Effect<string> => {
  const encoder = new TextEncoder()
  const parts = Object.keys(weights)
    .sort()
    .flatMap((name) => {
      const { shape, data } = weights[name]
      return [
        encoder.encode(`${name}[${shape.join(",")}]`),
        new Uint8Array(data.buffer, data.byteOffset, data.byteLength),
      ]
    })
  parts.push(new Uint8Array(Uint32Array.from(scores).buffer))
  const all = new Uint8Array(parts.reduce((size, part) => size + part.length, 0))
  let offset = 0
  for (const part of parts) {
    all.set(part, offset)
    offset += part.length
  }
  return sha256(all)
}
