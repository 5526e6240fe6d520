/**
 * Builds the graph that generates text: it computes one token for each of several sequences from their cached keys and
 * values.
 *
 * Each sequence has a row of the cache, in which its tokens are adjacent, so that products read the cache in place. (The step
 * that reads prompts, `cachedStep.ts`, gathers pages instead, because prompts share them.) A row is divided into segments. A
 * program reads only the first few segments, and of some rows only the first one, so that short sequences do not pay for the
 * room of long ones.
 */
import {
  add,
  and,
  concat,
  constant,
  input,
  less,
  matmul,
  pad,
  reshape,
  slice,
  softmax,
  split,
  sub,
  where,
} from "../../tensor/graph/ops.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import type { Weights } from "../../rl/model/trunk.ts"
import type { DecoderConfig } from "./DecoderConfig.ts"
import { recordingRouting } from "./experts.ts"
import { type Adapt, type Attend, logitsOf, transformer } from "./layers.ts"
import { excluded } from "./packed.ts"
import { capped, masksOf, turnsOf } from "./rope.ts"

/** The sizes of a step over rows. Its cost depends only on them, so compile programs of several sizes that share weights. */
export interface RowShape {
  /** The number of sequences in a step. */
  readonly rows: number
  /** The number of tokens of each segment that the step reads. */
  readonly segments: ReadonlyArray<number>
  /**
   * The number of rows that have all segments; the other rows have only the first one, so their sequences must be short. By
   * default all rows have all segments.
   */
  readonly longRows?: number
  /** Whether the step returns the experts that it chose; only for models with experts. By default it does not. */
  readonly recordsExperts?: boolean
}

/** The tensors of a step over rows. The result of a row does not depend on the other rows. */
export interface RowStep {
  /**
   * `tokens` i32 [rows]: the new token of each sequence.
   *
   * `lengths` i32 [rows]: the number of tokens of each sequence in the cache, which is also the position of the new one.
   *
   * `keys-LAYER-SEGMENT` f32 [rows, keyValueHeads, headDim, tokens] and `values-LAYER-SEGMENT` f32 [rows, keyValueHeads,
   * tokens, headDim], with the rows and the tokens of the segment: the cache. Its unused elements must be finite, because
   * zero times a number that is not finite would be NaN.
   */
  readonly inputs: Readonly<Record<string, Tensor>>
  readonly outputs: {
    /** [rows, vocabSize]. */
    readonly logits: Tensor
    /** The keys and values of the new tokens, [rows, layers · 2, keyValueHeads · headDim]. */
    readonly entries: Tensor
    /** The experts of the new tokens, i32 [rows, layers · perToken], if the step records them. */
    readonly experts?: Tensor
  }
}

/** Returns the name of the input for the keys, or the values, of a layer in a segment. */
export const cacheInput = (part: "keys" | "values", layer: number, segment: number): string =>
  `${part}-${layer}-${segment}`

/**
 * Builds a step over rows.
 *
 * @example
 * ```ts
 * const weights = Decoder.statesOf(Decoder.parametersOf(decoderConfig))
 * const step = Decoder.rowStep(decoderConfig, weights, { rows: 32, segments: [64, 64] })
 * const state = Record.map(weights, (tensor) => ({ tensor }))
 * const spec = { name: "generate", inputs: step.inputs, state, outputs: { ...step.outputs } }
 * ```
 */
export const rowStep = (config: DecoderConfig, weights: Weights, shape: RowShape, adapt?: Adapt): RowStep => {
  const { rows, segments, longRows = rows, recordsExperts = false } = shape
  const recording = recordsExperts ? recordingRouting() : undefined
  const room = segments.reduce((sum, length) => sum + length, 0)
  const { heads, keyValueHeads, headDim } = config
  const group = heads / keyValueHeads
  const tokens = input("tokens", [rows], "i32")
  const lengths = input("lengths", [rows], "i32")
  const inputs: Record<string, Tensor> = { tokens, lengths }
  const cached = (part: "keys" | "values", layer: number): ReadonlyArray<Tensor> =>
    segments.map((length, segment) => {
      const sizes = part === "keys" ? [headDim, length] : [length, headDim]
      const name = cacheInput(part, layer, segment)
      return (inputs[name] = input(name, [segment === 0 ? rows : longRows, keyValueHeads, ...sizes]))
    })
  /** Returns the long rows of a tensor [rows, …]. */
  const longOf = (x: Tensor): Tensor => {
    const starts = x.shape.map(() => 0)
    return slice(x, starts, x.shape.with(0, longRows))
  }
  /** Appends zeros to a tensor of the long rows, for the other rows. */
  const padded = (x: Tensor): Tensor =>
    longRows === rows
      ? x
      : pad(
          x,
          x.shape.map(() => 0),
          x.shape.map((_, axis) => (axis === 0 ? rows - longRows : 0)),
        )
  const turns = turnsOf(config, lengths)
  const places = Int32Array.from({ length: room }, (_, place) => place)
  const isCached = less(constant(places), reshape(lengths, [rows, 1]))
  // The new token's score comes before those of the cache, so that the position of each score does not depend on `segments`.
  const masks = masksOf(config, (window) => {
    const near = (size: number): Tensor => less(sub(reshape(lengths, [rows, 1]), constant(places)), size)
    const open = window === null ? isCached : and(isCached, near(window))
    const mask = concat([constant(new Float32Array(rows), [rows, 1]), where(open, 0, excluded)], 1)
    return reshape(mask, [rows, 1, 1, 1 + room])
  })

  const entries: Array<Tensor> = []
  const attend: Attend = (layer, queries, keys, values) => {
    const newKeys = turns.keys(layer, reshape(keys, [rows, keyValueHeads, headDim]))
    entries.push(
      reshape(newKeys, [rows, 1, keyValueHeads * headDim]),
      reshape(values, [rows, 1, keyValueHeads * headDim]),
    )
    const q = reshape(turns.queries(layer, reshape(queries, [rows, heads, headDim])), [
      rows,
      keyValueHeads,
      group,
      headDim,
    ])
    const newScore = matmul(q, reshape(newKeys, [rows, keyValueHeads, headDim, 1]))
    const [firstKeys, ...moreKeys] = cached("keys", layer)
    const longQueries = longOf(q)
    // The mask excludes the appended scores.
    const scores = [matmul(q, firstKeys), ...moreKeys.map((segment) => padded(matmul(longQueries, segment)))]
    const shares = softmax(add(capped(concat([newScore, ...scores], 3), config.scoreCap), masks(layer)))
    const [newShare, firstShares, ...moreShares] = split(shares, [1, ...segments], 3)
    const [firstValues, ...moreValues] = cached("values", layer)
    const newMixed = matmul(newShare, reshape(values, [rows, keyValueHeads, 1, headDim]))
    const inFirst = add(newMixed, matmul(firstShares, firstValues))
    const inAll = moreValues.map((segment, at) => matmul(longOf(moreShares[at]), segment)).reduce(add, longOf(inFirst))
    const mixed =
      inAll.shape[0] === rows
        ? inAll
        : concat([inAll, slice(inFirst, [longRows, 0, 0, 0], [rows - longRows, ...inFirst.shape.slice(1)])])
    return reshape(mixed, [rows, heads * headDim])
  }
  const routing = recording?.routing
  const hidden = transformer({ config, weights, tokens, positions: () => lengths, attend, adapt, routing })
  const experts = recording === undefined ? {} : { experts: recording.all() }
  return { inputs, outputs: { logits: logitsOf(config, weights, hidden), entries: concat(entries, 1), ...experts } }
}
