/** Builds the forward graph over packed sequences, for training: windows of tokens, each with one or more sequences. */
import {
  add,
  and,
  concat,
  constant,
  input,
  less,
  lessEqual,
  matmul,
  reshape,
  slice,
  softmax,
  sub,
  transpose,
  where,
} from "../../tensor/graph/ops.ts"
import { fail, sameShape } from "../../tensor/graph/ops/core.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import type { Weights } from "../../rl/model/trunk.ts"
import type { DecoderConfig } from "./DecoderConfig.ts"
import { type Adapt, type Attend, logitsOf, transformer } from "./layers.ts"
import { capped, masksOf, turnsOf } from "./rope.ts"

/**
 * The inputs of a packed program, all i32 [rows, width]: `rows` windows of `width` tokens. A window has one or more
 * sequences, one after another, and attention stays inside a sequence. Sequences that begin with the same tokens can share
 * these tokens: then they are stored once, before the remaining tokens of all these sequences.
 *
 * For example, the sequences `a b c`, `a b d e` and `f` in a window of seven tokens, where the first two share `a b`:
 *
 * | input       | numbers                |
 * | ----------- | ---------------------- |
 * | `tokens`    | a, b, c, d, e, f, 0    |
 * | `positions` | 0, 1, 2, 2, 3, 0, 0    |
 * | `contexts`  | −1, 0, 1, 1, 3, −1, −1 |
 * | `ends`      | 5, 5, 3, 5, 5, 6, 0    |
 */
export interface PackedInputs {
  readonly tokens: Tensor
  /** The position of each token in its sequence, from 0. */
  readonly positions: Tensor
  /**
   * The index, row · width + position in the window, of the token before it in its sequence; −1 for a first token and for
   * padding.
   */
  readonly contexts: Tensor
  /**
   * The position in the window after the last token of all sequences that contain this token. The tokens from this one up to
   * that position attend to it. It is 0 for padding, to which no token attends.
   */
  readonly ends: Tensor
  /**
   * The experts of each token in each layer, [rows, width, layers, perToken], which the program uses instead of those that its
   * routers would choose (router replay). They are −1 for a token whose experts the routers choose. Without this input, they
   * choose all.
   */
  readonly experts?: Tensor
}

/**
 * Makes the inputs of a packed program: `tokens`, `positions`, `contexts` and `ends`. With a config of a model with experts as
 * `replayed`, it also makes `experts`.
 */
export const packedInputs = (
  rows: number,
  width: number,
  replayed?: Pick<DecoderConfig, "layers" | "experts">,
): PackedInputs => ({
  tokens: input("tokens", [rows, width], "i32"),
  positions: input("positions", [rows, width], "i32"),
  contexts: input("contexts", [rows, width], "i32"),
  ends: input("ends", [rows, width], "i32"),
  ...(replayed?.experts === undefined
    ? {}
    : { experts: input("experts", [rows, width, replayed.layers, replayed.experts.perToken], "i32") }),
})

/** The score of an excluded token. It is low enough for an attention of exactly zero, but cannot cause an infinity or NaN. */
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
  const { tokens, positions, ends, experts } = inputs
  if (tokens.shape.length !== 2) fail("hiddenStates", "expected tokens [rows, width]", tokens)
  if (![positions, ends].every(({ shape }) => sameShape(shape, tokens.shape)))
    fail("hiddenStates", "expected tokens, positions and ends of one shape", tokens, positions, ends)
  const attend = packedAttention(config, inputs)
  const hidden = transformer({
    config,
    weights,
    tokens: reshape(tokens, [-1]),
    positions: () => reshape(positions, [-1]),
    attend,
    adapt,
    routing: experts === undefined ? undefined : { replayed: (layer) => expertsOfLayer(experts, layer) },
  })
  return reshape(hidden, [...tokens.shape, config.hiddenSize])
}

/** Returns the experts of all tokens in a layer, [rows · width, perToken]. */
const expertsOfLayer = (experts: Tensor, layer: number): Tensor => {
  const [rows, width, , perToken] = experts.shape
  return reshape(slice(experts, [0, 0, layer, 0], [rows, width, 1, perToken]), [rows * width, perToken])
}

/** Computes the logits [rows, width, vocabSize] of the token after each token. */
export const packedLogits = (config: DecoderConfig, weights: Weights, inputs: PackedInputs, adapt?: Adapt): Tensor =>
  logitsOf(config, weights, hiddenStates(config, weights, inputs, adapt))

/**
 * The number of queries whose scores are computed together. Each group reads only the keys up to its last query, so that
 * fewer scores that the mask excludes are computed in a long window.
 */
const queriesAtOnce = 256

const packedAttention = (config: DecoderConfig, { positions, ends }: PackedInputs): Attend => {
  const { heads, keyValueHeads, headDim } = config
  const [rows, width] = positions.shape
  const group = heads / keyValueHeads
  const turns = turnsOf(config, positions)
  const places = Int32Array.from({ length: width }, (_, place) => place)
  const notLater = lessEqual(constant(places, [1, width]), constant(places, [width, 1]))
  const notEnded = less(constant(places, [width, 1]), reshape(ends, [rows, 1, width]))
  /** The tokens at most this far before a token. Sequences may share tokens, so places do not tell. */
  const within = (window: number): Tensor =>
    less(sub(reshape(positions, [rows, width, 1]), reshape(positions, [rows, 1, width])), window)
  // All heads use the same mask.
  const masks = masksOf(config, (window) => {
    const open = and(notEnded, notLater)
    const near = window === null ? open : and(open, within(window))
    return reshape(where(near, 0, excluded), [rows, 1, 1, width, width])
  })

  return (layer, queries, keys, values) => {
    const byHead = (x: Tensor, count: number): Tensor => reshape(x, [rows, width, count, headDim])
    const q = reshape(turns.queries(layer, byHead(queries, heads)), [rows, width, keyValueHeads, group, headDim])
    const grouped = transpose(q, [0, 2, 3, 1, 4])
    const k = transpose(turns.keys(layer, byHead(keys, keyValueHeads)), [0, 2, 1, 3])
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
          capped(reshape(scores, [rows, keyValueHeads, group, count, end]), config.scoreCap),
          slice(masks(layer), [0, 0, 0, start, 0], [rows, 1, 1, count, end]),
        ),
      )
      const sums = matmul(reshape(weights, [rows, keyValueHeads, group * count, end]), before(v))
      return reshape(sums, [rows, keyValueHeads, group, count, headDim])
    })
    const byToken = transpose(concat(mixed, 3), [0, 3, 1, 2, 4])
    return reshape(byToken, [rows * width, heads * headDim])
  }
}
