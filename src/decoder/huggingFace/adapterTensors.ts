/**
 * Describes the tensors in the files of an adapter, and reads them: the matrices of low rank, the lengths of rows (DoRA), and
 * the parameters of modules that the adapter replaces as a whole.
 */
import { Effect, Record } from "effect"
import { FormatError } from "../../base/formats/FormatError.ts"
import type { TensorFiles } from "../../base/formats/TensorFiles.ts"
import type { NamedArray, NamedTensors } from "../../tensor/graph/Parameters.ts"
import { sizeOf } from "../../tensor/graph/Tensor.ts"
import { adapterParametersOf } from "../networks/adapters.ts"
import type { DecoderConfig } from "../networks/DecoderConfig.ts"
import { embeddingName, headName, parametersOf } from "../networks/parameters.ts"
import { type AdapterConfig, type AdapterFileConfig, scalingOf } from "./adapterConfig.ts"
import { checkTensors } from "./modelWeights.ts"
import { joinedModules, weightLayoutOf } from "./weightLayout.ts"

/** The prefix of the tensors' names in peft's files. */
export const prefix = "base_model.model."

type Shape = ReadonlyArray<number>
type Shapes = Readonly<Record<string, { readonly shape: Shape }>>

/** The arrays of an adapter by their names in the decoder. */
interface AdapterArrays {
  readonly tensors: NamedTensors
  readonly magnitudes: NamedTensors
  readonly replaced: NamedTensors
}

const projectionOf = (tensor: string): string => tensor.replace(/\.lora_.*$/, "")
const isA = (tensor: string): boolean => tensor.endsWith("lora_A.weight")

/** Returns the name of the vector with the lengths of a projection's rows. */
export const magnitudeName = (projection: string): string => `${projection}.lora_magnitude_vector`

/** Declares the lengths of rows, one for each projection of an adapter with them. */
export const magnitudesOf = (decoder: DecoderConfig, config: AdapterConfig): Shapes => {
  if (config.dora !== true) return {}
  const matrices = Object.entries(adapterParametersOf(decoder, config)).filter(([name]) => !isA(name))
  return Object.fromEntries(
    matrices.map(([name, { shape }]) => [magnitudeName(projectionOf(name)), { shape: [shape[0]] }]),
  )
}

/**
 * Lists the parameters of the modules that an adapter replaces, by the names of their tensors in the model's files. As in peft,
 * a name in `modules_to_save` is the end of the name of a module, with all that is in it.
 */
export const replacedOf = (
  decoder: DecoderConfig,
  { modulesToSave = [] }: AdapterConfig,
): Readonly<Record<string, { readonly parameter: string; readonly shape: Shape }>> => {
  if (modulesToSave.length === 0) return {}
  // A head that shares the embeddings is a module of its own in an adapter.
  const declared = parametersOf({ ...decoder, tiedEmbeddings: false })
  const layout = weightLayoutOf({ ...decoder, tiedEmbeddings: false })
  const found: Record<string, { readonly parameter: string; readonly shape: Shape }> = {}
  for (const [parameter, { shape }] of Object.entries(declared)) {
    const blocks = layout?.blocks.get(parameter) ?? []
    const files = layout === null ? [parameter] : blocks.map(({ file }) => file)
    for (const file of files) {
      if (!isReplaced(file, modulesToSave)) continue
      found[file] = { parameter, shape: layout?.shapes[file] ?? shape }
    }
  }
  return found
}

const isReplaced = (tensor: string, modules: ReadonlyArray<string>): boolean => {
  const parts = tensor.split(".").slice(0, -1)
  const names = parts.map((_, last) => parts.slice(0, last + 1).join("."))
  return names.some((name) => modules.some((end) => name.endsWith(end)))
}

/** Returns why the modules that an adapter replaces are not supported; undefined if they are. */
export const replacedProblem = (decoder: DecoderConfig, config: AdapterConfig): string | undefined => {
  const layout = weightLayoutOf({ ...decoder, tiedEmbeddings: false })
  const files = replacedOf(decoder, config)
  const declared = parametersOf({ ...decoder, tiedEmbeddings: false })
  for (const [file, { parameter, shape }] of Object.entries(files)) {
    if (layout?.transposed.has(file) === true || shape.join() !== declared[parameter].shape.join())
      return `expected modules whose tensors are parameters of the decoder, such as norms and lm_head, found ${file}`
  }
  const unmatched = config.modulesToSave?.find((end) => !Object.keys(files).some((file) => isReplaced(file, [end])))
  return unmatched === undefined ? undefined : `expected modules that the model has, found ${unmatched}`
}

/** A tensor of a module that joins projections in the files of Phi-3 and GPT-2. */
interface Joint {
  readonly file: string
  readonly shape: Shape
  /** The tensors of the projections in the decoder. */
  readonly parameters: ReadonlyArray<string>
}

/** Lists the joint tensors of an adapter, as peft stores them. */
const jointsOf = (decoder: DecoderConfig, declared: Shapes): ReadonlyArray<Joint> =>
  joinedModules(decoder).flatMap(({ module, projections }) =>
    ["lora_A.weight", "lora_B.weight", "lora_magnitude_vector"].flatMap((part): ReadonlyArray<Joint> => {
      const parameters = projections.map((name) => `${name}.${part}`)
      if (!parameters.every((name) => Object.hasOwn(declared, name))) return []
      const [rows, ...rest] = declared[parameters[0]].shape
      const all = isA(part) ? rows : parameters.reduce((sum, name) => sum + declared[name].shape[0], 0)
      return [{ file: `${module}.${part}`, shape: [all, ...rest], parameters }]
    }),
  )

/** Returns the shapes of the matrices in the files, where projections may have ranks of their own. */
const matricesInFile = (decoder: DecoderConfig, config: AdapterFileConfig): Shapes =>
  Record.map(adapterParametersOf(decoder, config), ({ shape }, name) => ({
    shape: shape.with(isA(name) ? 0 : 1, config.sizesOf(projectionOf(name)).rank),
  }))

/** The largest size of an adapter in memory, as a multiple of the size of its matrices in the file. */
const mostPadding = 16

/** Fails if a few projections with a high rank would make an adapter much larger than its file. */
const checkPadding = (
  decoder: DecoderConfig,
  config: AdapterFileConfig,
  { matrices, path }: { readonly matrices: Shapes; readonly path: string },
): Effect.Effect<void, FormatError> => {
  const numbersIn = (shapes: Shapes): number => Object.values(shapes).reduce((sum, { shape }) => sum + sizeOf(shape), 0)
  if (numbersIn(adapterParametersOf(decoder, config)) <= mostPadding * numbersIn(matrices)) return Effect.void
  const problem = `expected ranks of which the largest makes the adapter at most ${mostPadding} times as large`
  return Effect.fail(new FormatError({ path, message: `${path}: rank_pattern: ${problem}, found ${config.rank}` }))
}

/** Reads the tensors of an adapter. `path` names the file in errors. */
export const readAdapterArrays = Effect.fnUntraced(function* (
  stored: TensorFiles,
  decoder: DecoderConfig,
  config: AdapterFileConfig,
  path: string,
): Effect.fn.Return<AdapterArrays, FormatError> {
  const matrices = matricesInFile(decoder, config)
  yield* checkPadding(decoder, config, { matrices, path })
  const declared: Shapes = { ...matrices, ...magnitudesOf(decoder, config) }
  const joints = jointsOf(decoder, declared).filter(
    ({ parameters: [first] }) => !stored.tensors.has(`${prefix}${first}`),
  )
  const inJoints = new Set(joints.flatMap(({ parameters }) => parameters))
  const apart = Record.filter(declared, (_, name) => !inJoints.has(name))
  const files = replacedOf(decoder, config)
  const shapes = {
    ...Record.mapKeys({ ...apart, ...files }, (name) => `${prefix}${name}`),
    ...Object.fromEntries(joints.map(({ file, shape }) => [`${prefix}${file}`, { shape }])),
  }
  yield* Effect.mapError(
    checkTensors(stored, shapes),
    ({ message }) => new FormatError({ path, message: `${message}; is the adapter for another base model?` }),
  )
  const read = Effect.fnUntraced(function* (name: string) {
    const { data } = yield* stored.read(`${prefix}${name}`)
    return data instanceof Float32Array ? data : Float32Array.from(data)
  })
  const all: Record<string, NamedArray> = {}
  for (const [name, { shape }] of Object.entries(apart)) all[name] = { shape, data: yield* read(name) }
  for (const { file, parameters } of joints) {
    const data = yield* read(file)
    let from = 0
    for (const name of parameters) {
      const { shape } = declared[name]
      const size = sizeOf(shape)
      // All projections of a module have its matrix A, and each has its own rows of the others.
      all[name] = { shape, data: isA(name) ? data : data.slice(from, from + size) }
      from += size
    }
  }
  const replaced: Record<string, NamedArray> = {}
  for (const [file, { parameter, shape }] of Object.entries(files))
    replaced[parameter] = { shape, data: yield* read(file) }
  return {
    tensors: Record.map(matrices, (_, name) => withSizes(all[name], name, config)),
    magnitudes: Record.filter(all, (_, name) => !Object.hasOwn(matrices, name)),
    replaced,
  }
})

/** Extends a matrix by zeros to the adapter's rank, and scales B so that the adapter's scale gives the projection's. */
const withSizes = (array: NamedArray, name: string, config: AdapterFileConfig): NamedArray => {
  const { rank, scaling } = config.sizesOf(projectionOf(name))
  if (rank === config.rank && scaling === scalingOf(config)) return array
  const { shape, data } = array
  if (isA(name)) {
    const padded = new Float32Array(config.rank * shape[1])
    padded.set(data)
    return { shape: [config.rank, shape[1]], data: padded }
  }
  const factor = scaling / scalingOf(config)
  const [outputs] = shape
  const padded = new Float32Array(outputs * config.rank)
  for (let row = 0; row < outputs; row++)
    for (let at = 0; at < rank; at++) padded[row * config.rank + at] = factor * data[row * rank + at]
  return { shape: [outputs, config.rank], data: padded }
}

/** Tells whether a model with an adapter merged into it has a head of its own, because the adapter replaces one of the two. */
export const separatesHead = ({ tiedEmbeddings }: DecoderConfig, replaced: NamedTensors): boolean =>
  tiedEmbeddings && (Object.hasOwn(replaced, headName) || Object.hasOwn(replaced, embeddingName))
