/** Builds the layers of a decoder transformer. The caller provides the attention. */
import { add, gather, matmul, mul, reshape, rmsNorm, silu } from "../../tensor/graph/ops.ts"
import { sizeOf, type Tensor } from "../../tensor/graph/Tensor.ts"
import type { Weights } from "../../rl/model/trunk.ts"
import type { DecoderConfig } from "./DecoderConfig.ts"
import { embeddingName, finalNormName, headOf, type Projection, projectionName, weightOf } from "./parameters.ts"

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
  readonly attend: Attend
  readonly adapt?: Adapt | undefined
}

/** Computes the hidden states of tokens after the last norm, [tokens, hiddenSize]. */
export const transformer = ({ config, weights, tokens, attend, adapt }: Transformer): Tensor => {
  const norm = (x: Tensor, name: string): Tensor =>
    rmsNorm(x, { scale: weightOf(weights, name), epsilon: config.rmsNormEpsilon })
  const project = (x: Tensor, layer: number, targets: ReadonlyArray<Projection>): ReadonlyArray<Tensor> => {
    const additions = adapt?.(x, layer, targets) ?? []
    return targets.map((target, index) => {
      const name = projectionName(layer, target)
      const product = matmul(x, weightOf(weights, `${name}.weight`), { transposeB: true })
      const bias = weights[`${name}.bias`]
      const base = bias === undefined ? product : add(product, bias)
      const addition = additions[index]
      return addition === undefined ? base : add(base, addition)
    })
  }

  let x = gather(weightOf(weights, embeddingName), tokens)
  for (let layer = 0; layer < config.layers; layer++) {
    const name = `model.layers.${layer}`
    const [queries, keys, values] = project(norm(x, `${name}.input_layernorm.weight`), layer, [
      "q_proj",
      "k_proj",
      "v_proj",
    ])
    const [attended] = project(attend(layer, queries, keys, values), layer, ["o_proj"])
    x = add(x, attended)
    const [gate, up] = project(norm(x, `${name}.post_attention_layernorm.weight`), layer, ["gate_proj", "up_proj"])
    const [fed] = project(mul(silu(gate), up), layer, ["down_proj"])
    x = add(x, fed)
  }
  return norm(x, finalNormName)
}

/**
 * Computes logits [..., vocabSize] from hidden states [..., hiddenSize]. This is the most expensive product of a small model,
 * so first gather only the hidden states that are needed.
 */
export const logitsOf = (config: DecoderConfig, weights: Weights, hidden: Tensor): Tensor => {
  const leading = hidden.shape.slice(0, -1)
  const rows = reshape(hidden, [sizeOf(leading), config.hiddenSize])
  const logits = matmul(rows, weightOf(weights, headOf(config)), { transposeB: true })
  return reshape(logits, [...leading, config.vocabSize])
}
