/** Defines the requests and answers of an engine. `Engine.ts` has the service. */
import type { Effect, Stream } from "effect"
import type { RoutedExperts } from "../../base/formats/routedExperts.ts"
import type { NamedArray } from "../../tensor/graph/Parameters.ts"
import type { EngineError } from "./EngineError.ts"
import type { RequestedSampling } from "./Sampling.ts"
import type { StepAdapter } from "./StepModel.ts"

export interface GenerateRequest {
  /** The name of the base model or of an adapter. */
  readonly model: string
  readonly promptIds: ArrayLike<number>
  /** The settings that differ from the defaults of `Sampling`. */
  readonly sampling?: RequestedSampling
}

/** A token and its log-probability. */
export interface TokenCandidate {
  readonly id: number
  /**
   * The logarithm of the token's probability in the distribution softmax(logits / temperature), before penalties,
   * `logitBias`, top-k, top-p and min-p; with temperature 0, in softmax(logits). Without these settings, it is the
   * distribution from which the token was drawn, as importance ratios need it. A trainer that recomputes it must divide its
   * logits by the same temperature.
   */
  readonly logprob: number
}

export interface GeneratedToken extends TokenCandidate {
  /** The `topLogprobs` likeliest tokens, the likeliest first. Of equally likely tokens, the lowest id comes first. */
  readonly top: ReadonlyArray<TokenCandidate>
}

/** A token of a prompt with its log-probability in softmax(logits), whatever the temperature of the request. */
export interface PromptToken extends GeneratedToken {
  /** The number of tokens that were likelier, plus 1. Of equally likely tokens, the lowest id comes first. */
  readonly rank: number
}

/** The log-probabilities of a prompt: one element for each token. The first is null, because no token precedes it. */
export type PromptLogprobs = ReadonlyArray<PromptToken | null>

/** The weights that generated an answer. */
export interface WeightsUsed {
  /** The name of the base model or adapter. */
  readonly model: string
  /** The training step of the adapter, or of the base model if the request used no adapter. */
  readonly step: number
  /** The training step of the base model. */
  readonly baseStep: number
}

export interface Generated {
  /** All generated tokens, including the end token and the tokens of the stop string. */
  readonly tokens: ReadonlyArray<GeneratedToken>
  /** The text of the tokens before the end token or the stop string. */
  readonly text: string
  readonly finishReason: "stop" | "length"
  /** The stop string, or the id of the token, that ended the generation; null if the length limit did. */
  readonly stopReason: string | number | null
  readonly weights: WeightsUsed
  /** The log-probabilities of the prompt, if the request asked for them. */
  readonly promptLogprobs?: PromptLogprobs
  /**
   * The experts that the model chose for the tokens of the prompt and the answer, without the last one, which the model has not
   * read; only if the engine was made with `routedExperts`. A trainer that replays them computes the same model.
   */
  readonly routedExperts?: RoutedExperts
}

/** An event of a stream. The texts of all events, joined, are the answer's text. */
export type GenerateEvent =
  /**
   * Reports a token. `text` is empty while a character is incomplete, or while the text could be the beginning of a stop
   * string. `weights` are the same in all events of a request. The first event has the log-probabilities of the prompt, if
   * the request asked for them.
   */
  | {
      readonly _tag: "Token"
      readonly token: GeneratedToken
      readonly text: string
      readonly weights: WeightsUsed
      readonly promptLogprobs?: PromptLogprobs
    }
  /** Reports the end. `text` is text that was held back until it was certain that no stop string follows. */
  | { readonly _tag: "Finished"; readonly text: string; readonly generated: Generated }

/** The way in which the hidden states of a text become one embedding: their mean, or the one of the last token. */
export type Pooling = "mean" | "last"

export interface EmbedRequest {
  /** The name of the base model or of an adapter. */
  readonly model: string
  readonly promptIds: ArrayLike<number>
  readonly pooling: Pooling
}

/** The embedding of a text. */
export interface Embedded {
  /** The pooled hidden states after the last norm, not scaled. */
  readonly embedding: Float64Array
  readonly weights: WeightsUsed
}

export interface Embedder {
  /** The number of elements of an embedding. */
  readonly size: number
  /** Computes the embedding of a text. If the caller is interrupted, the request leaves the batch and frees its pages. */
  readonly embed: (request: EmbedRequest) => Effect.Effect<Embedded, EngineError>
}

/** A model or an adapter that requests can name. */
export interface ModelInfo {
  readonly name: string
  /** For an adapter, the name of its base model; null for the base model. */
  readonly base: string | null
  readonly step: number
  /** The most tokens of a prompt and its answer together. */
  readonly maxLength: number
}

/** The current work of an engine, and totals since it was opened. */
export interface EngineStatus {
  readonly running: number
  readonly waiting: number
  readonly steps: number
  readonly promptTokens: number
  /** The number of prompt tokens whose keys and values were already in the cache. */
  readonly cachedPromptTokens: number
  readonly generatedTokens: number
  /** The numbers of pages: of prompts that are being read, of prompts that are kept for later requests, and free ones. */
  readonly pages: { readonly used: number; readonly kept: number; readonly free: number }
}

export interface EngineService {
  /** Generates an answer. If the caller is interrupted, the request leaves the batch and frees its pages. */
  readonly generate: (request: GenerateRequest) => Effect.Effect<Generated, EngineError>
  /** Generates an answer token by token. A stream that is closed early ends its request. */
  readonly stream: (request: GenerateRequest) => Stream.Stream<GenerateEvent, EngineError>
  /** Computes embeddings; absent if the engine was made without them. */
  readonly embedder?: Embedder
  /** Returns the base model, then the adapters in the order of their names. */
  readonly models: Effect.Effect<ReadonlyArray<ModelInfo>>
  /** Waits until new requests of a model use the weights of a step, or of a later one. The model need not be loaded yet. */
  readonly awaitStep: (model: string, step: number) => Effect.Effect<void>
  readonly status: Effect.Effect<EngineStatus>
  /**
   * Loads an adapter, or new weights for a loaded one, between two steps. Requests that have begun finish with the old
   * weights; later ones use the new weights.
   */
  readonly loadAdapter: (adapter: {
    readonly name: string
    readonly step: number
    readonly adapter: StepAdapter
  }) => Effect.Effect<void, EngineError>
  /** Removes an adapter. Requests that began with it finish; later ones fail with `unknownModel`. */
  readonly unloadAdapter: (name: string) => Effect.Effect<void, EngineError>
  /**
   * Replaces the weights of the base model. Requests that have begun finish with the old weights. New ones wait until then,
   * and use the new weights. There is only one copy of the weights in memory.
   */
  readonly loadWeights: (weights: {
    readonly step: number
    readonly weights: Readonly<Record<string, NamedArray>>
  }) => Effect.Effect<void, EngineError>
}
