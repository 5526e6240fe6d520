/**
 * The interface between the scheduler and a model: programs that compute one step for several sequences, a cache of keys
 * and values, and room for adapters. `decoderModel.ts` makes one from a decoder transformer.
 *
 * The cache has two parts. Prompts are read into pages, which sequences with the same beginning share. When the prompt of a
 * sequence is read, its pages are copied into a row of the cache, in which it generates.
 */
import type { Effect } from "effect"
import type { BackendError } from "../../tensor/backend/Backend.ts"
import type { RoutedExperts } from "../../base/formats/routedExperts.ts"
import type { NamedArray } from "../../tensor/graph/Parameters.ts"
import type { PageStore } from "./PagedCache.ts"

/** A LoRA adapter: for each projection, "….lora_A.weight" [rank, in] and "….lora_B.weight" [out, rank]. */
export interface StepAdapter {
  readonly rank: number
  /** The scale alpha / rank of the product B A. */
  readonly alpha: number
  readonly tensors: Readonly<Record<string, NamedArray>>
}

/** The inputs of a step. Each row computes the next tokens of one sequence. */
export interface StepFeeds {
  /** [rows], or [rows, chunk] for reading prompts: the tokens. Unused ones come last in a row. */
  readonly tokens: Int32Array
  /** [rows]: the number of the sequence's tokens that are in the cache. */
  readonly lengths: Int32Array
  /** [rows]: the slot of the sequence's adapter; −1 for none. */
  readonly adapters: Int32Array
}

/**
 * A program that computes one step. The result of a row does not depend on the other rows, nor on the row's position. On
 * `wasm` it does not even depend on the sizes of the program, bit for bit; products of ONNX Runtime round differently with
 * one row than with many. It may depend on how the tokens of a prompt were divided into steps.
 */
interface ModelStep {
  readonly rows: number
  readonly run: Effect.Effect<void, BackendError>
}

/**
 * A program that reads a page of several prompts. A token attends to the cached tokens of its sequence, and to the tokens of
 * its row up to itself.
 */
export interface ReadingProgram extends ModelStep {
  /** `pages` [rows, pagesPerRow]: the pages of the sequence in the cache, in order; unused elements are `StepModel.pages`. */
  readonly feeds: StepFeeds & { readonly pages: Int32Array }
  readonly pagesPerRow: number
  /**
   * Copies the keys and values of the first `count` tokens that a row computed in the last run into a page of the cache, from
   * the page's token `offset` on.
   */
  readonly store: (row: number, count: number, page: number, offset: number) => void
}

/** A program that reads a page of several texts, and also gives the hidden states of their tokens. */
export interface EmbeddingProgram extends ReadingProgram {
  /** [rows, chunk, hiddenSize]: the hidden states after the last norm. */
  readonly hidden: Float32Array
}

/** A program that computes one token of several sequences, which use the first rows of the cache. */
export interface GeneratingProgram extends ModelStep {
  readonly feeds: StepFeeds
  /** The largest number of cached tokens of a sequence in the first `longRows` rows. */
  readonly room: number
  readonly longRows: number
  /** The largest number of cached tokens of a sequence in the other rows. */
  readonly shortRoom: number
  /** [rows, vocabSize]: the scores of the next token. */
  readonly logits: Float32Array
  /**
   * Copies the keys and values that a row computed in the last run into the same row of the cache, as those of token `at`.
   */
  readonly store: (row: number, at: number) => void
}

export interface StepModel extends PageStore {
  readonly vocabSize: number
  /** The largest number of tokens of a sequence. */
  readonly maxLength: number
  /** The programs that generate, sorted by rows and then by the size of the cache that they read. */
  readonly generating: ReadonlyArray<GeneratingProgram>
  /** The programs that read prompts, sorted by rows. */
  readonly reading: ReadonlyArray<ReadingProgram>
  /** The programs that read texts for embeddings, sorted by rows; none if the model computes no embeddings. */
  readonly embedding: ReadonlyArray<EmbeddingProgram>
  /** The size of a hidden state. */
  readonly hiddenSize: number
  /** Begins a sequence in a row of the cache: copies the first `tokens` tokens from pages. */
  readonly fillRow: (row: number, pages: ReadonlyArray<number>, tokens: number) => void
  /** Exchanges the sequences of two rows of the cache. */
  readonly swapRows: (one: number, other: number) => void
  /** Returns the experts of the first `tokens` tokens of a row; undefined if the model does not keep them. */
  readonly routedExperts?: (row: number, tokens: number) => RoutedExperts | undefined
  /** The number of adapters that can be loaded at the same time. */
  readonly adapterSlots: number
  /** Returns why an adapter doesn't fit this model; undefined if it does. */
  readonly adapterProblem: (adapter: StepAdapter) => string | undefined
  readonly writeAdapter: (slot: number, adapter: StepAdapter) => Effect.Effect<void, BackendError>
  /** Returns why weights don't fit this model; undefined if they do. */
  readonly weightsProblem: (weights: Readonly<Record<string, NamedArray>>) => string | undefined
  readonly writeWeights: (weights: Readonly<Record<string, NamedArray>>) => Effect.Effect<void, BackendError>
}
