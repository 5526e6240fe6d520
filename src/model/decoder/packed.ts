/** The forward graph over packed sequences, for training: windows of tokens, each with one or more segments. */
import {
  add,
  and,
  concat,
  constant,
  equal,
  input,
  lessEqual,
  matmul,
  reshape,
  slice,
  softmax,
  transpose,
  where,
} from "../../graph/ops.ts"
import { fail, sameShape } from "../../graph/ops/core.ts"
import type { Tensor } from "../../graph/Tensor.ts"
import type { Weights } from "../trunk.ts"
import type { DecoderConfig } from "./DecoderConfig.ts"
import { type Adapt, type Attend, logitsOf, transformer } from "./layers.ts"
import { rotate, rotationOf, scaledRotation } from "./rope.ts"

/**
 * The inputs of a packed program, all i32 [rows, width]: `rows` windows of `width` tokens. A window holds segments
 * (sequences) one after another. Attention stays inside of a segment, and goes from a token to itself and those before.
 */
export interface PackedInputs {
  readonly tokens: Tensor
  /** The position of each token in its sequence, from 0. */
  readonly positions: Tensor
  /** The number of each token's segment, from 0 in each window; −1 for padding. */
  readonly segments: Tensor
}

/** Makes the inputs of a packed program: `tokens`, `positions` and `segments`. */
export const packedInputs = (rows: number, width: number): PackedInputs => ({
  tokens: input("tokens", [rows, width], "i32"),
  positions: input("positions", [rows, width], "i32"),
  segments: input("segments", [rows, width], "i32"),
})

/** A score that is so low that its token gets an attention of exactly zero, but that no infinity or NaN can follow from. */
export const excluded = -1e9

/**
 * Computes the hidden states after the last norm, [rows, width, hiddenSize]. `logitsOf` and `predictions`
 * compute the rest.
 *
 * @example
 * ```ts
 * const inputs = Decoder.packedInputs(4, 256)
 * const weights = Decoder.statesOf(Decoder.parametersOf(decoderConfig))
 * const hidden = Decoder.hiddenStates(decoderConfig, weights, inputs)
 * ```
 */
export const hiddenStates = (config: DecoderConfig, weights: Weights, inputs: PackedInputs, adapt?: Adapt): Tensor => {
  const { tokens, positions, segments } = inputs
  if (tokens.shape.length !== 2) fail("hiddenStates", "expected tokens [rows, width]", tokens)
  if (![positions, segments].every(({ shape }) => sameShape(shape, tokens.shape)))
    fail("hiddenStates", "expected tokens, positions and segments of one shape", tokens, positions, segments)
  const attend = packedAttention(config, inputs)
  const hidden = transformer({ config, weights, tokens: reshape(tokens, [-1]), attend, adapt })
  return reshape(hidden, [...tokens.shape, config.hiddenSize])
}

/** Computes the logits [rows, width, vocabSize] of the token after each token. */
export const packedLogits = (config: DecoderConfig, weights: Weights, inputs: PackedInputs, adapt?: Adapt): Tensor =>
  logitsOf(config, weights, hiddenStates(config, weights, inputs, adapt))

/**
 * The number of queries whose scores are computed together. Each group reads the keys up to its last query only, so that
 * a long window does not compute scores that its mask excludes.
 */
const queriesAtOnce = 256

const packedAttention = (config: DecoderConfig, { positions, segments }: PackedInputs): Attend => {
  const { heads, keyValueHeads, headDim } = config
  const [rows, width] = positions.shape
  const group = heads / keyValueHeads
  const rotation = rotationOf(config, positions)
  const queryRotation = scaledRotation(rotation, 1 / Math.sqrt(headDim))
  const places = Int32Array.from({ length: width }, (_, place) => place)
  const notLater = lessEqual(constant(places, [1, width]), constant(places, [width, 1]))
  const together = equal(reshape(segments, [rows, 1, width]), reshape(segments, [rows, width, 1]))
  // Queries and keys of one segment differ in nothing else, so one mask serves all heads and layers.
  const mask = reshape(where(and(together, notLater), 0, excluded), [rows, 1, 1, width, width])

  return (_, queries, keys, values) => {
    const byHead = (x: Tensor, count: number): Tensor => reshape(x, [rows, width, count, headDim])
    const q = reshape(rotate(byHead(queries, heads), queryRotation), [rows, width, keyValueHeads, group, headDim])
    const grouped = transpose(q, [0, 2, 3, 1, 4])
    const k = transpose(rotate(byHead(keys, keyValueHeads), rotation), [0, 2, 1, 3])
    const v = transpose(byHead(values, keyValueHeads), [0, 2, 1, 3])
    const mixed = Array.from({ length: Math.ceil(width / queriesAtOnce) }, (_, index) => {
      const start = index * queriesAtOnce
      const end = Math.min(width, start + queriesAtOnce)
      const count = end - start
      const before = (x: Tensor): Tensor => slice(x, [0, 0, 0, 0], [rows, keyValueHeads, end, headDim])
      const some = slice(grouped, [0, 0, 0, start, 0], [rows, keyValueHeads, group, count, headDim])
      // Query heads that share a key head are rows of one product.
      const together = reshape(some, [rows, keyValueHeads, group * count, headDim])
      const scores = matmul(together, before(k), { transposeB: true })
      const weights = softmax(
        add(
          reshape(scores, [rows, keyValueHeads, group, count, end]),
          slice(mask, [0, 0, 0, start, 0], [rows, 1, 1, count, end]),
        ),
      )
      const sums = matmul(reshape(weights, [rows, keyValueHeads, group * count, end]), before(v))
      return reshape(sums, [rows, keyValueHeads, group, count, headDim])
    })
    const byToken = transpose(concat(mixed, 3), [0, 3, 1, 2, 4])
    return reshape(byToken, [rows * width, heads * headDim])
  }
}
