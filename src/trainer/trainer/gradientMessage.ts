/** Encodes the gradients that a rank computed in a turn, to send them to the other ranks as a safetensors file. */
import { Schema } from "effect"
import { jsonText } from "../../base/text/jsonText.ts"
import * as Safetensors from "../../base/formats/safetensors.ts"
import type { RunGradient } from "./runGradients.ts"

const Described = jsonText(
  Schema.Array(
    Schema.Struct({
      index: Schema.Int,
      // A loss may be NaN or infinite, and JSON has no such numbers.
      loss: Schema.NumberFromString,
      sums: Schema.Record(Schema.String, Schema.NumberFromString),
    }),
  ),
)
const encode = Schema.encodeSync(Described)
const decode = Schema.decodeUnknownSync(Described)

/**
 * Encodes gradients as the bytes of a message. `decodeGradients` returns them unchanged.
 */
export const encodeGradients = (gradients: ReadonlyArray<RunGradient>): Uint8Array =>
  Safetensors.encode(
    Object.fromEntries(
      gradients.map(({ index, gradient }) => [`${index}`, { shape: [gradient.length], data: gradient }]),
    ),
    { runs: encode(gradients.map(({ index, loss, sums }) => ({ index, loss, sums: { ...sums } }))) },
  )

/**
 * Decodes a message of `encodeGradients`. The gradients are views of the bytes, because copying large ones costs more than
 * adding them up. Throws for other bytes, which would be a bug: only ranks of this trainer send messages.
 */
export const decodeGradients = (message: Uint8Array): ReadonlyArray<RunGradient> => {
  // The arrays begin at multiples of eight in a message, but a message can begin anywhere in a buffer.
  const bytes = message.byteOffset % 8 === 0 ? message : message.slice()
  const places = Safetensors.placesIn(bytes.subarray(0, Safetensors.headerLength(bytes, bytes.length)), bytes.length)
  return decode(Safetensors.metadata(bytes).runs).map(({ index, loss, sums }) => {
    const place = places.get(`${index}`)
    if (place?.dtype !== "F32") throw new TypeError(`gradient of run ${index}: expected float32`)
    const { offset, bytes: size } = place
    const gradient = new Float32Array(bytes.buffer, bytes.byteOffset + offset, size / Float32Array.BYTES_PER_ELEMENT)
    return { index, gradient, loss, sums: { tokens: 0, ...sums } }
  })
}
