/**
 * Builds low-rank adapters (LoRA, Hu et al. 2021, arXiv:2106.09685), many in one graph. A projection W x of a token becomes W
 * x + (alpha / rank) B A x, with the matrices A and B of the token's adapter.
 *
 * All adapters are the rows of one table, [adapters, numbers of an adapter]. Tokens are sorted by adapter and divided into
 * blocks with one adapter each, so that the products are batched over blocks. The output and the gradient of an adapter
 * depend only on its own blocks; the gradient of an adapter without blocks is exactly zero.
 *
 * Attention multiplies the values of excluded tokens by zero, and zero times NaN is NaN. So give each run its own windows:
 * then an adapter that has become NaN cannot affect others. With finite numbers, runs can share a window.
 */
import { type Initialiser, uniform, zeros } from "../../tensor/graph/initialisers.ts"
import { gather, input, matmul, mul, reshape, slice, state } from "../../tensor/graph/ops.ts"
import { fail } from "../../tensor/graph/ops/core.ts"
import type { Declaration } from "../../tensor/graph/Parameters.ts"
import { sizeOf, type Tensor } from "../../tensor/graph/Tensor.ts"
import type { Declarations } from "../../rl/model/trunk.ts"
import { EngineError } from "../inference/EngineError.ts"
import type { DecoderConfig } from "./DecoderConfig.ts"
import type { Adapt } from "./layers.ts"
import { type Projection, projectionName, projectionSizes, projectionsOf } from "./parameters.ts"

/** The common sizes of all adapters in a table. */
export interface AdapterShape {
  /** The rank of the table's matrices. An adapter of a lower rank has zeros in the remaining rows and columns. */
  readonly rank: number
  /** The projections that have an adapter, in every layer. */
  readonly targets: ReadonlyArray<Projection>
}

/** Makes the error of an invalid adapter, or of an invalid routing of tokens to adapters. */
export const adapterError = (message: string): EngineError => new EngineError({ reason: "wrongWeights", message })

/**
 * Draws initial values like PyTorch's linear layer: Kaiming-uniform with a = √5, within ±1 / √inputs, for [outputs, inputs].
 */
export const kaimingUniform: Initialiser = (random, shape) =>
  uniform(1 / Math.sqrt(shape[shape.length - 1]))(random, shape)

/** The projections with a common input. Their matrices A are adjacent, so that one product computes them all. */
export const siblings: ReadonlyArray<ReadonlyArray<Projection>> = [
  ["q_proj", "k_proj", "v_proj"],
  ["o_proj"],
  ["gate_proj", "up_proj"],
  ["down_proj"],
]

/**
 * Declares the parameters of one adapter, in the order of a row of the table: A [rank, inputs], which is Kaiming-uniform, and
 * B [outputs, rank], which is zero, so that a new adapter does not change the model.
 *
 * @example
 * ```ts
 * const shape = { rank: 8, targets: Decoder.projections }
 * const parameters = Decoder.adapterParametersOf(decoderConfig, shape)
 * parameters["model.layers.0.self_attn.q_proj.lora_A.weight"].shape // [8, hiddenSize]
 * ```
 */
export const adapterParametersOf = (config: DecoderConfig, { rank, targets }: AdapterShape): Declarations => {
  const declarations: Record<string, Declaration> = {}
  const own = projectionsOf(config)
  for (let layer = 0; layer < config.layers; layer++) {
    for (const group of siblings) {
      const adapted = group.filter((projection) => targets.includes(projection) && own.includes(projection))
      for (const projection of adapted) {
        const { inputs } = projectionSizes(config, projection)
        declarations[`${projectionName(layer, projection)}.lora_A.weight`] = {
          shape: [rank, inputs],
          init: kaimingUniform,
        }
      }
      for (const projection of adapted) {
        const { outputs } = projectionSizes(config, projection)
        declarations[`${projectionName(layer, projection)}.lora_B.weight`] = { shape: [outputs, rank], init: zeros }
      }
    }
  }
  return declarations
}

/** Returns the position of each parameter in an adapter's row, and the length of a row. */
export const adapterLayoutOf = (
  declarations: Declarations,
): { readonly offsets: ReadonlyMap<string, number>; readonly size: number } => {
  const offsets = new Map<string, number>()
  let size = 0
  for (const [name, { shape }] of Object.entries(declarations)) {
    offsets.set(name, size)
    size += sizeOf(shape)
  }
  return { offsets, size }
}

/** The tensors of adapters in a program. */
export interface AdapterTensors {
  /** The table, a state f32 [adapters, numbers of an adapter]. Differentiate with respect to it to train the adapters. */
  readonly table: Tensor
  /** i32 [blocks]: the adapter of each block. */
  readonly blockAdapters: Tensor
  /** f32 [adapters]: alpha / rank of each adapter. */
  readonly scalings: Tensor
}

interface RoutingOptions {
  readonly shape: AdapterShape
  /** The number of adapters in the table. */
  readonly adapters: number
  /** The number of blocks of tokens in a run of the program. */
  readonly blocks: number
}

/**
 * Makes the table (a state named `adapters`) and the inputs `blockAdapters` and `scalings`. Returns them with the function
 * for the parameter `adapt` of a forward graph. The tokens of the graph are divided into `blocks` equal blocks.
 *
 * @example
 * ```ts
 * const shape = { rank: 8, targets: Decoder.projections }
 * const inputs = Decoder.packedInputs(4, 256)
 * const weights = Decoder.statesOf(Decoder.parametersOf(decoderConfig))
 * const { adapt, table } = Decoder.routedAdapters(decoderConfig, { shape, adapters: 8, blocks: 32 }) // 32 tokens each
 * const hidden = Decoder.hiddenStates(decoderConfig, weights, inputs, adapt)
 * ```
 */
export const routedAdapters = (
  config: DecoderConfig,
  { shape, adapters, blocks }: RoutingOptions,
): AdapterTensors & { readonly adapt: Adapt } => {
  const { offsets, size } = adapterLayoutOf(adapterParametersOf(config, shape))
  const table = state("adapters", [adapters, size])
  const blockAdapters = input("blockAdapters", [blocks], "i32")
  const scalings = input("scalings", [adapters])
  const routing: Routing = {
    groups: [blocks],
    scale: reshape(gather(scalings, blockAdapters), [blocks, 1, 1]),
    matrices: (offset, rows, columns) =>
      reshape(gather(slice(table, [0, offset], [adapters, rows * columns]), blockAdapters), [blocks, rows, columns]),
  }
  return { table, blockAdapters, scalings, adapt: adaptBy(config, shape, offsets, routing) }
}

/** The tensors of the adapter in a program whose tokens all have the same adapter. */
export interface OneAdapterTensors {
  /** The numbers of the adapter, an input f32. Differentiate with respect to it to train the adapter. */
  readonly adapter: Tensor
  /** f32 scalar: alpha / rank of the adapter. */
  readonly scaling: Tensor
}

/**
 * Makes the inputs `adapter` and `scaling` for a program whose tokens all have the same adapter. Returns them with the
 * function for the parameter `adapt` of a forward graph. It computes the same as `routedAdapters`, with plain matrix
 * products, which are faster than batched ones. Its gradient has the size of one adapter.
 *
 * @example
 * ```ts
 * const shape = { rank: 8, targets: Decoder.projections }
 * const inputs = Decoder.packedInputs(4, 256)
 * const weights = Decoder.statesOf(Decoder.parametersOf(decoderConfig))
 * const { adapt, adapter } = Decoder.oneAdapter(decoderConfig, shape)
 * const hidden = Decoder.hiddenStates(decoderConfig, weights, inputs, adapt)
 * ```
 */
export const oneAdapter = (
  config: DecoderConfig,
  shape: AdapterShape,
): OneAdapterTensors & { readonly adapt: Adapt } => {
  const { offsets, size } = adapterLayoutOf(adapterParametersOf(config, shape))
  const adapter = input("adapter", [size])
  const scaling = input("scaling", [])
  const routing: Routing = {
    groups: [],
    scale: scaling,
    matrices: (offset, rows, columns) => reshape(slice(adapter, [offset], [rows * columns]), [rows, columns]),
  }
  return { adapter, scaling, adapt: adaptBy(config, shape, offsets, routing) }
}

/** Describes how tokens get the matrices of their adapters. */
interface Routing {
  /** The leading axes of all products: the number of blocks, or none if all tokens have one adapter. */
  readonly groups: ReadonlyArray<number>
  /** alpha / rank, which broadcasts to [...groups, tokens, n]. */
  readonly scale: Tensor
  /** Returns the matrices [...groups, rows, columns] that begin at `offset` in their adapters. */
  readonly matrices: (offset: number, rows: number, columns: number) => Tensor
}

const adaptBy = (
  config: DecoderConfig,
  { rank, targets }: AdapterShape,
  offsets: ReadonlyMap<string, number>,
  { groups, scale, matrices }: Routing,
): Adapt => {
  const blocks = sizeOf(groups)
  const offsetOf = (name: string): number => offsets.get(name) ?? fail("adapters", `there is no parameter "${name}"`)
  return (x, layer, asked) => {
    const adapted = asked.filter((projection) => targets.includes(projection))
    if (adapted.length === 0) return []
    const [tokens, inputs] = x.shape
    if (tokens % blocks !== 0) fail("adapters", `expected tokens that ${blocks} blocks divide, found ${tokens}`, x)
    const block = tokens / blocks
    const first = offsetOf(`${projectionName(layer, adapted[0])}.lora_A.weight`)
    const a = matrices(first, adapted.length * rank, inputs)
    const shrunk = matmul(reshape(x, [...groups, block, inputs]), a, { transposeB: true })
    const scaled = mul(shrunk, scale)
    return asked.map((projection) => {
      const index = adapted.indexOf(projection)
      if (index === -1) return undefined
      const { outputs } = projectionSizes(config, projection)
      const own = slice(scaled, [...groups.map(() => 0), 0, index * rank], [...groups, block, rank])
      const b = matrices(offsetOf(`${projectionName(layer, projection)}.lora_B.weight`), outputs, rank)
      return reshape(matmul(own, b, { transposeB: true }), [tokens, outputs])
    })
  }
}

/**
 * Computes the adapter of each block from the number of tokens of each adapter. The tokens are sorted by adapter. Each number
 * must be a multiple of `block`: padding counts for the adapter before it. Throws an `EngineError` if the sum of the numbers
 * is not `tokens`.
 *
 * @example
 * ```ts
 * Decoder.blockAdaptersOf({ loraNumTokens: [32, 0, 64], tokens: 96, block: 32 }) // [0, 2, 2]
 * ```
 */
export const blockAdaptersOf = ({
  loraNumTokens,
  tokens,
  block,
}: {
  readonly loraNumTokens: ArrayLike<number>
  readonly tokens: number
  readonly block: number
}): Int32Array => {
  const refuse = (message: string): never => {
    throw adapterError(`loraNumTokens: ${message}`)
  }
  if (!Number.isInteger(block) || block < 1) refuse(`expected a block of 1 token or more, found ${block}`)
  const counts = Array.from(loraNumTokens)
  counts.forEach((count, adapter) => {
    if (!Number.isInteger(count) || count < 0 || count % block !== 0)
      refuse(`adapter ${adapter}: expected a multiple of the block (${block}), found ${count}`)
  })
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total !== tokens) refuse(`expected numbers that add up to the ${tokens} tokens of the batch, found ${total}`)
  const blocks = new Int32Array(tokens / block)
  let at = 0
  counts.forEach((count, adapter) => {
    blocks.fill(adapter, at, at + count / block)
    at += count / block
  })
  return blocks
}
