/**
 * Defines the names, shapes and initial values of a decoder's parameters. The names are the same as in Hugging Face's files.
 */
import { Record } from "effect"
import { constant, normal, zeros } from "../../tensor/graph/initialisers.ts"
import { state } from "../../tensor/graph/ops.ts"
import { fail } from "../../tensor/graph/ops/core.ts"
import type { NamedArray } from "../../tensor/graph/Parameters.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import type { Stream } from "../../base/rng/Rng.ts"
import type { Declarations, Weights } from "../../rl/model/trunk.ts"
import type { DecoderConfig } from "./DecoderConfig.ts"

/** The linear layers in each layer of a decoder. */
export const projections = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"] as const
export type Projection = (typeof projections)[number]

/** The part of a layer to which a projection belongs. */
const moduleOf: Readonly<Record<Projection, "self_attn" | "mlp">> = {
  q_proj: "self_attn",
  k_proj: "self_attn",
  v_proj: "self_attn",
  o_proj: "self_attn",
  gate_proj: "mlp",
  up_proj: "mlp",
  down_proj: "mlp",
}

/** Returns the name of a layer's projection, such as `model.layers.0.self_attn.q_proj`. */
export const projectionName = (layer: number, projection: Projection): string =>
  `model.layers.${layer}.${moduleOf[projection]}.${projection}`

/** Returns the numbers of inputs and outputs of a projection. */
export const projectionSizes = (
  { hiddenSize, intermediateSize, heads, keyValueHeads, headDim }: DecoderConfig,
  projection: Projection,
): { readonly inputs: number; readonly outputs: number } => {
  switch (projection) {
    case "q_proj":
      return { inputs: hiddenSize, outputs: heads * headDim }
    case "k_proj":
    case "v_proj":
      return { inputs: hiddenSize, outputs: keyValueHeads * headDim }
    case "o_proj":
      return { inputs: heads * headDim, outputs: hiddenSize }
    case "gate_proj":
    case "up_proj":
      return { inputs: hiddenSize, outputs: intermediateSize }
    case "down_proj":
      return { inputs: intermediateSize, outputs: hiddenSize }
  }
}

const hasBias = ({ biases }: DecoderConfig, projection: Projection): boolean =>
  moduleOf[projection] === "mlp" ? biases.mlp : projection === "o_proj" ? biases.output : biases.qkv

/** The default standard deviation of initial weights in Hugging Face's models. */
export const usualInitializerRange = 0.02

export const embeddingName = "model.embed_tokens.weight"
export const finalNormName = "model.norm.weight"
export const headName = "lm_head.weight"

/** Returns the name of the parameter that computes logits. */
export const headOf = ({ tiedEmbeddings }: DecoderConfig): string => (tiedEmbeddings ? embeddingName : headName)

/**
 * Declares the parameters of a decoder by name. Matrices have the shape [outputs, inputs], as in PyTorch. The standard
 * deviation of their initial values is `initializerRange`.
 *
 * @example
 * ```ts
 * Decoder.parametersOf(decoderConfig)["model.layers.0.self_attn.q_proj.weight"].shape // [heads · headDim, hiddenSize]
 * ```
 */
export const parametersOf = (config: DecoderConfig, initializerRange = usualInitializerRange): Declarations => {
  const { vocabSize, hiddenSize, layers, tiedEmbeddings } = config
  const norm = { shape: [hiddenSize], init: constant(1) }
  const table = { shape: [vocabSize, hiddenSize], init: normal(initializerRange) }
  const declarations: Record<string, Declarations[string]> = { [embeddingName]: table }
  for (let layer = 0; layer < layers; layer++) {
    for (const projection of projections) {
      const name = projectionName(layer, projection)
      const { inputs, outputs } = projectionSizes(config, projection)
      declarations[`${name}.weight`] = { shape: [outputs, inputs], init: normal(initializerRange) }
      if (hasBias(config, projection)) declarations[`${name}.bias`] = { shape: [outputs], init: zeros }
    }
    declarations[`model.layers.${layer}.input_layernorm.weight`] = norm
    declarations[`model.layers.${layer}.post_attention_layernorm.weight`] = norm
  }
  declarations[finalNormName] = norm
  if (!tiedEmbeddings) declarations[headName] = table
  return declarations
}

/**
 * Makes a state for each declared parameter. Pass them to the graph as its weights, and to the program as its states.
 *
 * @example
 * ```ts
 * const weights = Decoder.statesOf(Decoder.parametersOf(decoderConfig))
 * const states = Record.map(weights, (tensor) => ({ tensor })) // the `state` of a program that does not train them
 * ```
 */
export const statesOf = (declarations: Declarations): Weights =>
  Record.map(declarations, ({ shape }, name) => state(name, shape))

/** Draws the initial values of all declared parameters. The values of a parameter depend only on `random` and its name. */
export const initialValues = (declarations: Declarations, random: Stream): Readonly<Record<string, NamedArray>> =>
  Record.map(declarations, ({ shape, init }, name) => ({ shape, data: init(random.child(name), shape) }))

/** Returns the tensor of a parameter; throws a `GraphError` if it is missing. */
export const weightOf = (weights: Weights, name: string): Tensor =>
  weights[name] ?? fail("decoder", `expected a tensor for the parameter "${name}", found none`)
