/**
 * Keeps the experts that a model chose for the tokens in its caches: those of prompts in pages, which sequences share, and
 * those of the sequences that generate in rows. It mirrors the caches of keys and values, so that each sequence has the
 * experts of all its tokens, also of those that it did not compute itself.
 */
import { expertIds, type RoutedExperts } from "../../base/formats/routedExperts.ts"
import type { DecoderConfig } from "../networks/DecoderConfig.ts"

type ExpertIds = RoutedExperts["ids"]

interface CacheSizes {
  readonly config: Pick<DecoderConfig, "layers" | "experts">
  readonly pageSize: number
  /** The number of pages. */
  readonly pages: number
  /** The number of tokens of a row. */
  readonly maxLength: number
}

/** Returns the number of experts that a token has in all layers together. */
export const expertsOfToken = ({ layers, experts }: Pick<DecoderConfig, "layers" | "experts">): number =>
  layers * (experts?.perToken ?? 0)

export class ExpertCache {
  private readonly layout: CacheSizes
  /** The number of experts of a token. */
  private readonly size: number
  /** [pages, pageSize, size]. */
  private readonly pages: ExpertIds
  /** [rows, maxLength, size]. */
  private readonly rows: ExpertIds
  /** A buffer for one row, while rows are exchanged. */
  private readonly exchanged: ExpertIds

  constructor(layout: CacheSizes, rows: number) {
    const { config, pageSize, pages, maxLength } = layout
    this.layout = layout
    this.size = expertsOfToken(config)
    const make = (tokens: number): ExpertIds => expertIds(config.experts?.count ?? 0, tokens * this.size)
    this.pages = make(pages * pageSize)
    this.rows = make(rows * maxLength)
    this.exchanged = make(maxLength)
  }

  /** Writes the experts of `count` tokens into a page, from its token `offset` on. `from` is the index of the first one in `chosen`. */
  writePage(page: number, offset: number, chosen: Int32Array, from: number, count: number): void {
    const { size, layout } = this
    this.pages.set(chosen.subarray(from * size, (from + count) * size), (page * layout.pageSize + offset) * size)
  }

  /** Copies the experts of the first `tokens` tokens of a page into another page. */
  copyPage(from: number, to: number, tokens: number): void {
    const ofPage = this.layout.pageSize * this.size
    this.pages.copyWithin(to * ofPage, from * ofPage, from * ofPage + tokens * this.size)
  }

  /** Begins a sequence in a row: copies the experts of its first `tokens` tokens from pages. */
  fillRow(row: number, pages: ReadonlyArray<number>, tokens: number): void {
    const { size, layout } = this
    const { pageSize, maxLength } = layout
    for (let at = 0; at < tokens; at += pageSize) {
      const from = pages[at / pageSize] * pageSize * size
      const count = Math.min(pageSize, tokens - at)
      this.rows.set(this.pages.subarray(from, from + count * size), (row * maxLength + at) * size)
    }
  }

  /** Writes the experts of token `at` of a row, which are in row `row` of `chosen`, too. */
  writeRow(row: number, at: number, chosen: Int32Array): void {
    const { size, layout } = this
    this.rows.set(chosen.subarray(row * size, (row + 1) * size), (row * layout.maxLength + at) * size)
  }

  /** Exchanges the sequences of two rows. */
  swap(one: number, other: number): void {
    const { rows, exchanged } = this
    const { length } = exchanged
    exchanged.set(rows.subarray(one * length, (one + 1) * length))
    rows.copyWithin(one * length, other * length, (other + 1) * length)
    rows.set(exchanged, other * length)
  }

  /** Returns a copy of the experts of the first `tokens` tokens of a row. */
  of(row: number, tokens: number): RoutedExperts {
    const { size, layout } = this
    const { config, maxLength } = layout
    const from = row * maxLength * size
    return {
      layers: config.layers,
      perToken: config.experts?.perToken ?? 0,
      ids: this.rows.slice(from, from + tokens * size),
    }
  }
}
