/**
 * Defines the arrays that a training program takes for one rank: `rows` windows of `width` tokens each, one after another, in
 * which samples are placed. `makeMicroBatch` makes the arrays once, and `fill` overwrites them. A prompt that several samples
 * share is stored once in a window; see `Decoder.PackedInputs`.
 *
 * A *position* counts tokens from the beginning of a sample, an *offset* from that of a window, and an *index* from that of the
 * micro-batch.
 *
 * Padding has mask 0 and weight 0, so it adds nothing to a loss. It belongs to the adapter of the token before it.
 *
 * @example
 * ```ts
 * const microBatch = makeMicroBatch({ rows: 2, width: 512, block: 32, maxRuns: 4 })
 * fill(microBatch, placed, { adapterBefore: 0, padId: 0 })
 * microBatch.loraNumTokens // the number of tokens of each adapter; their sum is 2 × 512
 * ```
 */
import { expertsOfToken, type ReplayedExperts } from "./routerReplay.ts"
import type { TrainingSample } from "./TrainingSample.ts"

export interface MicroBatchShape {
  /** The number of windows. */
  readonly rows: number
  /** The number of tokens of a window. */
  readonly width: number
  /** The number of tokens in a block, a divisor of `width`. All tokens of a block belong to one adapter. */
  readonly block: number
  /** The number of runs that can be trained at the same time, each with its own adapter. */
  readonly maxRuns: number
  /** The sizes of the model's experts, if its routers are replayed. */
  readonly replayed?: ReplayedExperts | undefined
}

/** The inputs of a training program. Each array of tokens has `rows × width` numbers, window after window. */
export interface MicroBatch {
  readonly rows: number
  readonly width: number
  readonly tokens: Int32Array
  /** The position of the token in its sample, from 0. */
  readonly positions: Int32Array
  /** The index of the token before it in its sample; −1 for a first token and for padding. */
  readonly contexts: Int32Array
  /** The offset after the last token of all samples that share this token; 0 for padding. */
  readonly ends: Int32Array
  /**
   * The number of the sample in this micro-batch, from 0; −1 for padding. A shared token has the number of its first sample.
   */
  readonly sequences: Int32Array
  /** Whether the model learns from each token: 1 if it does, 0 if not. */
  readonly mask: Uint8Array
  readonly logprobs: Float32Array
  readonly advantages: Float32Array
  /** The temperature at which the token was sampled; 1 for padding. */
  readonly temperatures: Float32Array
  /** The factor of the token in the loss; 0 where the mask is 0. */
  readonly weights: Float32Array
  /**
   * The experts of each token in each layer, if routers are replayed: [tokens, layers, perToken], with −1 for a token without
   * a record. Otherwise it is empty.
   */
  readonly experts: Int32Array
  /**
   * The number of tokens of each adapter, including padding, in the order of the tokens. The numbers are multiples of `block`
   * if each run's first sample begins at one, as `placeInWindows` ensures; `fill` does not check it.
   */
  readonly loraNumTokens: Int32Array
  /** The number of samples. */
  sequenceCount: number
}

/** The names of the arrays of a micro-batch. */
export const arrayNames = [
  "tokens",
  "positions",
  "contexts",
  "ends",
  "sequences",
  "mask",
  "logprobs",
  "advantages",
  "temperatures",
  "weights",
  "experts",
  "loraNumTokens",
] as const satisfies ReadonlyArray<keyof MicroBatch>

/** A sample with its adapter, its weight, and its place in a window. */
export interface PlacedSample {
  readonly sample: TrainingSample
  /** The index of the run whose adapter the tokens are routed to. */
  readonly run: number
  /** The factor in the loss of each token that the mask selects. */
  readonly weight: number
  /** The number of the window in the micro-batch. */
  readonly window: number
  /** The number of the sample's first tokens that are already in the window, because the sample before has the same ones. */
  readonly shared: number
  /** The offset of the sample's first token that is not shared. */
  readonly start: number
  /**
   * The number of the sample in the micro-batch, for objectives that compare the samples 2k and 2k + 1. By default, samples are
   * numbered in their order in the windows.
   */
  readonly sequence?: number
}

/** Makes the arrays of a micro-batch, which holds only padding of adapter 0 until it is filled. */
export const makeMicroBatch = ({ rows, width, maxRuns, replayed }: MicroBatchShape): MicroBatch => {
  const size = rows * width
  const microBatch: MicroBatch = {
    rows,
    width,
    tokens: new Int32Array(size),
    positions: new Int32Array(size),
    contexts: new Int32Array(size),
    ends: new Int32Array(size),
    sequences: new Int32Array(size),
    mask: new Uint8Array(size),
    logprobs: new Float32Array(size),
    advantages: new Float32Array(size),
    temperatures: new Float32Array(size),
    weights: new Float32Array(size),
    experts: new Int32Array(size * expertsOfToken(replayed)),
    loraNumTokens: new Int32Array(maxRuns),
    sequenceCount: 0,
  }
  fill(microBatch, [], { adapterBefore: 0, padId: 0 })
  return microBatch
}

interface Padding {
  /** The index of the adapter that gets the padding before the first sample. */
  readonly adapterBefore: number
  /** The token that fills padding. */
  readonly padId: number
}

/**
 * Overwrites a micro-batch with these samples, which are sorted by window and start, and also by adapter, as `placeInWindows`
 * orders them. Without samples, it becomes a dummy whose weights are all 0. Returns the adapter of the last token.
 */
export const fill = (
  microBatch: MicroBatch,
  placed: ReadonlyArray<PlacedSample>,
  { adapterBefore, padId }: Padding,
): number => {
  const { width, tokens, positions, contexts, ends, sequences, mask, logprobs, advantages } = microBatch
  const { temperatures, weights, experts, loraNumTokens } = microBatch
  tokens.fill(padId)
  positions.fill(0)
  contexts.fill(-1)
  ends.fill(0)
  sequences.fill(-1)
  mask.fill(0)
  logprobs.fill(0)
  advantages.fill(0)
  temperatures.fill(1)
  weights.fill(0)
  experts.fill(-1)
  const expertsPerToken = experts.length / tokens.length
  loraNumTokens.fill(0)
  let adapter = placed.length === 0 ? adapterBefore : placed[0].run
  // The index of the current adapter's first token.
  let begin = 0
  /**
   * The index of each token of the current sample, by its position. The indices of its shared tokens are those left from the
   * sample before, whose first tokens are the same.
   */
  const indices = new Int32Array(width)
  for (let sequence = 0; sequence < placed.length; sequence++) {
    const { sample, run, weight, window, shared, start, sequence: number = sequence } = placed[sequence]
    const first = window * width + start
    if (run !== adapter) {
      loraNumTokens[adapter] += first - begin
      adapter = run
      begin = first
    }
    const { length } = sample.tokens
    const end = start + length - shared
    for (let position = shared; position < length; position++) {
      const at = first + position - shared
      indices[position] = at
      tokens[at] = sample.tokens[position]
      positions[at] = position
      contexts[at] = position === 0 ? -1 : indices[position - 1]
      sequences[at] = number
      mask[at] = sample.mask[position]
      logprobs[at] = sample.logprobs[position]
      advantages[at] = sample.advantages[position]
      temperatures[at] = sample.temperature
      weights[at] = sample.mask[position] * weight
    }
    for (let position = 0; position < length; position++) ends[indices[position]] = end
    if (expertsPerToken > 0 && sample.routedExperts !== undefined) {
      const { ids } = sample.routedExperts
      experts.set(ids.subarray(shared * expertsPerToken), first * expertsPerToken)
    }
  }
  loraNumTokens[adapter] += tokens.length - begin
  microBatch.sequenceCount = placed.length
  return adapter
}
