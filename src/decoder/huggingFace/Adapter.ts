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
import { prettyJson } from "../../base/config/text.ts"
import { utf8 } from "../../base/config/utf8.ts"
import { inFolder, modelFiles } from "../../base/formats/modelFiles.ts"
import { open } from "../../base/formats/TensorFiles.ts"
import { type ReadableParts } from "../../base/formats/Weights.ts"
import type { NamedArray, NamedTensors } from "../../tensor/graph/Parameters.ts"
import { adapterParametersOf } from "../networks/adapters.ts"
import type { DecoderConfig } from "../networks/DecoderConfig.ts"
import { type Projection, projectionName, projectionsOf } from "../networks/parameters.ts"
import { type AdapterConfig, decodeAdapterConfig, encodeAdapterConfig, scalingOf } from "./adapterConfig.ts"
import { checkTensors, type FileContents, type FolderWriter, weightFiles } from "./modelWeights.ts"
import type { WeightType } from "./ModelConfig.ts"
import { sizeOf } from "../../tensor/graph/Tensor.ts"
import { joinedModules } from "./weightLayout.ts"
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
}

/** The prefix of the tensors' names in peft's files. */
const prefix = "base_model.model."

/** Makes an adapter from its settings and matrices, to save it. */
export const make = (config: AdapterConfig, tensors: NamedTensors): LoraAdapter => {
  const { rank, targets } = config
  return { config, rank, alpha: scalingOf(config) * rank, targets, tensors }
}

export interface AdapterLoadOptions {
  /** The name or path of the base model. If the adapter's config names another one, a warning is logged. */
  readonly base?: string | undefined
}

/**
 * Loads the adapter in a folder. Fails if it uses a feature that we do not support, or if its matrices do not fit the
 * decoder, because the adapter is for another model.
 */
export const load = Effect.fnUntraced(function* (
  files: ReadableParts,
  folder: string,
  decoder: DecoderConfig,
  { base }: AdapterLoadOptions = {},
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
  const names = yield* Effect.orElseSucceed(files.list(folder), (): ReadonlyArray<string> => [])
  const hasOlder = !names.includes(modelFiles.adapterWeights) && names.includes(modelFiles.olderAdapterWeights)
  const weights = hasOlder ? modelFiles.olderAdapterWeights : modelFiles.adapterWeights
  const stored = yield* open(files, inFolder(folder, weights))
  const declared = adapterParametersOf(decoder, config)
  const joints = jointsOf(decoder, declared).filter(
    ({ parameters: [first] }) => !stored.tensors.has(`${prefix}${first}`),
  )
  const inJoints = new Set(joints.flatMap(({ parameters }) => parameters))
  const apart = Record.filter(declared, (_, name) => !inJoints.has(name))
  const shapes = {
    ...Record.mapKeys(apart, (name) => `${prefix}${name}`),
    ...Object.fromEntries(joints.map(({ file, shape }) => [`${prefix}${file}`, { shape }])),
  }
  yield* Effect.mapError(
    checkTensors(stored, shapes),
    ({ message }) =>
      new FormatError({
        path: inFolder(folder, weights),
        message: `${message}; is the adapter for another base model?`,
      }),
  )
  const tensors: Record<string, NamedArray> = {}
  const read = Effect.fnUntraced(function* (name: string) {
    const { data } = yield* stored.read(`${prefix}${name}`)
    return data instanceof Float32Array ? data : Float32Array.from(data)
  })
  for (const [name, { shape }] of Object.entries(apart)) tensors[name] = { shape, data: yield* read(name) }
  for (const { file, parameters } of joints) {
    const data = yield* read(file)
    let from = 0
    for (const name of parameters) {
      const { shape } = declared[name]
      const size = sizeOf(shape)
      // All projections of a module have its matrix A, and each has its own rows of B.
      tensors[name] = { shape, data: name.endsWith("lora_A.weight") ? data : data.slice(from, from + size) }
      from += size
    }
  }
  return make(config, tensors)
})

/** A matrix of a module that joins projections in the files of Phi-3 and GPT-2. */
interface Joint {
  readonly file: string
  readonly shape: ReadonlyArray<number>
  /** The matrices of the projections in the decoder. */
  readonly parameters: ReadonlyArray<string>
}

/** Lists the joint matrices of an adapter, as peft stores them. */
const jointsOf = (decoder: DecoderConfig, declared: ReturnType<typeof adapterParametersOf>): ReadonlyArray<Joint> =>
  joinedModules(decoder).flatMap(({ module, projections }) => {
    const names = (part: string) => projections.map((name) => `${name}.${part}.weight`)
    const [a, b] = [names("lora_A"), names("lora_B")]
    if (!a.every((name) => Object.hasOwn(declared, name))) return []
    const rows = b.reduce((sum, name) => sum + declared[name].shape[0], 0)
    return [
      { file: `${module}.lora_A.weight`, shape: declared[a[0]].shape, parameters: a },
      { file: `${module}.lora_B.weight`, shape: [rows, declared[b[0]].shape[1]], parameters: b },
    ]
  })

/** Returns the files of an adapter by name. Fails if a matrix is missing or has another shape. */
export const filesOf = Effect.fnUntraced(function* (
  { config, tensors }: LoraAdapter,
  decoder: DecoderConfig,
  type: WeightType = "float32",
): Effect.fn.Return<Readonly<Record<string, FileContents>>, FormatError> {
  const declared = adapterParametersOf(decoder, config)
  const contents = yield* weightFiles(
    Record.mapKeys(tensors, (name) => `${prefix}${name}`),
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
 * Returns the weights of the base model with an adapter merged into them: W + scaling · B A for each projection of the
 * adapter. Other arrays are not copied.
 */
export const merge = (decoder: DecoderConfig, weights: NamedTensors, adapter: LoraAdapter): NamedTensors => {
  const merged: Record<string, NamedArray> = { ...weights }
  for (let layer = 0; layer < decoder.layers; layer++) {
    for (const projection of projectionsOf(decoder)) {
      if (!adapter.targets.includes(projection)) continue
      const name = projectionName(layer, projection)
      const a = adapter.tensors[`${name}.lora_A.weight`]
      const b = adapter.tensors[`${name}.lora_B.weight`]
      const { shape, data } = weights[`${name}.weight`]
      merged[`${name}.weight`] = { shape, data: added(data, shape, a.data, b.data, adapter) }
    }
  }
  return merged
}

const added = (
  base: Float32Array,
  [outputs, inputs]: ReadonlyArray<number>,
  a: Float32Array,
  b: Float32Array,
  { config }: LoraAdapter,
): Float32Array => {
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
