/**
 * Changes the logits of a request before a token is drawn from them: it adds `logitBias`, then applies the penalties as vLLM
 * does, `repetitionPenalty` first. Only requests that set one of them have such an object.
 */
import type { Sampling } from "./Sampling.ts"

export class LogitChanges {
  private readonly bias: Sampling["logitBias"]
  private readonly repetition: number
  private readonly frequency: number
  private readonly presence: number
  /** The tokens of the prompt and the answer, if they have a repetition penalty. */
  private readonly seen: Set<number>
  /** The number of times that the answer has each of its tokens. */
  private readonly counts = new Map<number, number>()

  constructor(sampling: Sampling, promptIds: ArrayLike<number>) {
    this.bias = sampling.logitBias
    this.repetition = sampling.repetitionPenalty
    this.frequency = sampling.frequencyPenalty
    this.presence = sampling.presencePenalty
    this.seen = new Set(this.repetition === 1 ? [] : Array.from(promptIds))
  }

  /** Changes logits in place. All sums are rounded to float32. */
  apply(logits: Float32Array): void {
    const { repetition, frequency, presence } = this
    for (const [id, bias] of this.bias) logits[id] += bias
    for (const id of this.seen) logits[id] = logits[id] > 0 ? logits[id] / repetition : logits[id] * repetition
    for (const [id, count] of this.counts) {
      logits[id] -= frequency * count
      logits[id] -= presence
    }
  }

  /** Counts a token of the answer. */
  add(id: number): void {
    if (this.repetition !== 1) this.seen.add(id)
    if (this.frequency !== 0 || this.presence !== 0) this.counts.set(id, (this.counts.get(id) ?? 0) + 1)
  }
}

/** Returns the changes that a request asks for; undefined if it asks for none. */
export const logitChangesOf = (sampling: Sampling, promptIds: ArrayLike<number>): LogitChanges | undefined => {
  const { logitBias, repetitionPenalty, frequencyPenalty, presencePenalty } = sampling
  const isPlain = logitBias.length === 0 && repetitionPenalty === 1 && frequencyPenalty === 0 && presencePenalty === 0
  return isPlain ? undefined : new LogitChanges(sampling, promptIds)
}
