/**
 * Exports the language models that this library runs itself: their networks, weights from other programs, generation and
 * serving.
 */
export * as LmAdapter from "./huggingFace/Adapter.ts"
export * as LmDirectory from "./huggingFace/LmDirectory.ts"
export * as Decoder from "./networks/Decoder.ts"
export {
  type StepAdapter,
  type TokenCandidate,
  type Embedded,
  type Embedder,
  type EmbedRequest,
  Engine,
  EngineError,
  type EngineService,
  type EngineStatus,
  type Generated,
  type GeneratedToken,
  type GenerateEvent,
  type GenerateRequest,
  type ModelInfo,
  type Pooling,
  type PromptLogprobs,
  type PromptToken,
  Sampling,
  type RequestedSampling,
  type WeightsUsed,
} from "./inference/Engine.ts"
export * as ChatModel from "./engine/ChatModel.ts"
export { openDecoder, type OpenDecoderOptions, type OpenedDecoder } from "./engine/openDecoder.ts"
export * as EngineLm from "./engine/EngineLm.ts"
export * as Serve from "./serve/Serve.ts"
