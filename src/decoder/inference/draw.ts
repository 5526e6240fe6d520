/**
 * Draws a token from logits. The settings apply in the order of Hugging Face's `generate`: temperature, top-k, top-p (on the
 * tokens that top-k left), min-p. vLLM applies min-p before top-k and top-p; the order matters only where min-p and top-p are
 * both set. Of equally likely tokens, the lower id is always preferred, so top-k keeps exactly k tokens.
 *
 * Logits are compared exactly, and all sums are float64. So the bits are the same on every machine. Nothing is allocated per
 * token.
 */
import { exp, log } from "../../base/rng/Elementary.ts"
import { mostTopLogprobs } from "./Sampling.ts"

/** The settings of a draw; `Sampling` describes them. */
export interface DrawSettings {
  readonly temperature: number
  readonly topK: number
  readonly topP: number
  readonly minP: number
  readonly topLogprobs: number
}

/** The working memory for draws from a vocabulary, and the results of the last draw. */
export interface TokenDraw {
  readonly vocabSize: number
  /** exp((logit − largest logit) / temperature) of each token. */
  readonly weights: Float64Array
  /**
   * A heap of ids, with the likeliest at the top. Popped ids are stored after the heap: the r-th likeliest is at vocabSize −
   * 1 − r.
   */
  readonly order: Int32Array
  /** The logits of a request that changes them before the draw. */
  readonly changed: Float32Array
  /** Log-probability of the drawn token. */
  logprob: number
  /** The number of tokens that are likelier than the scored one, plus 1. Only `score` sets it. */
  rank: number
  /** The `topLogprobs` likeliest tokens, and their log-probabilities. */
  readonly topIds: Int32Array
  readonly topLogprobs: Float64Array
}

export const makeDrawing = (vocabSize: number): TokenDraw => ({
  vocabSize,
  weights: new Float64Array(vocabSize),
  order: new Int32Array(vocabSize),
  changed: new Float32Array(vocabSize),
  logprob: 0,
  rank: 0,
  topIds: new Int32Array(mostTopLogprobs),
  topLogprobs: new Float64Array(mostTopLogprobs),
})

/** Moves the id at `at` down the heap until no id below it is likelier. The logits of the row begin at `offset`. */
const sink = (order: Int32Array, logits: Float32Array, offset: number, start: number, size: number): void => {
  const id = order[start]
  const logit = logits[offset + id]
  let at = start
  for (;;) {
    let child = 2 * at + 1
    if (child >= size) break
    let childLogit = logits[offset + order[child]]
    if (child + 1 < size) {
      const other = logits[offset + order[child + 1]]
      if (other > childLogit || (other === childLogit && order[child + 1] < order[child])) {
        child++
        childLogit = other
      }
    }
    if (logit > childLogit || (logit === childLogit && id < order[child])) break
    order[at] = order[child]
    at = child
  }
  order[at] = id
}

/** Removes the likeliest id from a heap of `size` ids, and puts it at the end, at index `size` − 1. */
const pop = (order: Int32Array, logits: Float32Array, offset: number, size: number): void => {
  const best = order[0]
  order[0] = order[size - 1]
  order[size - 1] = best
  sink(order, logits, offset, 0, size - 1)
}

/** Makes the heap of all ids. */
const heapify = (order: Int32Array, logits: Float32Array, offset: number, size: number): void => {
  for (let id = 0; id < size; id++) order[id] = id
  for (let at = (size >> 1) - 1; at >= 0; at--) sink(order, logits, offset, at, size)
}

/**
 * Draws a token from the logits that begin at `offset`. The number `uniform`, in [0, 1), chooses among the tokens that the
 * settings keep, in the order of their ids. Returns the id, or −1 if a logit is NaN or +∞ or all are −∞.
 *
 * `drawing.logprob` and `drawing.topLogprobs` are logarithms of softmax(logits / temperature) before top-k, top-p and min-p;
 * with temperature 0, of softmax(logits).
 */
// oxlint-disable-next-line max-lines-per-function -- one pass over the vocabulary, whose sums are locals
export const draw = (
  drawing: TokenDraw,
  logits: Float32Array,
  offset: number,
  { temperature, topK, topP, minP, topLogprobs }: DrawSettings,
  uniform: number,
): number => {
  const { vocabSize, weights, order } = drawing
  let best = 0
  let largest = -Infinity
  for (let id = 0; id < vocabSize; id++) {
    const logit = logits[offset + id]
    if (logit > largest) {
      largest = logit
      best = id
    } else if (Number.isNaN(logit)) return -1
  }
  if (!Number.isFinite(largest)) return -1

  const divisor = temperature === 0 ? 1 : temperature
  let sum = 0
  for (let id = 0; id < vocabSize; id++) {
    const weight = exp((logits[offset + id] - largest) / divisor)
    weights[id] = weight
    sum += weight
  }
  const logSum = log(sum)

  const greedy = temperature === 0
  const ranked = !greedy && ((topK > 0 && topK < vocabSize) || topP < 1)
  const listed = Math.min(topLogprobs, vocabSize)
  // The number of tokens that were popped from the heap so far.
  let popped = 0
  if (ranked || listed > 0) {
    heapify(order, logits, offset, vocabSize)
    for (; popped < listed; popped++) {
      pop(order, logits, offset, vocabSize - popped)
      const id = order[vocabSize - 1 - popped]
      drawing.topIds[popped] = id
      drawing.topLogprobs[popped] = (logits[offset + id] - largest) / divisor - logSum
    }
  }

  let chosen = best
  if (!greedy) {
    // The logit and the id of the least likely token that is kept. Of tokens with the same logit, only those up to this id
    // are kept.
    let lastLogit = -Infinity
    let lastId = vocabSize
    if (ranked) {
      const most = topK > 0 && topK < vocabSize ? topK : vocabSize
      let total = sum
      if (most < vocabSize) {
        for (; popped < most; popped++) pop(order, logits, offset, vocabSize - popped)
        total = 0
        for (let rank = 0; rank < most; rank++) total += weights[order[vocabSize - 1 - rank]]
      }
      let kept = 0
      for (let cumulative = 0; kept < most && (kept === 0 || cumulative < topP * total); kept++) {
        if (kept === popped) pop(order, logits, offset, vocabSize - popped++)
        cumulative += weights[order[vocabSize - 1 - kept]]
      }
      lastId = order[vocabSize - kept]
      lastLogit = logits[offset + lastId]
    }
    let keptSum = 0
    for (let id = 0; id < vocabSize; id++) {
      const logit = logits[offset + id]
      const keep = (logit > lastLogit || (logit === lastLogit && id <= lastId)) && weights[id] >= minP
      if (keep) keptSum += weights[id]
      else weights[id] = 0
    }
    const target = uniform * keptSum
    let cumulative = 0
    for (let id = 0; id < vocabSize; id++) {
      if (weights[id] === 0) continue
      // If rounding makes the sum smaller than the target, the last kept token is chosen.
      chosen = id
      cumulative += weights[id]
      if (cumulative > target) break
    }
  }
  drawing.logprob = (logits[offset + chosen] - largest) / divisor - logSum
  return chosen
}

/**
 * Computes the log-probability of a token that is already known, its rank, and the likeliest tokens. They are those of
 * softmax(logits / temperature), with temperature 0 of softmax(logits), with the same bits as in `draw`. Returns whether the
 * logits are finite.
 */
export const score = (
  drawing: TokenDraw,
  logits: Float32Array,
  offset: number,
  id: number,
  { temperature, topLogprobs }: Pick<DrawSettings, "temperature" | "topLogprobs">,
): boolean => {
  const { vocabSize, order } = drawing
  const own = logits[offset + id]
  let largest = -Infinity
  let rank = 1
  for (let other = 0; other < vocabSize; other++) {
    const logit = logits[offset + other]
    if (Number.isNaN(logit)) return false
    if (logit > largest) largest = logit
    if (logit > own || (logit === own && other < id)) rank++
  }
  if (!Number.isFinite(largest)) return false

  const divisor = temperature === 0 ? 1 : temperature
  let sum = 0
  for (let other = 0; other < vocabSize; other++) sum += exp((logits[offset + other] - largest) / divisor)
  const logSum = log(sum)
  drawing.logprob = (own - largest) / divisor - logSum
  drawing.rank = rank

  const listed = Math.min(topLogprobs, vocabSize)
  if (listed > 0) heapify(order, logits, offset, vocabSize)
  for (let popped = 0; popped < listed; popped++) {
    pop(order, logits, offset, vocabSize - popped)
    const likely = order[vocabSize - 1 - popped]
    drawing.topIds[popped] = likely
    drawing.topLogprobs[popped] = (logits[offset + likely] - largest) / divisor - logSum
  }
  return true
}
