/**
 * Writes the keys and values of the sequences that generate; each sequence has its own row. The arrays are inputs of the
 * programs of `rowStep.ts`, which describes their layout.
 */
import type { DecoderConfig } from "../networks/DecoderConfig.ts"
import { highest } from "../../base/statistics/extremes.ts"

/** The arrays of one layer in one segment, for all rows. */
interface CacheLayer {
  /** [rows, keyValueHeads, headDim, tokens of the segment]. */
  readonly keys: Float32Array
  /** [rows, keyValueHeads, tokens of the segment, headDim]. */
  readonly values: Float32Array
}

interface CacheSegment {
  /** The number of tokens. */
  readonly length: number
  readonly layers: ReadonlyArray<CacheLayer>
}

type CacheSizes = Pick<DecoderConfig, "layers" | "keyValueHeads" | "headDim">

/** Pages with the keys and values of a prompt; `cachedStep.ts` describes their layout. */
interface Pages {
  readonly cache: Float32Array
  readonly pageSize: number
}

export class RowCache {
  private readonly config: CacheSizes
  /** The segments of each row, with the position of the first token of each segment. */
  private readonly segments: ReadonlyArray<CacheSegment & { readonly begin: number }>
  /** For each row, the number of tokens that were written since it was last filled with zeros. */
  private readonly used = new Map<number, number>()
  /** A buffer for the keys or values of one row, in a layer of a segment, while rows are exchanged. */
  private readonly exchanged: Float32Array

  constructor(config: CacheSizes, segments: ReadonlyArray<CacheSegment>) {
    this.config = config
    const longest = highest(segments.map(({ length }) => length))
    this.exchanged = new Float32Array(config.keyValueHeads * config.headDim * longest)
    let begin = 0
    this.segments = segments.map((segment) => ({ ...segment, begin: (begin += segment.length) - segment.length }))
  }

  /** Begins a sequence in a row: copies the first `tokens` tokens from pages. */
  fill(row: number, { cache, pageSize }: Pages, pages: ReadonlyArray<number>, tokens: number): void {
    // Clear the row first, because the numbers of its last sequence may not be finite.
    this.clear(row)
    const { layers, keyValueHeads, headDim } = this.config
    const linesOfPage = layers * 2 * keyValueHeads * pageSize
    for (let at = 0; at < tokens; at++) {
      const line = pages[Math.floor(at / pageSize)] * linesOfPage + (at % pageSize)
      this.write(row, at, cache, line * headDim, pageSize)
    }
  }

  /**
   * Writes token `at` of a row: its keys and values for each layer and head, from `entries` at the index `from` on. The
   * numbers of the next head begin `stride` times the size of a head later.
   */
  write(row: number, at: number, entries: Float32Array, from: number, stride = 1): void {
    const { keyValueHeads, headDim } = this.config
    let index = this.segments.length - 1
    while (this.segments[index].begin > at) index--
    const { begin, layers, length } = this.segments[index]
    const place = at - begin
    let entry = from
    for (const { keys, values } of layers) {
      for (let head = 0; head < keyValueHeads; head++, entry += stride * headDim) {
        const line = (row * keyValueHeads + head) * headDim * length
        for (let element = 0; element < headDim; element++)
          keys[line + element * length + place] = entries[entry + element]
      }
      for (let head = 0; head < keyValueHeads; head++, entry += stride * headDim) {
        const line = ((row * keyValueHeads + head) * length + place) * headDim
        for (let element = 0; element < headDim; element++) values[line + element] = entries[entry + element]
      }
    }
    this.used.set(row, Math.max(this.used.get(row) ?? 0, at + 1))
  }

  /** Exchanges the sequences of two rows. */
  swap(one: number, other: number): void {
    const [used, usedOther] = [this.used.get(one) ?? 0, this.used.get(other) ?? 0]
    this.eachUsed(Math.max(used, usedOther), (array, length) => {
      const numbers = this.exchanged.subarray(0, length)
      numbers.set(array.subarray(one * length, (one + 1) * length))
      array.copyWithin(one * length, other * length, (other + 1) * length)
      array.set(numbers, other * length)
    })
    this.used.set(one, usedOther)
    this.used.set(other, used)
  }

  private clear(row: number): void {
    this.eachUsed(this.used.get(row) ?? 0, (array, length) => array.fill(0, row * length, (row + 1) * length))
    this.used.set(row, 0)
  }

  /**
   * Visits the arrays of the segments that are needed for `tokens` tokens, with the number of elements per row of each array.
   */
  private eachUsed(tokens: number, visit: (array: Float32Array, length: number) => void): void {
    const { keyValueHeads, headDim } = this.config
    for (const { begin, layers, length } of this.segments) {
      if (begin >= tokens) return
      for (const { keys, values } of layers) {
        visit(keys, keyValueHeads * headDim * length)
        visit(values, keyValueHeads * headDim * length)
      }
    }
  }
}
