/**
 * Collects the hidden states of a text, page by page, to one vector: their mean, or the one of the last token. It adds in
 * float64, so that the order of the pages is the only thing on which the bits depend.
 */
import type { Pooling } from "./EngineService.ts"

export class HiddenPool {
  private readonly pooling: Pooling
  private readonly sums: Float64Array
  private tokens = 0

  constructor(pooling: Pooling, size: number) {
    this.pooling = pooling
    this.sums = new Float64Array(size)
  }

  /** Adds the hidden states of the next `count` tokens, which begin at `offset`. */
  add(hidden: Float32Array, offset: number, count: number): void {
    const { sums } = this
    const size = sums.length
    const first = this.pooling === "last" ? count - 1 : 0
    if (this.pooling === "last") sums.fill(0)
    for (let token = first; token < count; token++) {
      const from = offset + token * size
      for (let at = 0; at < size; at++) sums[at] += hidden[from + at]
    }
    this.tokens += count
  }

  /** Returns the vector of all tokens so far. */
  vector(): Float64Array {
    const divisor = this.pooling === "mean" ? this.tokens : 1
    return this.sums.map((sum) => sum / divisor)
  }

  /** Tells whether all numbers are finite. */
  get isFinite(): boolean {
    return this.sums.every(Number.isFinite)
  }
}
