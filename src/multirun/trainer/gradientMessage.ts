/** Encodes the gradients that a rank computed in a turn, to send them to the other ranks as a safetensors file. */
import { Schema } from "effect"
import * as Safetensors from "../../formats/safetensors.ts"
import type { RunGradient } from "./runGradients.ts"

const Described = Schema.fromJsonString(
  Schema.Array(
    Schema.Struct({
      index: Schema.Int,
      // A loss may be NaN or infinite, which JSON cannot hold as a number.
      loss: Schema.NumberFromString,
      sums: Schema.Record(Schema.String, Schema.NumberFromString),
    }),
  ),
)
const encode = Schema.encodeSync(Described)
const decode = Schema.decodeUnknownSync(Described)

/**
 * Encodes gradients; `decodeGradients` gives them back unchanged.
 *
 * @example
 * ```ts
 * decodeGradients(encodeGradients(gradients)) // equal to gradients
 * ```
 */
export const encodeGradients = (gradients: ReadonlyArray<RunGradient>): Uint8Array =>
  Safetensors.encode(
    Object.fromEntries(
      gradients.map(({ index, gradient }) => [`${index}`, { shape: [gradient.length], data: gradient }]),
    ),
    { runs: encode(gradients.map(({ index, loss, sums }) => ({ index, loss, sums: { ...sums } }))) },
  )

/** Decodes what `encodeGradients` encoded. Other bytes are a defect: only ranks of this trainer send them. */
export const decodeGradients = (bytes: Uint8Array): ReadonlyArray<RunGradient> => {
  const tensors = Safetensors.decode(bytes)
  return decode(Safetensors.metadata(bytes).runs).map(({ index, loss, sums }) => {
    const { data } = tensors[`${index}`]
    if (!(data instanceof Float32Array)) throw new TypeError(`gradient of run ${index}: expected float32`)
    return { index, gradient: data, loss, sums: { tokens: 0, ...sums } }
  })
}
