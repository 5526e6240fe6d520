/**
 * Builds the graph that reads prompts: it computes the next tokens of several sequences from their cached keys and values.
 * Sequences with the same beginning share pages of the cache. (The step that generates, `rowStep.ts`, has a row of the cache
 * for each sequence.)
 *
 * The caller owns the cache, which is an array of pages. A page has the order [layers, 2, keyValueHeads, pageSize, headDim],
 * with keys before values. The graph reads pages and returns the keys and values of new tokens; `storeEntries` writes them
 * into pages.
 */
import {
  add,
  and,
  broadcastTo,
  concat,
  constant,
  expandDims,
  gather,
  input,
  less,
  lessEqual,
  matmul,
  mul,
  reshape,
  softmax,
  split,
  sub,
  sum,
  transpose,
  where,
} from "../../tensor/graph/ops.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import type { Weights } from "../../rl/model/trunk.ts"
import type { DecoderConfig } from "./DecoderConfig.ts"
import { recordingRouting } from "./experts.ts"
import { type Adapt, type Attend, logitsOf, transformer } from "./layers.ts"
import { excluded } from "./packed.ts"
import { capped, masksOf, turnsOf } from "./rope.ts"

/** The sizes of a cached step. Its cost depends only on them, so compile programs of several sizes that share weights. */
export interface StepShape {
  /** The number of sequences in a step. */
  readonly sequences: number
  /** The number of new tokens of each sequence. Tokens at the end may be unused. */
  readonly chunk: number
  /** The number of pages that one sequence can have. */
  readonly pages: number
  /** The number of tokens in a page. */
  readonly pageSize: number
  /** The number of pages in the cache. */
  readonly cachePages: number
  /** Whether the step returns the experts that it chose; only for models with experts. By default it does not. */
  readonly recordsExperts?: boolean
}

/** The tensors of a cached step. The result of one sequence does not depend on the other sequences in the step. */
export interface CachedStep {
  /**
   * `tokens` i32 [sequences, chunk]: the new tokens. Unused ones come last in a row, and can be any token.
   *
   * `lengths` i32 [sequences]: the number of tokens of each sequence in the cache, which is also the position of its first
   * new token.
   *
   * `pages` i32 [sequences, pages]: the pages of each sequence in order. Unused elements may refer to any page with finite
   * numbers: zero times a number that is not finite would be NaN. For the same reason, a page whose last sequence had such
   * numbers must be filled with zeros before another sequence gets it.
   *
   * `cache` f32 [cachePages, numbers of a page].
   */
  readonly inputs: Readonly<Record<string, Tensor>>
  readonly outputs: {
    /** [sequences, chunk, vocabSize]. */
    readonly logits: Tensor
    /** The hidden states of the new tokens after the last norm, [sequences, chunk, hiddenSize]. */
    readonly hidden: Tensor
    /** The keys and values of the new tokens, [sequences, chunk, layers · 2, keyValueHeads · headDim]. */
    readonly entries: Tensor
    /** The experts of the new tokens, i32 [sequences, chunk, layers · perToken], if the step records them. */
    readonly experts?: Tensor
  }
}

/** Returns the number of elements of a page. */
export const pageLength = ({ layers, keyValueHeads, headDim }: DecoderConfig, pageSize: number): number =>
  layers * 2 * keyValueHeads * pageSize * headDim

const iota = (count: number): Int32Array => Int32Array.from({ length: count }, (_, index) => index)

/**
 * Builds a step. A new token attends to the cached tokens of its sequence, to itself and to the new tokens before it.
 *
 * @example
 * ```ts
 * const weights = Decoder.statesOf(Decoder.parametersOf(decoderConfig))
 * const step = Decoder.cachedStep(decoderConfig, weights, {
 *   sequences: 32,
 *   chunk: 16,
 *   pages: 16,
 *   pageSize: 16,
 *   cachePages: 512,
 * })
 * const state = Record.map(weights, (tensor) => ({ tensor }))
 * const spec = { name: "read", inputs: step.inputs, state, outputs: { ...step.outputs } }
 * ```
 */
export const cachedStep = (config: DecoderConfig, weights: Weights, shape: StepShape, adapt?: Adapt): CachedStep => {
  const { sequences, chunk, recordsExperts = false } = shape
  const recording = recordsExperts ? recordingRouting() : undefined
  const tokens = input("tokens", [sequences, chunk], "i32")
  const lengths = input("lengths", [sequences], "i32")
  const pages = input("pages", [sequences, shape.pages], "i32")
  const cache = input("cache", [shape.cachePages, pageLength(config, shape.pageSize)])
  const { attend, entries, positions } = cachedAttention(config, shape, { lengths, pages, cache })
  const hidden = transformer({
    config,
    weights,
    tokens: reshape(tokens, [-1]),
    positions: () => reshape(positions, [-1]),
    attend,
    adapt,
    routing: recording?.routing,
  })
  const logits = reshape(logitsOf(config, weights, hidden), [sequences, chunk, config.vocabSize])
  return {
    inputs: { tokens, lengths, pages, cache },
    outputs: {
      logits,
      hidden: reshape(hidden, [sequences, chunk, config.hiddenSize]),
      entries: concat(entries, 2),
      ...(recording === undefined ? {} : { experts: reshape(recording.all(), [sequences, chunk, -1]) }),
    },
  }
}

interface CacheInputs {
  readonly lengths: Tensor
  readonly pages: Tensor
  readonly cache: Tensor
}

/** Makes the masks of each layer: which cached tokens a new token attends to, and which new tokens. */
const masksOfStep = (
  config: DecoderConfig,
  { sequences, chunk, capacity }: Pick<StepShape, "sequences" | "chunk"> & { readonly capacity: number },
  positions: Tensor,
  column: Tensor,
): { readonly cachedMasks: (layer: number) => Tensor; readonly newMasks: (layer: number) => Tensor } => {
  const group = config.heads / config.keyValueHeads
  const isCached = less(constant(iota(capacity)), column)
  const cachedMasks = masksOf(config, (window) => {
    if (window === null) return reshape(where(isCached, 0, excluded), [sequences, 1, 1, capacity])
    const near = less(sub(reshape(positions, [sequences, chunk, 1]), constant(iota(capacity))), window)
    const open = and(reshape(isCached, [sequences, 1, capacity]), near)
    // All query heads of a key head have the same mask.
    const byToken = broadcastTo(reshape(where(open, 0, excluded), [sequences, 1, chunk, capacity]), [
      sequences,
      group,
      chunk,
      capacity,
    ])
    return reshape(byToken, [sequences, 1, group * chunk, capacity])
  })
  const notLater = lessEqual(constant(iota(chunk), [1, chunk]), constant(iota(chunk), [chunk, 1]))
  const newMasks = masksOf(config, (window) => {
    if (window === null) return where(notLater, constant(0), constant(excluded))
    const near = less(
      constant(iota(chunk), [chunk, 1]),
      constant(
        iota(chunk).map((at) => at + window),
        [1, chunk],
      ),
    )
    return where(and(notLater, near), constant(0), constant(excluded))
  })
  return { cachedMasks, newMasks }
}

const cachedAttention = (
  config: DecoderConfig,
  { sequences, chunk, pages: pageCount, pageSize, cachePages }: StepShape,
  { lengths, pages, cache }: CacheInputs,
): { readonly attend: Attend; readonly entries: ReadonlyArray<Tensor>; readonly positions: Tensor } => {
  const { layers, heads, keyValueHeads, headDim } = config
  const group = heads / keyValueHeads
  const capacity = pageCount * pageSize
  const column = reshape(lengths, [sequences, 1])
  const positions = add(column, constant(iota(chunk)))
  const turns = turnsOf(config, positions)
  const { cachedMasks, newMasks } = masksOfStep(config, { sequences, chunk, capacity }, positions, column)

  // In this table, each row has the keys, or the values, of one layer of a page.
  const table = reshape(cache, [cachePages * layers * 2, keyValueHeads * pageSize * headDim])
  const firstRows = mul(pages, layers * 2)
  const cached = (row: number): Tensor =>
    reshape(gather(table, add(firstRows, row)), [sequences, pageCount, keyValueHeads, pageSize, headDim])

  const entries: Array<Tensor> = []
  const attend: Attend = (layer, queries, keys, values) => {
    const byHead = (x: Tensor, count: number): Tensor => reshape(x, [sequences, chunk, count, headDim])
    const newKeys = turns.keys(layer, byHead(keys, keyValueHeads))
    entries.push(
      reshape(newKeys, [sequences, chunk, 1, keyValueHeads * headDim]),
      reshape(values, [sequences, chunk, 1, keyValueHeads * headDim]),
    )
    const rotated = reshape(turns.queries(layer, byHead(queries, heads)), [
      sequences,
      chunk,
      keyValueHeads,
      group,
      headDim,
    ])
    const q = reshape(transpose(rotated, [0, 2, 3, 1, 4]), [sequences, keyValueHeads, group * chunk, headDim])
    const k = transpose(newKeys, [0, 2, 1, 3])
    const v = transpose(byHead(values, keyValueHeads), [0, 2, 1, 3])

    // Separate products for each page need no copy that joins the pages of a sequence.
    const byPage = matmul(expandDims(q, 1), cached(2 * layer), { transposeB: true })
    const cachedScores = add(
      capped(
        reshape(transpose(byPage, [0, 2, 3, 1, 4]), [sequences, keyValueHeads, group * chunk, capacity]),
        config.scoreCap,
      ),
      cachedMasks(layer),
    )
    const newScores = reshape(
      add(
        capped(
          reshape(matmul(q, k, { transposeB: true }), [sequences, keyValueHeads, group, chunk, chunk]),
          config.scoreCap,
        ),
        newMasks(layer),
      ),
      [sequences, keyValueHeads, group * chunk, chunk],
    )
    const [cachedShare, newShare] = split(softmax(concat([cachedScores, newScores], 3)), [capacity, chunk], 3)
    const shareByPage = transpose(
      reshape(cachedShare, [sequences, keyValueHeads, group * chunk, pageCount, pageSize]),
      [0, 3, 1, 2, 4],
    )
    const mixed = add(sum(matmul(shareByPage, cached(2 * layer + 1)), 1), matmul(newShare, v))
    const byToken = transpose(reshape(mixed, [sequences, keyValueHeads, group, chunk, headDim]), [0, 3, 1, 2, 4])
    return reshape(byToken, [sequences * chunk, heads * headDim])
  }
  return { attend, entries, positions }
}

interface Stored {
  readonly cache: TypedNumbers
  readonly entries: TypedNumbers
  /** The row of the sequence in the step. */
  readonly sequence: number
  /** The pages of the sequence in order. Only those of its new tokens are used. */
  readonly pages: ArrayLike<number>
  /** The number of tokens of the sequence that were in the cache before the step. */
  readonly length: number
  /** The number of new tokens to store, which may be less than the step computed. */
  readonly count: number
}

/** An array of numbers that can be written. */
interface TypedNumbers {
  readonly length: number
  [index: number]: number
}

/** Writes the keys and values of one sequence's new tokens, from the output `entries`, into the sequence's pages. */
export const storeEntries = (
  { layers, keyValueHeads, headDim }: DecoderConfig,
  { chunk, pageSize }: Pick<StepShape, "chunk" | "pageSize">,
  { cache, entries, sequence, pages, length, count }: Stored,
): void => {
  const lines = layers * 2 * keyValueHeads
  for (let token = 0; token < count; token++) {
    const position = length + token
    const page = pages[Math.floor(position / pageSize)]
    let from = (sequence * chunk + token) * lines * headDim
    let to = (page * lines * pageSize + (position % pageSize)) * headDim
    for (let line = 0; line < lines; line++) {
      for (let at = 0; at < headDim; at++) cache[to + at] = entries[from + at]
      from += headDim
      to += pageSize * headDim
    }
  }
}
