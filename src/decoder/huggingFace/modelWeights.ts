/**
 * Reads the weights of a Hugging Face model one tensor at a time, after checking them against the config, and writes weights
 * to one file or to shards. Numbers are 32-bit floats in memory, whatever their type in the files.
 *
 * @example
 * ```ts
 * const weights = yield* openWeights(files, "pretrained", decoderConfig)
 * const embedding = yield* weights.read("model.embed_tokens.weight")
 * const all = yield* weights.readAll
 * ```
 */
import { Effect } from "effect"
import { type Dtype, dtypeOf, elements } from "../../base/formats/dtypes.ts"
import { inFolder } from "../../base/formats/modelFiles.ts"
import type { ShardOptions } from "../../base/formats/shards.ts"
import { shardParts } from "../../base/formats/shards.ts"
import { open, type TensorFiles } from "../../base/formats/TensorFiles.ts"
import { type ReadableParts, type TensorEntry } from "../../base/formats/Weights.ts"
import type { Declaration, NamedArray } from "../../tensor/graph/Parameters.ts"
import type { DecoderConfig } from "../networks/DecoderConfig.ts"
import { embeddingName, headName, parametersOf } from "../networks/parameters.ts"
import { openGguf } from "./ggufWeights.ts"
import type { WeightType } from "./ModelConfig.ts"
import { fileTensors, readParameter, tensorsIn, type WeightLayout, weightLayoutOf } from "./weightLayout.ts"
import { FormatError } from "../../base/formats/FormatError.ts"

export interface ModelWeights {
  /** The file of the weights, or the index of their shards. */
  readonly path: string
  /** The number type of the tensors in the files; the most frequent one if they differ. */
  readonly type: WeightType
  /** Reads one parameter. */
  readonly read: (name: string) => Effect.Effect<NamedArray, FormatError>
  /** Reads all parameters by name, one after the other. */
  readonly readAll: Effect.Effect<Readonly<Record<string, NamedArray>>, FormatError>
}

/** The names and shapes of tensors. */
type Shapes = Readonly<Record<string, Pick<Declaration, "shape">>>

const wrongWeights = (path: string, message: string): FormatError =>
  new FormatError({ path, message: `${path}: ${message}` })

const floats: Readonly<Partial<Record<Dtype, WeightType>>> = { F32: "float32", BF16: "bfloat16", F16: "float16" }
const dtypeOfType: Readonly<Record<WeightType, Dtype>> = { float32: "F32", bfloat16: "BF16", float16: "F16" }

/** Tells whether a tensor of older files is not a parameter but computed from the config. */
const isComputed = (name: string): boolean =>
  name.endsWith(".rotary_emb.inv_freq") || /(^|\.)h\.\d+\.attn\.(masked_)?bias$/.test(name)

/** Opens the weights in a folder and checks the names, shapes and number types of all tensors, before any is read. */
export const openWeights = Effect.fnUntraced(function* (
  files: ReadableParts,
  folder: string,
  config: DecoderConfig,
): Effect.fn.Return<ModelWeights, FormatError> {
  const gguf = yield* ggufIn(files, folder)
  const stored = yield* gguf === undefined ? open(files, folder) : openGguf(files, inFolder(folder, gguf), config)
  const declared = parametersOf(config)
  const layout = weightLayoutOf(config, stored.tensors.has("wte.weight") ? "" : "transformer.")
  // A tied head has no tensor of its own, but some files contain one that equals the embedding.
  const ignored = (name: string): boolean => isComputed(name) || (config.tiedEmbeddings && name === headName)
  yield* checkTensors(stored, layout === null ? declared : tensorsIn(layout), ignored)
  const readTensor = Effect.fnUntraced(function* (name: string) {
    const { shape, data } = yield* stored.read(name)
    return { shape, data: data instanceof Float32Array ? data : Float32Array.from(data) }
  })
  const read = layout === null ? readTensor : readerOf(layout, declared, readTensor)
  const readAll = Effect.gen(function* () {
    const all: Record<string, NamedArray> = {}
    for (const name of Object.keys(declared)) all[name] = yield* read(name)
    return all
  })
  const first = layout === null ? embeddingName : (layout.blocks.get(embeddingName)?.[0].file ?? embeddingName)
  const type = floats[stored.tensors.get(first)?.dtype ?? "F32"] ?? "float32"
  return { path: stored.path, type, read, readAll }
})

/** Returns the name of a folder's GGUF file, if it has one and no other file of weights. */
const ggufIn = Effect.fnUntraced(function* (files: ReadableParts, folder: string) {
  const names = yield* Effect.orElseSucceed(files.list(folder), (): ReadonlyArray<string> => [])
  if (names.some((name) => /\.(safetensors|bin|pt|pth|index\.json)$/.test(name) && !name.startsWith("adapter_"))) return
  const found = names.filter((name) => name.endsWith(".gguf"))
  if (found.length <= 1) return found[0]
  return yield* wrongWeights(folder, `expected one GGUF file, found ${found.join(", ")}; files in parts are not read`)
})

/**
 * Returns a function that reads parameters from tensors that join several. It keeps the last tensor, because the next
 * parameter is often in it, too.
 */
const readerOf = (
  layout: WeightLayout,
  declared: Readonly<Record<string, Declaration>>,
  readTensor: ModelWeights["read"],
): ModelWeights["read"] => {
  let last: { readonly file: string; readonly tensor: NamedArray } | undefined
  const readKept = Effect.fnUntraced(function* (file: string) {
    const tensor = last?.file === file ? last.tensor : yield* readTensor(file)
    last = { file, tensor }
    return tensor
  })
  return (name) => readParameter(layout, { name, shape: declared[name]?.shape ?? [] }, readKept)
}

/** Fails if a parameter has no tensor, a tensor no parameter, or if shapes or number types differ. */
export const checkTensors = Effect.fnUntraced(function* (
  { tensors, path }: TensorFiles,
  declared: Shapes,
  ignored: (name: string) => boolean = () => false,
) {
  const missing = Object.keys(declared).filter((name) => !tensors.has(name))
  if (missing.length > 0) return yield* wrongWeights(path, `it lacks ${listed(missing)}, which the config expects`)
  const unexpected = [...tensors.keys()].filter((name) => !Object.hasOwn(declared, name) && !ignored(name))
  if (unexpected.length > 0) {
    return yield* wrongWeights(path, `expected only the tensors that the config describes, found ${listed(unexpected)}`)
  }
  for (const [name, { shape }] of Object.entries(declared)) {
    const place = tensors.get(name)
    if (place === undefined) continue
    if (place.shape.join() !== shape.join()) {
      const problem = `tensor "${name}": expected the shape [${shape.join(", ")}], found [${place.shape.join(", ")}]`
      return yield* wrongWeights(place.path, problem)
    }
    if (floats[place.dtype] === undefined) {
      const problem = `tensor "${name}": expected ${Object.keys(floats).join(", ")}, found ${place.dtype}`
      return yield* wrongWeights(place.path, problem)
    }
  }
})

const listed = (names: ReadonlyArray<string>): string => {
  const shown = names.slice(0, 3).map((name) => `"${name}"`)
  return `${shown.join(", ")}${names.length > 3 ? ` and ${names.length - 3} more` : ""}`
}

/**
 * Returns the files of a model's weights by name, as `weightFiles` does, with the tensors that the files of its family have.
 */
export const modelWeightFiles = Effect.fnUntraced(function* (
  config: DecoderConfig,
  weights: Readonly<Record<string, NamedArray>>,
  type: WeightType,
  options: ShardOptions = {},
): Effect.fn.Return<Readonly<Record<string, FileContents>>, FormatError> {
  const declared = parametersOf(config)
  const layout = weightLayoutOf(config)
  if (layout === null) return yield* weightFiles(weights, declared, type, options)
  yield* checkWeights(weights, declared, weightsPath(options))
  return yield* weightFiles(fileTensors(layout, weights), tensorsIn(layout), type, options)
})

const weightsPath = ({ name = "model" }: ShardOptions): string => `${name}.safetensors`

/** The content of a file. Its parts may be made while it is written. */
export type FileContents = Uint8Array | Iterable<Uint8Array>

/** A place to which a folder is written as a whole or not at all, such as a `FileTree`. */
export interface FolderWriter {
  readonly writeDirectory: (
    path: string,
    files: Readonly<Record<string, FileContents>>,
  ) => Effect.Effect<void, { readonly message: string }>
}

/**
 * Returns the files of weights by name: one file or, above `maxShardBytes`, several files and their index. Fails if a
 * declared parameter is missing or has another shape. Other arrays are left out.
 */
export const weightFiles = Effect.fnUntraced(function* (
  weights: Readonly<Record<string, NamedArray>>,
  declared: Shapes,
  type: WeightType,
  options: ShardOptions = {},
): Effect.fn.Return<Readonly<Record<string, FileContents>>, FormatError> {
  const path = weightsPath(options)
  yield* checkWeights(weights, declared, path)
  const tensors: Record<string, TensorEntry> = {}
  for (const [name, { shape }] of Object.entries(declared)) {
    const { data } = weights[name]
    const dtype = dtypeOfType[type]
    tensors[name] = { shape, data, ...(dtype === dtypeOf(data) ? {} : { dtype }) }
  }
  return yield* Effect.try({
    try: () => shardParts(tensors, options),
    catch: (error) => wrongWeights(path, error instanceof Error ? error.message : String(error)),
  })
})

/** Fails if a declared parameter is missing or has another shape. */
const checkWeights = Effect.fnUntraced(function* (
  weights: Readonly<Record<string, NamedArray>>,
  declared: Shapes,
  path: string,
) {
  for (const [name, { shape }] of Object.entries(declared)) {
    if (!Object.hasOwn(weights, name)) return yield* wrongWeights(path, `the parameter "${name}" is missing`)
    const { shape: found, data } = weights[name]
    if (found.join() === shape.join() && data.length === elements(shape)) continue
    const problem = `expected the shape [${shape.join(", ")}], found ${data.length} numbers in [${found.join(", ")}]`
    return yield* wrongWeights(path, `parameter "${name}": ${problem}`)
  }
})
