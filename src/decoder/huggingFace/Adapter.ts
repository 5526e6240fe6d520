/**
 * Reads, checks and writes low-rank adapters (LoRA) as peft stores them: `adapter_config.json` and
 * `adapter_model.safetensors`. `merge` adds an adapter to the weights of its base model.
 *
 * @example
 * ```ts
 * const adapter = yield* load(files, "out/adapter", decoderConfig)
 * const adapters = new Decoder.MultiLoRA(decoderConfig, adapter, 1)
 * adapters.load(0, adapter, adapter.tensors)
 * ```
 */
import { Effect, Record } from "effect"
import { ConfigError } from "../../base/config/Config.ts"
import { prettyJson } from "../../base/text/text.ts"
import { utf8 } from "../../base/text/utf8.ts"
import { inFolder, modelFiles } from "../../base/formats/modelFiles.ts"
import { open } from "../../base/formats/TensorFiles.ts"
import { type ReadableParts } from "../../base/formats/Weights.ts"
import type { NamedArray, NamedTensors } from "../../tensor/graph/Parameters.ts"
import { adapterParametersOf } from "../networks/adapters.ts"
import type { DecoderConfig } from "../networks/DecoderConfig.ts"
import { embeddingName, headName, type Projection, projectionName, projectionsOf } from "../networks/parameters.ts"
import {
  magnitudeName,
  magnitudesOf,
  prefix,
  readAdapterArrays,
  replacedOf,
  replacedProblem,
  separatesHead,
} from "./adapterTensors.ts"
import { type AdapterConfig, decodeAdapterConfig, encodeAdapterConfig, scalingOf } from "./adapterConfig.ts"
import { type FileContents, type FolderWriter, weightFiles } from "./modelWeights.ts"
import type { WeightType } from "./ModelConfig.ts"
import { FormatError } from "../../base/formats/FormatError.ts"

export { type AdapterConfig, decodeAdapterConfig, encodeAdapterConfig } from "./adapterConfig.ts"

/** An adapter in the form that an `Engine` and a `MultiLoRA` accept: its settings, and its matrices A and B. */
export interface LoraAdapter {
  /** The settings as they are in the file. */
  readonly config: AdapterConfig
  readonly rank: number
  /**
   * The output of the adapter is multiplied by alpha / rank. If the file divides by √rank instead, this alpha is converted
   * accordingly.
   */
  readonly alpha: number
  readonly targets: ReadonlyArray<Projection>
  /** The matrices by their names in the decoder, e.g. `model.layers.0.self_attn.q_proj.lora_A.weight`. */
  readonly tensors: NamedTensors
  /** With DoRA: the lengths of the rows of each projection's matrix; otherwise empty. */
  readonly magnitudes: NamedTensors
  /** The parameters that the adapter replaces (peft's `modules_to_save`). */
  readonly replaced: NamedTensors
}

/** Makes an adapter from its settings and matrices, to save it. */
export const make = (config: AdapterConfig, tensors: NamedTensors): LoraAdapter => {
  const { rank, targets } = config
  return { config, rank, alpha: scalingOf(config) * rank, targets, tensors, magnitudes: {}, replaced: {} }
}

/** Tells whether an adapter has more than matrices of low rank, so that an engine can use it only merged into the model. */
export const needsMerging = ({ config }: LoraAdapter): boolean =>
  config.dora === true || config.modulesToSave !== undefined

export interface AdapterLoadOptions {
  /** The name or path of the base model. If the adapter's config names another one, a warning is logged. */
  readonly base?: string | undefined
  /**
   * Whether the adapter will be merged into its model. Only then, it may have lengths of rows (DoRA) and modules that it replaces.
   * Default: false.
   */
  readonly merging?: boolean | undefined
}

/**
 * Loads the adapter in a folder. Where projections have ranks and alphas of their own, all get the largest rank and the same
 * alpha, with zeros and factors that keep their output. Fails if it uses a feature that we do not support, or if its matrices do not fit the
 * decoder, because the adapter is for another model.
 */
export const load = Effect.fnUntraced(function* (
  files: ReadableParts,
  folder: string,
  decoder: DecoderConfig,
  { base, merging = false }: AdapterLoadOptions = {},
): Effect.fn.Return<LoraAdapter, ConfigError | FormatError> {
  const configPath = inFolder(folder, modelFiles.adapterConfig)
  const bytes = yield* Effect.mapError(files.read(configPath), ({ message }) =>
    ConfigError.at({ source: configPath }, "", message),
  )
  const config = yield* decodeAdapterConfig(bytes, configPath, decoder)
  if (base !== undefined && config.base !== null && config.base !== base) {
    yield* Effect.logWarning(
      `${configPath}: base_model_name_or_path: expected "${base}", found "${config.base}"; the adapter is used all the same`,
    )
  }
  yield* checkMergeable(config, decoder, configPath, merging)
  const names = yield* Effect.orElseSucceed(files.list(folder), (): ReadonlyArray<string> => [])
  const hasOlder = !names.includes(modelFiles.adapterWeights) && names.includes(modelFiles.olderAdapterWeights)
  const weights = hasOlder ? modelFiles.olderAdapterWeights : modelFiles.adapterWeights
  const stored = yield* open(files, inFolder(folder, weights))
  const { sizesOf: _, ...settings } = config
  return { ...make(settings, {}), ...(yield* readAdapterArrays(stored, decoder, config, inFolder(folder, weights))) }
})

/** Fails if an adapter has more than matrices of low rank, which can then only be merged into the model. */
const checkMergeable = (config: AdapterConfig, decoder: DecoderConfig, path: string, merges: boolean) => {
  const wrong = (key: string, problem: string) => Effect.fail(ConfigError.at({ source: path }, key, problem))
  const remedy = "expected an adapter of low-rank matrices only; merge this one: effect serve MODEL --merge ADAPTER"
  if (!merges && config.dora === true) return wrong("use_dora", `${remedy}; found true`)
  if (!merges && config.modulesToSave !== undefined)
    return wrong("modules_to_save", `${remedy}; found ${config.modulesToSave.join(", ")}`)
  const problem = replacedProblem(decoder, config)
  return problem === undefined ? Effect.void : wrong("modules_to_save", problem)
}

/** Returns the files of an adapter by name. Fails if a matrix is missing or has another shape. */
export const filesOf = Effect.fnUntraced(function* (
  { config, tensors, magnitudes, replaced }: LoraAdapter,
  decoder: DecoderConfig,
  type: WeightType = "float32",
): Effect.fn.Return<Readonly<Record<string, FileContents>>, FormatError> {
  const files = replacedOf(decoder, config)
  const declared = { ...adapterParametersOf(decoder, config), ...magnitudesOf(decoder, config), ...files }
  const named = Record.map(files, ({ parameter }) => replaced[parameter])
  const contents = yield* weightFiles(
    Record.mapKeys({ ...tensors, ...magnitudes, ...named }, (name) => `${prefix}${name}`),
    Record.mapKeys(declared, (name) => `${prefix}${name}`),
    type,
    { name: modelFiles.adapterWeights.replace(".safetensors", ""), maxShardBytes: Infinity },
  )
  // Others would be matrices of the experts, for programs that find modules by the ends of their names.
  const own = projectionsOf(decoder)
  const saved = { ...config, targets: config.targets.filter((target) => own.includes(target)) }
  return { ...contents, [modelFiles.adapterConfig]: utf8.encode(prettyJson(encodeAdapterConfig(saved))) }
})

/** Saves an adapter as the folder `folder`, as a whole or not at all. A folder of that name is replaced. */
export const save = Effect.fnUntraced(function* (
  files: FolderWriter,
  folder: string,
  adapter: LoraAdapter,
  decoder: DecoderConfig,
  type: WeightType = "float32",
): Effect.fn.Return<void, FormatError> {
  const contents = yield* filesOf(adapter, decoder, type)
  yield* Effect.mapError(
    files.writeDirectory(folder, contents),
    ({ message }) => new FormatError({ path: folder, message: `${folder}: ${message}` }),
  )
})

/**
 * Adds matrices of zeros for those `targets` that the adapter does not change, so that it fits into a table of adapters with
 * more targets. Its output stays the same.
 */
export const withTargets = (
  adapter: LoraAdapter,
  decoder: DecoderConfig,
  targets: ReadonlyArray<Projection>,
): LoraAdapter => {
  const all = [...new Set([...adapter.targets, ...targets])]
  const config = { ...adapter.config, targets: all }
  const tensors = Record.map(
    adapterParametersOf(decoder, config),
    ({ shape }, name): NamedArray =>
      adapter.tensors[name] ?? { shape, data: new Float32Array(shape.reduce((size, length) => size * length, 1)) },
  )
  return make(config, tensors)
}

/**
 * Returns the base model with an adapter merged into its weights: W + scaling · B A for each projection of the adapter, with the
 * adapter's lengths of rows if it has them (DoRA, Liu et al. 2024, arXiv:2402.09353), and with the parameters that it replaces.
 * Other arrays are not copied. A model that shares its embeddings with the head gets a head of its own if only one is replaced.
 */
export const merge = (decoder: DecoderConfig, weights: NamedTensors, adapter: LoraAdapter): MergedModel => {
  const merged: Record<string, NamedArray> = { ...weights }
  for (let layer = 0; layer < decoder.layers; layer++) {
    for (const projection of projectionsOf(decoder)) {
      if (!adapter.targets.includes(projection)) continue
      const name = projectionName(layer, projection)
      const base = weights[`${name}.weight`]
      const data = added(base, adapter, name)
      const lengths = adapter.magnitudes[magnitudeName(name)]
      merged[`${name}.weight`] = { shape: base.shape, data: lengths === undefined ? data : scaled(data, lengths.data) }
    }
  }
  const separates = separatesHead(decoder, adapter.replaced)
  if (separates) merged[headName] = weights[embeddingName]
  return {
    decoder: separates ? { ...decoder, tiedEmbeddings: false } : decoder,
    weights: { ...merged, ...adapter.replaced },
  }
}

/** A base model with an adapter merged into it. */
export interface MergedModel {
  readonly decoder: DecoderConfig
  readonly weights: NamedTensors
}

const added = ({ shape, data: base }: NamedArray, { config, tensors }: LoraAdapter, name: string): Float32Array => {
  const [outputs, inputs] = shape
  const a = tensors[`${name}.lora_A.weight`].data
  const b = tensors[`${name}.lora_B.weight`].data
  const { rank } = config
  const scaling = scalingOf(config)
  const sum = new Float32Array(base.length)
  const row = new Float64Array(inputs)
  for (let output = 0; output < outputs; output++) {
    row.fill(0)
    for (let k = 0; k < rank; k++) {
      const factor = scaling * b[output * rank + k]
      for (let input = 0; input < inputs; input++) row[input] += factor * a[k * inputs + input]
    }
    const at = output * inputs
    for (let input = 0; input < inputs; input++) sum[at + input] = base[at + input] + row[input]
  }
  return sum
}

/** Scales the rows of a matrix to the given lengths, in place. A row of zeros stays. */
const scaled = (matrix: Float32Array, lengths: Float32Array): Float32Array => {
  const columns = matrix.length / lengths.length
  for (let row = 0; row < lengths.length; row++) {
    const numbers = matrix.subarray(row * columns, (row + 1) * columns)
    let squares = 0
    for (const number of numbers) squares += number * number
    if (squares === 0) continue
    const factor = lengths[row] / Math.sqrt(squares)
    for (let at = 0; at < columns; at++) numbers[at] *= factor
  }
  return matrix
}
