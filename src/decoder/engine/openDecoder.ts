/**
 * Reads the weights of a language model in a folder of Hugging Face's layout, and makes an engine that generates with it on the
 * backend of the context. The command `effect serve` uses it.
 *
 * @example
 * ```ts
 * const directory = yield* LmDirectory.open(files, "pretrained")
 * const { engine, readAdapter } = yield* openDecoder(directory, { maxAdapters: 4 })
 * yield* engine.loadAdapter({ name: "poet", step: 0, adapter: yield* readAdapter(files, "poet") })
 * ```
 */
import { Context, Effect, Layer, type Scope } from "effect"
import type { Backend, BackendError, BackendUnavailable } from "../../tensor/backend/Backend.ts"
import type { ConfigError } from "../../base/config/Config.ts"
import type { ReadableParts } from "../../base/formats/Weights.ts"
import type { GraphError } from "../../tensor/graph/GraphError.ts"
import type { NamedArray } from "../../tensor/graph/Parameters.ts"
import { type StepAdapter, Engine, type EngineError, type EngineService } from "../inference/Engine.ts"
import type { AdapterShape, DecoderConfig } from "../networks/Decoder.ts"
import { readInt8 } from "../networks/int8.ts"
import { projections } from "../networks/parameters.ts"
import * as HuggingFaceAdapter from "../huggingFace/Adapter.ts"
import * as LmDirectory from "../huggingFace/LmDirectory.ts"
import type { Tokenizer } from "../../base/tokens/Tokenizer.ts"
import type { FormatName } from "../../agents/lm/toolFormats/ToolFormats.ts"
import * as ChatModel from "./ChatModel.ts"
import { type FormatError } from "../../base/formats/FormatError.ts"

export interface OpenDecoderOptions {
  /** The name of the model in requests. Default: the name of the folder. */
  readonly name?: string | undefined
  /** The largest number of tokens of a prompt and its answer together. Default: the model's, up to 2048. */
  readonly maxLength?: number | undefined
  /** The largest number of answers that are generated in one step. Default: 32. */
  readonly slots?: number | undefined
  /** Whether the engine also computes embeddings, for which it compiles more programs. Default: false. */
  readonly embeddings?: boolean | undefined
  /** Whether answers have the experts that the model chose for each token. Default: false. */
  readonly routedExperts?: boolean | undefined
  /** The number of tokens in a page of the cache. Default: 16. */
  readonly pageSize?: number | undefined
  /** The largest number of bytes of the caches and the adapters. Default: 64 GiB. */
  readonly mostBytes?: number | undefined
  /** The number of adapters that can be loaded at the same time. Default: 0, which generates faster. */
  readonly maxAdapters?: number | undefined
  /** The largest rank of an adapter. Default: 16. */
  readonly maxRank?: number | undefined
  /** The format in which the model writes tool calls. Default: `auto`, which detects it from the chat template. */
  readonly toolFormat?: FormatName | "none" | "auto" | undefined
  /** The seed of requests that have none. Default: 0. */
  readonly seed?: number | undefined
  /** An adapter that is merged into the model's weights. */
  readonly merged?: HuggingFaceAdapter.LoraAdapter | undefined
  /** `int8` holds large matrices as bytes, in about a quarter of the memory. Default: all weights are 32-bit floats. */
  readonly quantization?: DecoderConfig["quantization"]
}

export interface OpenedDecoder {
  readonly name: string
  readonly engine: EngineService
  readonly chat: ChatModel.ChatModel
  /** Reads an adapter of this model from a folder. */
  readonly readAdapter: (files: ReadableParts, folder: string) => Effect.Effect<StepAdapter, ConfigError | FormatError>
  /** Reads other weights of this model from a folder, for example from a later training step. */
  readonly readWeights: (
    files: ReadableParts,
    folder: string,
  ) => Effect.Effect<Readonly<Record<string, NamedArray>>, FormatError>
}

type OpenDecoderError = FormatError | GraphError | BackendError | BackendUnavailable | EngineError

/** The numbers of rows for which a program is compiled: 1, 8, 64 and so on up to `most`. */
const rowsUpTo = (most: number): ReadonlyArray<number> => {
  const rows: Array<number> = []
  for (let count = 1; count < most; count *= 8) rows.push(count)
  return [...rows, most]
}

/** A model in memory. */
interface DecoderInMemory {
  /** The model's name in requests. */
  readonly name: string
  readonly decoder: DecoderConfig
  readonly weights: Readonly<Record<string, NamedArray>>
  readonly tokenizer: Tokenizer
  readonly eosIds: ReadonlyArray<number>
}

interface DecoderEngineOptions extends Pick<
  OpenDecoderOptions,
  "maxLength" | "slots" | "pageSize" | "seed" | "mostBytes" | "embeddings" | "routedExperts"
> {
  /** The number of adapters that can be loaded at the same time, with at most the rank of `shape`; none by default. */
  readonly adapters?: { readonly slots: number; readonly shape: AdapterShape } | undefined
}

/** Makes an engine that generates with a model in memory. It works until the scope closes. */
export const decoderEngine = (
  { name, decoder, weights, tokenizer, eosIds }: DecoderInMemory,
  { maxLength, slots = 32, pageSize, seed, adapters, mostBytes, embeddings, routedExperts }: DecoderEngineOptions = {},
): Effect.Effect<
  EngineService,
  GraphError | BackendError | BackendUnavailable | EngineError,
  Backend | Scope.Scope
> => {
  const layer = Engine.layer({
    name,
    config: decoder,
    weights,
    tokenizer,
    eosIds,
    generating: rowsUpTo(slots),
    reading: rowsUpTo(Math.min(slots, 8)),
    maxLength,
    pageSize,
    adapters,
    mostBytes,
    embeddings,
    routedExperts,
    ...(seed === undefined ? {} : { seed }),
  })
  return Effect.map(Layer.build(layer), Context.get(Engine))
}

/** Makes an engine for the model in a folder. It works until the scope closes. */
export const openDecoder = Effect.fnUntraced(function* (
  directory: LmDirectory.LmDirectory,
  {
    name,
    maxLength,
    slots = 32,
    embeddings,
    routedExperts,
    pageSize,
    maxAdapters = 0,
    maxRank = 16,
    toolFormat,
    seed,
    mostBytes,
    merged,
    quantization,
  }: OpenDecoderOptions = {},
): Effect.fn.Return<OpenedDecoder, OpenDecoderError, Backend | Scope.Scope> {
  const { path: folder, tokenizer, eosIds } = directory
  const model = name ?? /([^\\/]+)[\\/]*$/.exec(folder)?.[1] ?? folder
  const { decoder, weights } = yield* modelWith(directory, { merged, quantization })
  const engine = yield* decoderEngine(
    { name: model, decoder, weights, tokenizer, eosIds },
    {
      slots,
      embeddings,
      routedExperts,
      maxLength,
      pageSize,
      seed,
      mostBytes,
      adapters: maxAdapters === 0 ? undefined : { slots: maxAdapters, shape: { rank: maxRank, targets: projections } },
    },
  )
  return {
    name: model,
    engine,
    chat: ChatModel.make(directory, toolFormat),
    ...readersOf(decoder, projections),
  }
})

/** Reads the weights of a model, merges an adapter into them, and quantises them. */
const modelWith = (
  directory: LmDirectory.LmDirectory,
  { merged: adapter, quantization }: Pick<OpenDecoderOptions, "merged" | "quantization">,
): Effect.Effect<HuggingFaceAdapter.MergedModel, FormatError> => {
  if (adapter === undefined) return LmDirectory.readModel(directory, quantization)
  return Effect.flatMap(directory.weights.readAll, (base) => {
    const merged = HuggingFaceAdapter.merge(directory.decoder, base, adapter)
    if (quantization === undefined) return Effect.succeed(merged)
    return readInt8(merged.decoder, (name) => Effect.succeed(merged.weights[name]))
  })
}

/**
 * Makes the functions that read other weights of a model, which are quantised as its own. Adapters are extended to all
 * `targets` of the engine.
 */
export const readersOf = (
  { quantization, ...decoder }: DecoderConfig,
  targets: AdapterShape["targets"],
): Pick<OpenedDecoder, "readAdapter" | "readWeights"> => ({
  readAdapter: (files, folder) =>
    Effect.map(HuggingFaceAdapter.load(files, folder, decoder), (adapter) =>
      HuggingFaceAdapter.withTargets(adapter, decoder, targets),
    ),
  readWeights: Effect.fnUntraced(function* (files, folder) {
    const weights = yield* LmDirectory.openWeights(files, folder, decoder)
    return (yield* LmDirectory.readModel({ decoder, weights }, quantization)).weights
  }),
})
