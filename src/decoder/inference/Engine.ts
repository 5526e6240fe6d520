/**
 * The service that generates text with a model: `generate` returns a whole answer, `stream` its tokens as they are generated.
 * All requests share the steps of one program (continuous batching) and a cache of keys and values, but an answer does not
 * depend on other requests.
 *
 * Adapters and weights can be replaced while requests run. A request uses the weights with which it began until its end, and
 * its answer names them.
 *
 * @example
 * ```ts
 * const engine = yield* Engine
 * const answer = yield* engine.generate({ model: "base", promptIds: [1, 17, 42], sampling: { temperature: 0, maxTokens: 12 } })
 * answer.text // the generated text, without the stop string
 * answer.tokens[0].logprob // log-probability of the first token
 * answer.weights // { model: "base", step: 0, baseStep: 0 }
 * ```
 */
import { Context, Effect, Layer } from "effect"
import { type Backend, type BackendError, type BackendUnavailable, improving } from "../../tensor/backend/Backend.ts"
import type { GraphError } from "../../tensor/graph/GraphError.ts"
import type { NamedArray } from "../../tensor/graph/Parameters.ts"
import type { DecoderConfig } from "../networks/Decoder.ts"
import { decoderModel } from "./decoderModel.ts"
import type { EngineSizes } from "./modelLayout.ts"
import { type EngineError, engineError } from "./EngineError.ts"
import type { EngineService } from "./EngineService.ts"
import type { EngineOptions } from "./EngineState.ts"
import { makeEngine } from "./makeEngine.ts"

export { EngineError } from "./EngineError.ts"
export type {
  TokenCandidate,
  Embedded,
  Embedder,
  EmbedRequest,
  EngineService,
  EngineStatus,
  Generated,
  GeneratedToken,
  GenerateEvent,
  GenerateRequest,
  ModelInfo,
  Pooling,
  PromptLogprobs,
  PromptToken,
  WeightsUsed,
} from "./EngineService.ts"
export { Sampling, type RequestedSampling } from "./Sampling.ts"
export type { StepAdapter } from "./StepModel.ts"

/** The model that an engine serves, and the sizes of its programs and its cache. */
export interface EngineModel extends EngineOptions, EngineSizes {
  readonly config: DecoderConfig
  /** The weights by their names in Hugging Face's files, as `Decoder.parametersOf` declares them. */
  readonly weights: Readonly<Record<string, NamedArray>>
}

export class Engine extends Context.Service<Engine, EngineService>()("effect-rl/inference/Engine") {
  /**
   * Provides an engine for a decoder transformer on the `Backend`, with all of its programs. It fails with `wrongWeights`
   * if the weights don't fit the config.
   *
   * @example
   * ```ts
   * const { config, weights, tokenizer, eosIds } = pretrained
   * const engine = Engine.layer({ name: "base", config, weights, tokenizer, eosIds }).pipe(Layer.provide(Wasm.layer))
   * const answer = Effect.gen(function* () {
   *   return yield* (yield* Engine).generate({ model: "base", promptIds: tokenizer.encode("Hello") })
   * }).pipe(Effect.provide(engine))
   * ```
   */
  static readonly layer = (
    model: EngineModel,
  ): Layer.Layer<Engine, GraphError | BackendUnavailable | BackendError | EngineError, Backend> =>
    Layer.effect(
      Engine,
      Effect.gen(function* () {
        const steps = yield* decoderModel(model.config, model)
        const problem = steps.weightsProblem(model.weights)
        if (problem !== undefined) return yield* engineError(model.name, "wrongWeights", problem)
        yield* steps.writeWeights(model.weights)
        yield* improving
        return yield* makeEngine(steps, model)
      }),
    )
}
