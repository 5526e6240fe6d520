/**
 * Opens and saves the folder of a language model in Hugging Face's layout: `config.json`, `generation_config.json`, the
 * weights in safetensors files, the tokenizer and the chat template. Servers and trainers open a model with one call.
 *
 * @example
 * ```ts
 * const model = yield* open(files, "pretrained")
 * const prompt = yield* model.template.render({ messages: [{ role: "user", content: "Hi" }], addGenerationPrompt: true })
 * const ids = model.tokenizer.encode(prompt)
 * const weights = yield* model.weights.readAll
 * ```
 */
import { Effect, Schema } from "effect"
import { ConfigError } from "../../base/config/Config.ts"
import { fraction, naturalInt, nonNegative, positiveInt } from "../../base/config/fields.ts"
import { checkJson, parseJson } from "../../base/config/jsonFile.ts"
import { prettyJson } from "../../base/text/text.ts"
import { utf8 } from "../../base/text/utf8.ts"
import { inFolder, modelFiles } from "../../base/formats/modelFiles.ts"
import type { ReadableParts } from "../../base/formats/Weights.ts"
import type { NamedArray } from "../../tensor/graph/Parameters.ts"
import type { ChatTemplate } from "../../base/tokens/ChatTemplate.ts"
import { misfit, type Tokenizer } from "../../base/tokens/Tokenizer.ts"
import { load, type TokenizerFolder } from "../../base/tokens/TokenizerFolder.ts"
import type { DecoderConfig } from "../networks/DecoderConfig.ts"
import { readInt8 } from "../networks/int8.ts"
import {
  decodeModelConfig,
  encodeModelConfig,
  idsOf,
  type ModelConfig,
  TokenIds,
  type WeightType,
} from "./ModelConfig.ts"
import {
  type FileContents,
  type FolderWriter,
  type ModelWeights,
  modelWeightFiles,
  openWeights,
} from "./modelWeights.ts"

/** The sampling settings in `generation_config.json`; keys that the file lacks are left out. */
export interface GenerationDefaults {
  readonly temperature?: number
  readonly topP?: number
  readonly topK?: number
  readonly minP?: number
  readonly maxTokens?: number
}

/** An opened model. Its weights are read when they are needed. */
export interface LmDirectory {
  /** The path of the folder. */
  readonly path: string
  readonly config: ModelConfig
  readonly decoder: DecoderConfig
  readonly tokenizer: Tokenizer
  readonly template: ChatTemplate
  readonly weights: ModelWeights
  /** The ids that end a generation: those of the generation config (or, without them, of the config) and of the tokenizer. */
  readonly eosIds: ReadonlyArray<number>
  readonly generation: GenerationDefaults
  /** Files that are saved with the model again: the tokenizer's files, and `generation_config.json` if it exists. */
  readonly otherFiles: Readonly<Record<string, Uint8Array>>
}

export type OpenError = ConfigError | FormatError

const maybe = <S extends Schema.Codec<unknown, unknown>>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

const GenerationJson = Schema.Struct({
  temperature: maybe(nonNegative),
  top_p: maybe(fraction),
  top_k: maybe(naturalInt),
  min_p: maybe(fraction),
  max_new_tokens: maybe(positiveInt),
  eos_token_id: maybe(TokenIds),
})

/** The options of opening a model. */
export interface LmDirectoryOptions {
  /** The tokenizer of a model whose folder has none. */
  readonly tokenizer?: TokenizerFolder | undefined
}

/**
 * Opens the model in a folder of `files`, such as a `FileTree`. All files except the tensors are read and checked: the
 * weights must match the config, and the tokenizer must match the weights. An error names the file and the key or tensor.
 */
export const open = Effect.fnUntraced(function* (
  files: ReadableParts,
  folder = ".",
  { tokenizer: given }: LmDirectoryOptions = {},
): Effect.fn.Return<LmDirectory, OpenError> {
  const configPath = inFolder(folder, modelFiles.config)
  const config = yield* decodeModelConfig(yield* readFile(files, configPath), configPath)
  const names = yield* Effect.mapError(files.list(folder), ({ message }) =>
    ConfigError.at({ source: folder }, "", message),
  )
  const tokens = given !== undefined && !names.includes(modelFiles.tokenizer) ? given : yield* load(files, folder)
  const generationPath = inFolder(folder, modelFiles.generationConfig)
  const generationFile = names.includes(modelFiles.generationConfig) ? yield* readFile(files, generationPath) : null
  const generation =
    generationFile === null
      ? {}
      : yield* checkJson(GenerationJson, yield* parseJson(generationFile, generationPath), generationPath)
  const named = idsOf(generation.eos_token_id)
  const modelEos = named.length > 0 ? named : config.eosIds
  const problem = misfit(tokens.tokenizer, {
    vocabSize: config.decoder.vocabSize,
    eosIds: modelEos,
    path: inFolder(folder, modelFiles.tokenizer),
    configPath,
    eosPath: named.length > 0 ? generationPath : configPath,
  })
  if (problem !== undefined) return yield* problem
  const tokenizerEos = tokens.tokenizer.special.eos
  return {
    path: folder,
    config,
    decoder: config.decoder,
    tokenizer: tokens.tokenizer,
    template: tokens.template,
    weights: yield* openWeights(files, folder, config.decoder),
    eosIds: [...new Set([...modelEos, ...(tokenizerEos === null ? [] : [tokenizerEos])])],
    generation: defaultsOf(generation),
    otherFiles: {
      ...tokens.files,
      ...(generationFile === null ? {} : { [modelFiles.generationConfig]: generationFile }),
    },
  }
})

const readFile = (files: ReadableParts, path: string): Effect.Effect<Uint8Array, ConfigError> =>
  Effect.mapError(files.read(path), ({ message }) => ConfigError.at({ source: path }, "", message))

const defaultsOf = (json: typeof GenerationJson.Type): GenerationDefaults => {
  const { temperature, top_p, top_k, min_p, max_new_tokens } = json
  const isSet = (value: number | null | undefined): value is number => value !== null && value !== undefined
  return {
    ...(isSet(temperature) ? { temperature } : {}),
    ...(isSet(top_p) ? { topP: top_p } : {}),
    ...(isSet(top_k) ? { topK: top_k } : {}),
    ...(isSet(min_p) ? { minP: min_p } : {}),
    ...(isSet(max_new_tokens) ? { maxTokens: max_new_tokens } : {}),
  }
}

/**
 * Reads the weights of an opened model. With `int8`, large matrices become bytes, and the returned config says so; such a model
 * cannot be trained as a whole, nor saved.
 */
export const readModel = (
  { decoder, weights }: Pick<LmDirectory, "decoder" | "weights">,
  quantization?: "int8" | null,
): Effect.Effect<Pick<ModelToSave, "decoder" | "weights">, FormatError> =>
  quantization === "int8"
    ? readInt8(decoder, weights.read)
    : Effect.map(weights.readAll, (all) => ({ decoder, weights: all }))

/** A model to save: an opened model with its weights, or one that was made from scratch. */
export interface ModelToSave {
  readonly decoder: DecoderConfig
  readonly weights: Readonly<Record<string, NamedArray>>
  /** The files of the tokenizer: `otherFiles` of an opened model, or `files` of a tokenizer from scratch. */
  readonly otherFiles: Readonly<Record<string, Uint8Array>>
  /** The ids that end a generation. */
  readonly eosIds: ReadonlyArray<number>
  /** The other special ids, and further keys of `config.json`, from the model on which this one is based. */
  readonly config?: Partial<Pick<ModelConfig, "bosId" | "padId" | "json">> | undefined
}

export interface SaveOptions {
  /** The number type in the files. Default: `float32`, which is exact. */
  readonly type?: WeightType | undefined
  /** The largest number of tensor bytes per file. More weights are split over several files. Default: 5 GB. */
  readonly maxShardBytes?: number | undefined
}

/** Returns the files of a model's folder by name. Tensors are encoded while their file is written. */
export const filesOf = Effect.fnUntraced(function* (
  { decoder, weights, otherFiles, eosIds, config: { bosId = null, padId = null, json = {} } = {} }: ModelToSave,
  { type = "float32", maxShardBytes }: SaveOptions = {},
): Effect.fn.Return<Readonly<Record<string, FileContents>>, ConfigError | FormatError> {
  const config = yield* encodeModelConfig({ decoder, weightType: type, bosId, eosIds, padId, json })
  const generation = { bos_token_id: bosId, eos_token_id: config.eos_token_id, pad_token_id: padId }
  return {
    ...(yield* modelWeightFiles(decoder, weights, type, { maxShardBytes })),
    [modelFiles.generationConfig]: utf8.encode(prettyJson(generation)),
    ...otherFiles,
    [modelFiles.config]: utf8.encode(prettyJson(config)),
  }
})

/** Saves a model as the folder `folder`, as a whole or not at all. A folder of that name is replaced. */
export const save = Effect.fnUntraced(function* (
  files: FolderWriter,
  folder: string,
  model: ModelToSave,
  options: SaveOptions = {},
): Effect.fn.Return<void, ConfigError | FormatError> {
  const contents = yield* filesOf(model, options)
  yield* Effect.mapError(
    files.writeDirectory(folder, contents),
    ({ message }) => new FormatError({ path: folder, message: `${folder}: ${message}` }),
  )
})

export { decodeModelConfig, encodeModelConfig, type ModelConfig, type WeightType } from "./ModelConfig.ts"
import { FormatError } from "../../base/formats/FormatError.ts"
export { type ModelWeights, openWeights } from "./modelWeights.ts"
