/**
 * Makes the weights of a frozen model with matrices of one byte for each weight, for graphs whose config says
 * `quantization: "int8"`. Activations and adapters stay 32-bit floats.
 *
 * A weight w of an output (a row of the matrix) becomes q, the integer nearest to w / scale, and counts as q · scale. The
 * scale of an output is its largest |w| / 127. This is done to the projections, the token embedding and the head; norms,
 * biases, experts and embeddings of positions stay floats.
 */
import { Effect } from "effect"
import type { NamedArray, NamedTensors } from "../../tensor/graph/Parameters.ts"
import type { DecoderConfig } from "./DecoderConfig.ts"
import { parametersOf, scaleName } from "./parameters.ts"

/** The config and the weights of a quantised model. */
interface QuantisedModel {
  readonly decoder: DecoderConfig
  readonly weights: NamedTensors
}

/**
 * Reads the weights of a model, one parameter after another, and keeps the quantised ones as bytes: their `data` becomes
 * floats anew each time it is read.
 */
export const readInt8 = Effect.fnUntraced(function* <E>(
  config: DecoderConfig,
  read: (name: string) => Effect.Effect<NamedArray, E>,
): Effect.fn.Return<QuantisedModel, E> {
  const decoder: DecoderConfig = { ...config, quantization: "int8" }
  const declared = parametersOf(decoder)
  const weights: Record<string, NamedArray> = {}
  for (const name of Object.keys(parametersOf(config))) {
    const weight = yield* read(name)
    if (declared[name]?.dtype !== "i8") weights[name] = weight
    else Object.assign(weights, quantised(name, weight))
  }
  return { decoder, weights }
})

/** Returns a matrix as bytes, and the scales of its rows. */
const quantised = (name: string, { shape, data }: NamedArray): NamedTensors => {
  const [rows, columns] = shape
  const bytes = new Int8Array(data.length)
  const scales = new Float32Array(rows)
  for (let row = 0; row < rows; row++) {
    const [from, to] = [row * columns, (row + 1) * columns]
    let largest = 0
    // Math.max keeps NaN, so that a damaged weight shows in the output, as it does without quantisation.
    for (let at = from; at < to; at++) largest = Math.max(largest, Math.abs(data[at]))
    scales[row] = largest / 127
    if (scales[row] === 0) continue
    for (let at = from; at < to; at++) bytes[at] = Math.max(-127, Math.min(127, Math.round(data[at] / scales[row])))
  }
  return {
    [name]: {
      shape,
      get data() {
        return Float32Array.from(bytes)
      },
    },
    [scaleName(name)]: { shape: [rows], data: scales },
  }
}
