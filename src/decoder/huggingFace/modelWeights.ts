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
import type { ShardOptions } from "../../base/formats/shards.ts"
import { shardParts } from "../../base/formats/shards.ts"
import { open, type TensorFiles } from "../../base/formats/TensorFiles.ts"
import { type ReadableParts, type TensorEntry } from "../../base/formats/Weights.ts"
import type { Declaration, NamedArray } from "../../tensor/graph/Parameters.ts"
import type { DecoderConfig } from "../networks/DecoderConfig.ts"
import { embeddingName, headName, parametersOf } from "../networks/parameters.ts"
import type { WeightType } from "./ModelConfig.ts"
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

const wrongWeights = (path: string, message: string): FormatError =>
  new FormatError({ path, message: `${path}: ${message}` })

const floats: Readonly<Partial<Record<Dtype, WeightType>>> = { F32: "float32", BF16: "bfloat16", F16: "float16" }
const dtypeOfType: Readonly<Record<WeightType, Dtype>> = { float32: "F32", bfloat16: "BF16", float16: "F16" }

/** Tells whether a tensor of older files is not a parameter but computed from the config. */
const isComputed = (name: string): boolean => name.endsWith(".rotary_emb.inv_freq")

/** Opens the weights in a folder and checks the names, shapes and number types of all tensors, before any is read. */
export const openWeights = Effect.fnUntraced(function* (
  files: ReadableParts,
  folder: string,
  config: DecoderConfig,
): Effect.fn.Return<ModelWeights, FormatError> {
  const stored = yield* open(files, folder)
  const declared = parametersOf(config)
  // A tied head has no tensor of its own, but some files contain one that equals the embedding.
  const ignored = (name: string): boolean => isComputed(name) || (config.tiedEmbeddings && name === headName)
  yield* checkTensors(stored, declared, ignored)
  const read = Effect.fnUntraced(function* (name: string) {
    const { shape, data } = yield* stored.read(name)
    return { shape, data: data instanceof Float32Array ? data : Float32Array.from(data) }
  })
  const readAll = Effect.gen(function* () {
    const all: Record<string, NamedArray> = {}
    for (const name of Object.keys(declared)) all[name] = yield* read(name)
    return all
  })
  const type = floats[stored.tensors.get(embeddingName)?.dtype ?? "F32"] ?? "float32"
  return { path: stored.path, type, read, readAll }
})

/** Fails if a parameter has no tensor, a tensor no parameter, or if shapes or number types differ. */
export const checkTensors = Effect.fnUntraced(function* (
  { tensors, path }: TensorFiles,
  declared: Readonly<Record<string, Declaration>>,
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
  declared: Readonly<Record<string, Declaration>>,
  type: WeightType,
  options: ShardOptions = {},
): Effect.fn.Return<Readonly<Record<string, FileContents>>, FormatError> {
  const path = `${options.name ?? "model"}.safetensors`
  const tensors: Record<string, TensorEntry> = {}
  for (const [name, { shape }] of Object.entries(declared)) {
    if (!Object.hasOwn(weights, name)) return yield* wrongWeights(path, `the parameter "${name}" is missing`)
    const { shape: found, data } = weights[name]
    if (found.join() !== shape.join() || data.length !== elements(shape)) {
      const problem = `expected the shape [${shape.join(", ")}], found ${data.length} numbers in [${found.join(", ")}]`
      return yield* wrongWeights(path, `parameter "${name}": ${problem}`)
    }
    const dtype = dtypeOfType[type]
    tensors[name] = { shape, data, ...(dtype === dtypeOf(data) ? {} : { dtype }) }
  }
  return yield* Effect.try({
    try: () => shardParts(tensors, options),
    catch: (error) => wrongWeights(path, error instanceof Error ? error.message : String(error)),
  })
})
