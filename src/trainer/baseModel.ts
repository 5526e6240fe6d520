/** Opens the model that all runs of a trainer share: from a folder with Hugging Face's files, or with random weights. */
import { Effect, type FileSystem, Path } from "effect"
import type { Plain } from "../base/config/Config.ts"
import type { NamedArray } from "../tensor/graph/Parameters.ts"
import * as ChatModel from "../decoder/engine/ChatModel.ts"
import * as Decoder from "../decoder/networks/Decoder.ts"
import * as LmDirectory from "../decoder/huggingFace/LmDirectory.ts"
import { stream } from "../base/rng/Rng.ts"
import { onDisk } from "../run/store/FileTree.ts"
import * as Scratch from "../base/tokens/scratch.ts"
import type { Tokenizer } from "../base/tokens/Tokenizer.ts"
import type { MultiRunConfig } from "./config/MultiRunConfig.ts"

/** The tokenizer and the chat template of a model, without its weights. */
export interface Language {
  readonly tokenizer: Tokenizer
  readonly chat: ChatModel.ChatModel
  readonly eosIds: ReadonlyArray<number>
}

/** The model with which a trainer begins. */
export interface BaseModel extends Language {
  readonly decoder: Decoder.DecoderConfig
  readonly weights: Readonly<Record<string, NamedArray>>
  readonly bosId: number | null
  readonly padId: number | null
  /** The `config.json` of the model's folder. Keys that we do not use are kept when the weights are saved. */
  readonly json: Plain
  /** The files of the tokenizer and of the generation config, to be saved with the weights. */
  readonly otherFiles: Readonly<Record<string, Uint8Array>>
  /** The path of the model's folder, which adapters name as their base; `scratch` for a random model. */
  readonly name: string
}

type ScratchModel = Extract<MultiRunConfig["model"], { readonly type: "scratch" }>
type FolderModel = Extract<MultiRunConfig["model"], { readonly type: "folder" }>
type ModelSettings = ScratchModel | (Omit<FolderModel, "quantization"> & Partial<FolderModel>)

const openFolder = Effect.fnUntraced(function* (path: string) {
  return yield* LmDirectory.open(yield* onDisk(".", { followsLinks: true }), path)
})

const scratchTokens = ({ tokenizer: { alphabet, template } }: ScratchModel) => {
  const options = template === null ? {} : { template }
  return alphabet === null ? Scratch.byteLevel(options) : Scratch.characters(alphabet, options)
}

const scratchLanguage = (tokens: Effect.Success<ReturnType<typeof scratchTokens>>): Language => {
  const { eos } = tokens.tokenizer.special
  return { tokenizer: tokens.tokenizer, chat: ChatModel.make(tokens), eosIds: eos === null ? [] : [eos] }
}

/**
 * Opens only the tokenizer and the chat template of a config's model, for a program that lets an inference server generate.
 */
export const openLanguage = Effect.fnUntraced(function* (
  model: ModelSettings,
  baseDir: string,
): Effect.fn.Return<Language, LmDirectory.OpenError, FileSystem.FileSystem | Path.Path> {
  if (model.type === "scratch") return scratchLanguage(yield* scratchTokens(model))
  const { tokenizer, eosIds, template } = yield* openFolder((yield* Path.Path).resolve(baseDir, model.path))
  return { tokenizer, eosIds, chat: ChatModel.make({ tokenizer, template }) }
})

interface OpenOptions {
  readonly baseDir: string
  readonly seed: number
  /** Whether the weights of a folder are not needed, because they are on a server. */
  readonly onlyLanguage?: boolean
}

/**
 * Opens the model of a config. `baseDir` is the folder that a relative path starts from, and `seed` draws the weights of
 * a model from scratch.
 *
 * @example
 * ```ts
 * const base = yield* openBaseModel({ type: "folder", path: "pretrained" }, { baseDir: ".", seed: 0 })
 * ```
 */
export const openBaseModel = Effect.fnUntraced(function* (
  model: ModelSettings,
  { baseDir, seed, onlyLanguage = false }: OpenOptions,
): Effect.fn.Return<BaseModel, LmDirectory.OpenError, FileSystem.FileSystem | Path.Path> {
  if (model.type === "folder") {
    const path = (yield* Path.Path).resolve(baseDir, model.path)
    const opened = yield* openFolder(path)
    const { tokenizer, eosIds, otherFiles, template } = opened
    const { decoder, weights } = onlyLanguage
      ? { decoder: opened.decoder, weights: {} }
      : yield* LmDirectory.readModel(opened, model.quantization)
    const { bosId, padId, json } = opened.config
    const chat = ChatModel.make({ tokenizer, template })
    return { decoder, weights, tokenizer, chat, eosIds, bosId, padId, json, otherFiles, name: path }
  }
  const tokens = yield* scratchTokens(model)
  const { tokenizer } = tokens
  const { hiddenSize, heads, layers, maxPositions, intermediateSize } = model
  const sizes: Decoder.DecoderConfig = {
    architecture: "llama",
    vocabSize: tokenizer.vocabSize,
    hiddenSize,
    intermediateSize: intermediateSize ?? 2 * hiddenSize,
    layers,
    heads,
    keyValueHeads: heads,
    headDim: hiddenSize / heads,
    maxPositions,
    rmsNormEpsilon: 1e-5,
    rope: { theta: 10_000, scaling: null },
    biases: { qkv: false, output: false, mlp: false },
    tiedEmbeddings: false,
  }
  const decoder = yield* Decoder.decodeConfig(sizes, "model")
  return {
    decoder,
    weights: Decoder.initialValues(Decoder.parametersOf(decoder, model.initializerRange), stream(seed, "weights")),
    ...scratchLanguage(tokens),
    bosId: tokenizer.special.bos,
    padId: tokenizer.special.pad,
    json: {},
    otherFiles: tokens.files,
    name: "scratch",
  }
})

/**
 * Returns the model to save with `weights`, which have the same shapes as its own. Special ids and unknown keys of
 * `config.json` are kept.
 */
export const modelToSave = (base: BaseModel, weights = base.weights): LmDirectory.ModelToSave => {
  const { decoder, otherFiles, eosIds, bosId, padId, json } = base
  return { decoder, weights, otherFiles, eosIds, config: { bosId, padId, json } }
}
