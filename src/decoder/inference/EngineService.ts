/** Defines what an engine is asked and what it answers. `Engine.ts` has the service. */
import type { Effect, Stream } from "effect"
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
   * The logarithm of the token's probability in the distribution softmax(logits / temperature), before top-k, top-p and
   * min-p; with temperature 0, in softmax(logits). Without these filters it is the distribution that the token was drawn
   * from, which importance ratios need. A trainer that recomputes it divides its logits by the same temperature.
   */
  readonly logprob: number
}

export interface GeneratedToken extends TokenCandidate {
  /** The likeliest tokens, as many as `topLogprobs`, the likeliest first and at a tie the lowest id. */
  readonly top: ReadonlyArray<TokenCandidate>
}

/** The weights that made an answer. */
export interface WeightsUsed {
  /** The name of the base model or adapter. */
  readonly model: string
  /** The training step of the adapter, or of the base model if the request used no adapter. */
  readonly step: number
  /** The training step of the base model. */
  readonly baseStep: number
}

export interface Generated {
  /** All generated tokens, with the end token and those of the stop string. */
  readonly tokens: ReadonlyArray<GeneratedToken>
  /** The text of the tokens up to the end token or the stop string, of which it contains nothing. */
  readonly text: string
  readonly finishReason: "stop" | "length"
  /** The stop string or the id of the token that ended the generation; null if the length did. */
  readonly stopReason: string | number | null
  readonly weights: WeightsUsed
}

/** An event of a stream. The texts of all events, joined, are the answer's text. */
export type GenerateEvent =
  /**
   * Reports a token. `text` is empty while characters are incomplete or could be the beginning of a stop string.
   * `weights` are the same in all events of a request.
   */
  | {
      readonly _tag: "Token"
      readonly token: GeneratedToken
      readonly text: string
      readonly weights: WeightsUsed
    }
  /** Comes last. `text` is the text that was held back until it was clear that no stop string follows. */
  | { readonly _tag: "Finished"; readonly text: string; readonly generated: Generated }

/** A model or an adapter that requests can name. */
export interface ModelInfo {
  readonly name: string
  /** The base model's name for an adapter; null for the base model. */
  readonly base: string | null
  readonly step: number
  /** The most tokens of a prompt and its answer together. */
  readonly maxLength: number
}

/** The work of an engine at a moment, and totals since it was opened. */
export interface EngineStatus {
  readonly running: number
  readonly waiting: number
  readonly steps: number
  readonly promptTokens: number
  /** Prompt tokens whose keys and values were already in the cache. */
  readonly cachedPromptTokens: number
  readonly generatedTokens: number
  /** Pages of prompts that are being read, pages that keep prompts for later, and free ones. */
  readonly pages: { readonly used: number; readonly kept: number; readonly free: number }
}

export interface EngineService {
  /** Generates an answer. If the caller is interrupted, the request leaves the batch and frees its pages. */
  readonly generate: (request: GenerateRequest) => Effect.Effect<Generated, EngineError>
  /** Generates an answer token by token. A stream that is closed early ends its request. */
  readonly stream: (request: GenerateRequest) => Stream.Stream<GenerateEvent, EngineError>
  /** The base model, then the adapters in the order of their names. */
  readonly models: Effect.Effect<ReadonlyArray<ModelInfo>>
  /** Waits until requests of a model begin with the weights of a step or of a later one, also if it is not loaded yet. */
  readonly awaitStep: (model: string, step: number) => Effect.Effect<void>
  readonly status: Effect.Effect<EngineStatus>
  /**
   * Loads an adapter, or new numbers for one that is loaded, between two steps. Requests that began with older numbers
   * finish with them; those that begin later take the new ones.
   */
  readonly loadAdapter: (adapter: {
    readonly name: string
    readonly step: number
    readonly adapter: StepAdapter
  }) => Effect.Effect<void, EngineError>
  /** Removes an adapter. Requests that began with it finish; later ones fail with `unknownModel`. */
  readonly unloadAdapter: (name: string) => Effect.Effect<void, EngineError>
  /**
   * Replaces the weights of the base model. Requests that have begun finish with the old weights; new ones wait until
   * those are done, and begin with the new weights. There is one copy of the weights in memory, never two.
   */
  readonly loadWeights: (weights: {
    readonly step: number
    readonly weights: Readonly<Record<string, NamedArray>>
  }) => Effect.Effect<void, EngineError>
}
