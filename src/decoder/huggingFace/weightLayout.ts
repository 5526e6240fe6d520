/**
 * Describes how the tensors of a model's files hold the parameters of the decoder. Most families have one tensor for each
 * parameter, with the same name and shape. Phi-3 joins the projections with a common input, GPT-2 also transposes them, and
 * Qwen3-MoE has a tensor for each matrix of an expert.
 *
 * @example
 * ```ts
 * const layout = weightLayoutOf(decoderConfig) // null: the files have the parameters themselves
 * ```
 */
import { Effect, Record } from "effect"
import type { NamedArray } from "../../tensor/graph/Parameters.ts"
import { sizeOf } from "../../tensor/graph/Tensor.ts"
import type { DecoderConfig } from "../networks/DecoderConfig.ts"
import {
  embeddingName,
  expertNames,
  finalNormName,
  parametersOf,
  positionsName,
  type Projection,
  projectionName,
  projectionsOf,
} from "../networks/parameters.ts"

type Shape = ReadonlyArray<number>

/** A block of numbers that a tensor of a file and a parameter share. A vector is a matrix with one column. */
interface WeightBlock {
  readonly file: string
  readonly parameter: string
  /** The first row and column of the block in the tensor of the file. If it is transposed, these are of its transpose. */
  readonly inFile: readonly [row: number, column: number]
  readonly inParameter: readonly [row: number, column: number]
  readonly rows: number
  readonly columns: number
}

export interface WeightLayout {
  /** The shapes of the tensors in the files, by name. */
  readonly shapes: Readonly<Record<string, Shape>>
  /** The matrices that the files have transposed. */
  readonly transposed: ReadonlySet<string>
  /** The blocks of each parameter. */
  readonly blocks: ReadonlyMap<string, ReadonlyArray<WeightBlock>>
}

/** A tensor of a file that joins parameters: their rows follow one another, or their columns. */
interface Joined {
  readonly file: string
  readonly parameters: ReadonlyArray<string>
  readonly transposed?: boolean
}

/**
 * Returns the layout of a family's files; null if these have the parameters themselves. `prefix` precedes the names of
 * GPT-2, whose older files have none.
 */
export const weightLayoutOf = (config: DecoderConfig, prefix = "transformer."): WeightLayout | null => {
  const declared = parametersOf(config)
  const shapes: Record<string, Shape> = {}
  const transposed = new Set<string>()
  const blocks = new Map<string, Array<WeightBlock>>()
  const put = (block: WeightBlock): void => {
    const others = blocks.get(block.parameter)
    if (others === undefined) blocks.set(block.parameter, [block])
    else others.push(block)
  }
  const join = ({ file, parameters, transposed: turned = false }: Joined): void => {
    let row = 0
    const columns = declared[parameters[0]].shape[1] ?? 1
    for (const parameter of parameters) {
      const [rows] = declared[parameter].shape
      put({ file, parameter, inFile: [row, 0], inParameter: [0, 0], rows, columns })
      row += rows
    }
    const isVector = declared[parameters[0]].shape.length === 1
    if (isVector) shapes[file] = [row]
    else shapes[file] = turned ? [columns, row] : [row, columns]
    if (turned) transposed.add(file)
  }
  const joined = joinedOf(config, prefix)
  if (joined === null) return null
  for (const one of joined) join(one)
  for (const [file, block] of expertBlocks(config)) {
    shapes[file] = [block.rows, block.columns]
    put(block)
  }
  // The other parameters have tensors of their own.
  for (const parameter of Object.keys(declared)) {
    if (!blocks.has(parameter)) join({ file: parameter, parameters: [parameter] })
  }
  return { shapes, transposed, blocks }
}

const joinedOf = (config: DecoderConfig, prefix: string): ReadonlyArray<Joined> | null => {
  const layers = Array.from({ length: config.layers }, (_, layer) => layer)
  switch (config.architecture) {
    case "phi3":
      return layers.flatMap(phi3Tensors)
    case "gpt2":
      return [...gpt2Others(prefix), ...layers.flatMap((layer) => gpt2Tensors(prefix, layer))]
    case "qwen3_moe":
      return []
    default:
      return null
  }
}

/**
 * Returns the modules of a family's files that join projections, with the names of the projections in the decoder; none if the
 * files have them apart.
 */
export const joinedModules = (
  config: DecoderConfig,
): ReadonlyArray<{ readonly module: string; readonly projections: ReadonlyArray<string> }> => {
  const module = (parameter: string): string => parameter.replace(/\.weight$/, "")
  const names = new Set(
    Array.from({ length: config.layers }, (_, layer) =>
      projectionsOf(config).map((projection) => projectionName(layer, projection)),
    ).flat(),
  )
  return (joinedOf(config, "transformer.") ?? [])
    .filter(({ file, parameters }) => file.endsWith(".weight") && names.has(module(parameters[0])))
    .map(({ file, parameters }) => ({ module: module(file), projections: parameters.map(module) }))
}

const weightsOf = (layer: number, projections: ReadonlyArray<Projection>, part = "weight"): ReadonlyArray<string> =>
  projections.map((projection) => `${projectionName(layer, projection)}.${part}`)

const phi3Tensors = (layer: number): ReadonlyArray<Joined> => {
  const name = `model.layers.${layer}`
  return [
    { file: `${name}.self_attn.qkv_proj.weight`, parameters: weightsOf(layer, ["q_proj", "k_proj", "v_proj"]) },
    { file: `${name}.mlp.gate_up_proj.weight`, parameters: weightsOf(layer, ["gate_proj", "up_proj"]) },
  ]
}

const gpt2Others = (prefix: string): ReadonlyArray<Joined> => [
  { file: `${prefix}wte.weight`, parameters: [embeddingName] },
  { file: `${prefix}wpe.weight`, parameters: [positionsName] },
  { file: `${prefix}ln_f.weight`, parameters: [finalNormName] },
  { file: `${prefix}ln_f.bias`, parameters: [finalNormName.replace(/weight$/, "bias")] },
]

const gpt2Tensors = (prefix: string, layer: number): ReadonlyArray<Joined> => {
  const name = `${prefix}h.${layer}`
  const modules: ReadonlyArray<readonly [string, ReadonlyArray<Projection>]> = [
    ["attn.c_attn", ["q_proj", "k_proj", "v_proj"]],
    ["attn.c_proj", ["o_proj"]],
    ["mlp.c_fc", ["up_proj"]],
    ["mlp.c_proj", ["down_proj"]],
  ]
  const norms = [
    ["ln_1", "input_layernorm"],
    ["ln_2", "post_attention_layernorm"],
  ]
  return [
    ...modules.flatMap(([module, projections]): ReadonlyArray<Joined> => [
      { file: `${name}.${module}.weight`, parameters: weightsOf(layer, projections), transposed: true },
      { file: `${name}.${module}.bias`, parameters: weightsOf(layer, projections, "bias") },
    ]),
    ...norms.flatMap(([file, norm]) =>
      ["weight", "bias"].map((part) => ({
        file: `${name}.${file}.${part}`,
        parameters: [`model.layers.${layer}.${norm}.${part}`],
      })),
    ),
  ]
}

/** Lists the tensors of all experts, each with its block of a parameter. */
const expertBlocks = (config: DecoderConfig): ReadonlyArray<readonly [string, WeightBlock]> => {
  const { experts, layers, hiddenSize } = config
  if (experts === undefined) return []
  const { count, units } = experts
  return Array.from({ length: layers }, (_, layer) => {
    const { gate, up, down } = expertNames(layer)
    return Array.from({ length: count }, (_, expert) => {
      const place = { inFile: [0, 0] as const, rows: units, columns: hiddenSize }
      const name = (projection: string): string => `model.layers.${layer}.mlp.experts.${expert}.${projection}.weight`
      const blocks: ReadonlyArray<WeightBlock> = [
        { ...place, file: name("gate_proj"), parameter: gate, inParameter: [expert * units, 0] },
        { ...place, file: name("up_proj"), parameter: up, inParameter: [expert * units, 0] },
        {
          ...place,
          file: name("down_proj"),
          parameter: down,
          inParameter: [0, expert * units],
          rows: hiddenSize,
          columns: units,
        },
      ]
      return blocks.map((block) => [block.file, block] as const)
    })
  }).flat(2)
}

/** The position of a number of a matrix: `row` times the first stride, plus `column` times the second. */
const stridesOf = (shape: Shape, transposed: boolean): readonly [row: number, column: number] => {
  const columns = shape[1] ?? 1
  return transposed ? [1, columns] : [columns, 1]
}

/** Reads a parameter from the tensors of files, which `read` returns by name. */
export const readParameter = Effect.fnUntraced(function* <E>(
  { shapes, transposed, blocks }: WeightLayout,
  { name, shape }: { readonly name: string; readonly shape: Shape },
  read: (file: string) => Effect.Effect<NamedArray, E>,
): Effect.fn.Return<NamedArray, E> {
  const data = new Float32Array(sizeOf(shape))
  const [toRow] = stridesOf(shape, false)
  for (const { file, inFile, inParameter, rows, columns } of blocks.get(name) ?? []) {
    const tensor = yield* read(file)
    const [fromRow, fromColumn] = stridesOf(shapes[file], transposed.has(file))
    for (let row = 0; row < rows; row++) {
      const from = (inFile[0] + row) * fromRow + inFile[1] * fromColumn
      const to = (inParameter[0] + row) * toRow + inParameter[1]
      for (let column = 0; column < columns; column++) data[to + column] = tensor.data[from + column * fromColumn]
    }
  }
  return { shape, data }
})

/** Returns the names and shapes of the tensors in the files. */
export const tensorsIn = ({ shapes }: WeightLayout): Readonly<Record<string, { readonly shape: Shape }>> =>
  Record.map(shapes, (shape) => ({ shape }))

/** Makes the tensors of the files from the parameters. */
export const fileTensors = (
  { shapes, transposed, blocks }: WeightLayout,
  weights: Readonly<Record<string, NamedArray>>,
): Readonly<Record<string, NamedArray>> => {
  const tensors: Record<string, { readonly shape: Shape; readonly data: Float32Array }> = {}
  for (const [parameter, parts] of blocks) {
    const { shape, data } = weights[parameter]
    const [fromRow] = stridesOf(shape, false)
    for (const { file, inFile, inParameter, rows, columns } of parts) {
      const whole = (tensors[file] ??= { shape: shapes[file], data: new Float32Array(sizeOf(shapes[file])) })
      const [toRow, toColumn] = stridesOf(shapes[file], transposed.has(file))
      for (let row = 0; row < rows; row++) {
        const from = (inParameter[0] + row) * fromRow + inParameter[1]
        const to = (inFile[0] + row) * toRow + inFile[1] * toColumn
        for (let column = 0; column < columns; column++) whole.data[to + column * toColumn] = data[from + column]
      }
    }
  }
  return tensors
}
