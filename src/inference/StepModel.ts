/**
 * The interface between the scheduler and a model: programs that compute one step for several sequences, a cache
 * of keys and values in pages, and room for adapters. `decoderModel.ts` makes one from a decoder transformer.
 */
import type { Effect } from "effect"
import type { BackendError } from "../backend/Backend.ts"
import type { NamedArray } from "../graph/Parameters.ts"
import type { PageStore } from "./PagedCache.ts"

/** A LoRA adapter: for each projection, "….lora_A.weight" [rank, in] and "….lora_B.weight" [out, rank]. */
export interface Adapter {
  readonly rank: number
  /** The product B A is scaled by `alpha / rank`. */
  readonly alpha: number
  readonly tensors: Readonly<Record<string, NamedArray>>
}

/** The inputs of a step. Each row computes the next tokens of one sequence. */
export interface StepFeeds {
  /** [rows, chunk]: the tokens; unused ones come last in a row. */
  readonly tokens: Int32Array
  /** [rows]: the number of tokens of the sequence that are in the cache. */
  readonly lengths: Int32Array
  /** [rows, pagesPerRow]: the pages of the sequence in the cache, in order; `StepModel.pages` where there is none. */
  readonly pages: Int32Array
  /** [rows]: the place of the sequence's adapter; −1 for none. */
  readonly adapters: Int32Array
}

/**
 * A program that computes one step. A token attends to the tokens of its sequence in the cache and to the tokens of its row
 * up to itself. What a row computes does not depend on other rows, on its place among them, or on the number of rows of the
 * program, to the bit. It may depend on how the tokens were divided into rows.
 */
export interface StepProgram {
  readonly rows: number
  /** The number of tokens in a row: 1 to generate, `pageSize` to read prompts. */
  readonly chunk: number
  readonly pagesPerRow: number
  readonly feeds: StepFeeds
  /** [rows, vocabSize]: the scores of the next token. Only programs with a chunk of 1 have them. */
  readonly logits: Float32Array
  readonly run: Effect.Effect<void, BackendError>
  /**
   * Copies the keys and values that a row computed in the last run, of its first `count` tokens, into a page of the cache,
   * from the token `offset` of the page on.
   */
  readonly store: (row: number, count: number, page: number, offset: number) => void
}

export interface StepModel extends PageStore {
  readonly vocabSize: number
  /** The most tokens of a sequence. */
  readonly maxLength: number
  /** Programs that generate, from the fewest rows to the most. All programs share the cache and the weights. */
  readonly decoding: ReadonlyArray<StepProgram>
  /** Programs that read prompts, from the fewest rows to the most. */
  readonly reading: ReadonlyArray<StepProgram>
  /** The number of adapters that can be loaded at the same time. */
  readonly adapterSlots: number
  /** Says why an adapter doesn't fit this model; undefined if it does. */
  readonly adapterProblem: (adapter: Adapter) => string | undefined
  readonly writeAdapter: (slot: number, adapter: Adapter) => Effect.Effect<void, BackendError>
  /** Says why weights don't fit this model; undefined if they do. */
  readonly weightsProblem: (weights: Readonly<Record<string, NamedArray>>) => string | undefined
  readonly writeWeights: (weights: Readonly<Record<string, NamedArray>>) => Effect.Effect<void, BackendError>
}
