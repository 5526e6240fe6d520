/** Builds the layers of a decoder transformer. The caller provides the attention. */
import {
  add,
  cast,
  expandDims,
  gather,
  gelu,
  layerNorm,
  matmul,
  minimum,
  mul,
  reshape,
  rmsNorm,
  silu,
} from "../../tensor/graph/ops.ts"
import { sizeOf, type Tensor } from "../../tensor/graph/Tensor.ts"
import type { Weights } from "../../rl/model/trunk.ts"
import type { DecoderConfig } from "./DecoderConfig.ts"
import { expertOutputs, type Routing } from "./experts.ts"
import {
  embeddingName,
  finalNormName,
  headOf,
  normsOf,
  positionsName,
  type Projection,
  projectionName,
  queryKeyNormName,
  scaleName,
  weightOf,
} from "./parameters.ts"
import { capped } from "./rope.ts"

/**
 * Computes the outputs of adapters for projections of `x` [tokens, inputs] in one layer: a tensor [tokens, outputs] for each
 * projection, or undefined if it has no adapter.
 */
export type Adapt = (x: Tensor, layer: number, targets: ReadonlyArray<Projection>) => ReadonlyArray<Tensor | undefined>

/** Computes attention in one layer: from queries [tokens, heads · headDim], keys and values to the outputs of the heads. */
export type Attend = (layer: number, queries: Tensor, keys: Tensor, values: Tensor) => Tensor

interface Transformer {
  readonly config: DecoderConfig
  readonly weights: Weights
  /** The ids of the tokens, a vector. */
  readonly tokens: Tensor
  /** Returns the positions of the tokens in their sequences, a vector. */
  readonly positions: () => Tensor
  readonly attend: Attend
  readonly adapt?: Adapt | undefined
  /** Replays or records the choices of the routers; only for models with experts. */
  readonly routing?: Routing | undefined
}

/** Computes the hidden states of tokens after the last norm, [tokens, hiddenSize]. */
export const transformer = (options: Transformer): Tensor => {
  const { config } = options
  let x = embedded(options)
  for (let layer = 0; layer < config.layers; layer++) {
    const { attention, feedForward } = normsOf(config, layer)
    x = added(options, x, attention, (inner) => attended(options, layer, inner))
    x = added(options, x, feedForward, (inner) => fed(options, layer, inner))
  }
  return normalised(options, x, finalNormName.replace(/\.weight$/, ""))
}

/** Returns the embeddings of the tokens. */
const embedded = ({ config, weights, tokens, positions }: Transformer): Tensor => {
  const { embeddingScale, learnedPositions = false, maxPositions } = config
  const rows = embeddingsOf(weights, tokens)
  const scaled = embeddingScale === undefined ? rows : mul(rows, embeddingScale)
  if (!learnedPositions) return scaled
  // Unused tokens at the end of a step may have positions beyond the last one.
  return add(scaled, gather(weightOf(weights, positionsName), minimum(positions(), maxPositions - 1)))
}

const embeddingsOf = (weights: Weights, tokens: Tensor): Tensor => {
  const rows = gather(weightOf(weights, embeddingName), tokens)
  if (rows.dtype !== "i8") return rows
  const scales = gather(weightOf(weights, scaleName(embeddingName)), tokens)
  return mul(cast(rows, "f32"), expandDims(scales, -1))
}

/** Multiplies `x` by a weight [outputs, inputs]. */
const linear = (weights: Weights, name: string, x: Tensor): Tensor => {
  const weight = weightOf(weights, name)
  if (weight.dtype !== "i8") return matmul(x, weight, { transposeB: true })
  return mul(matmul(x, cast(weight, "f32"), { transposeB: true }), weightOf(weights, scaleName(name)))
}

/** Adds the output of a part of a layer to `x`, with the norms of its input and output. */
const added = (
  options: Transformer,
  x: Tensor,
  { before, after }: ReturnType<typeof normsOf>["attention"],
  compute: (inner: Tensor) => Tensor,
): Tensor => {
  const output = compute(before === null ? x : normalised(options, x, before))
  return add(x, after === null ? output : normalised(options, output, after))
}

const normalised = ({ config, weights }: Transformer, x: Tensor, name: string): Tensor => {
  const { norm = "rms", rmsNormEpsilon: epsilon } = config
  const scale = weightOf(weights, `${name}.weight`)
  if (norm === "layer") return layerNorm(x, { scale, shift: weightOf(weights, `${name}.bias`), epsilon })
  return rmsNorm(x, { scale: norm === "rms" ? scale : add(scale, 1), epsilon })
}

/** Computes projections of `x` in a layer, with their biases and adapters. */
const project = (
  { weights, adapt }: Transformer,
  x: Tensor,
  layer: number,
  targets: ReadonlyArray<Projection>,
): ReadonlyArray<Tensor> => {
  const additions = adapt?.(x, layer, targets) ?? []
  return targets.map((target, index) => {
    const name = projectionName(layer, target)
    const product = linear(weights, `${name}.weight`, x)
    const bias = weights[`${name}.bias`]
    const base = bias === undefined ? product : add(product, bias)
    const addition = additions[index]
    return addition === undefined ? base : add(base, addition)
  })
}

const attended = (options: Transformer, layer: number, x: Tensor): Tensor => {
  const [queries, keys, values] = project(options, x, layer, ["q_proj", "k_proj", "v_proj"])
  const q = queryKeyNormalised(options, queries, queryKeyNormName(layer, "q"))
  const k = queryKeyNormalised(options, keys, queryKeyNormName(layer, "k"))
  const [output] = project(options, options.attend(layer, q, k, values), layer, ["o_proj"])
  return output
}

const queryKeyNormalised = (options: Transformer, x: Tensor, name: string): Tensor => {
  const { queryKeyNorm, headDim } = options.config
  if (queryKeyNorm === undefined) return x
  if (queryKeyNorm === "all") return normalised(options, x, name)
  const [tokens, size] = x.shape
  return reshape(normalised(options, reshape(x, [tokens, size / headDim, headDim]), name), [tokens, size])
}

const fed = (options: Transformer, layer: number, x: Tensor): Tensor => {
  const { activation = "silu", gated = true, experts } = options.config
  const activate = activation === "silu" ? silu : gelu
  if (experts !== undefined) return expertOutputs({ ...options, experts }, layer, x, activate)
  if (!gated) {
    const [up] = project(options, x, layer, ["up_proj"])
    return project(options, activate(up), layer, ["down_proj"])[0]
  }
  const [gate, up] = project(options, x, layer, ["gate_proj", "up_proj"])
  return project(options, mul(activate(gate), up), layer, ["down_proj"])[0]
}

/**
 * Computes logits [..., vocabSize] from hidden states [..., hiddenSize]. This is the most expensive product of a small model,
 * so first gather only the hidden states that are needed.
 */
export const logitsOf = (config: DecoderConfig, weights: Weights, hidden: Tensor): Tensor => {
  const leading = hidden.shape.slice(0, -1)
  const rows = reshape(hidden, [sizeOf(leading), config.hiddenSize])
  const logits = linear(weights, headOf(config), rows)
  return reshape(capped(logits, config.logitCap), [...leading, config.vocabSize])
}
