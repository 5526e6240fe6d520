/**
 * Defines the names, shapes and initial values of a decoder's parameters. The names are the same as in Hugging Face's files.
 */
import { Record } from "effect"
import { constant, normal, zeros } from "../../tensor/graph/initialisers.ts"
import { state } from "../../tensor/graph/ops.ts"
import { fail } from "../../tensor/graph/ops/core.ts"
import type { Declaration, NamedArray } from "../../tensor/graph/Parameters.ts"
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

/**
 * Lists the projections of a decoder, which can have adapters. One without gates lacks `gate_proj`, and experts have matrices of
 * their own.
 *
 * @example
 * ```ts
 * Decoder.projectionsOf(decoderConfig) // q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj
 * ```
 */
export const projectionsOf = ({
  gated = true,
  experts,
}: Pick<DecoderConfig, "gated" | "experts">): ReadonlyArray<Projection> =>
  projections.filter(
    (projection) => (gated || projection !== "gate_proj") && (experts === undefined || moduleOf[projection] !== "mlp"),
  )

const hasBias = ({ biases }: DecoderConfig, projection: Projection): boolean =>
  moduleOf[projection] === "mlp" ? biases.mlp : projection === "o_proj" ? biases.output : biases.qkv

/** The default standard deviation of initial weights in Hugging Face's models. */
export const usualInitializerRange = 0.02

export const embeddingName = "model.embed_tokens.weight"
export const finalNormName = "model.norm.weight"
export const headName = "lm_head.weight"
/** The embeddings of positions, for a model that learns them. */
export const positionsName = "model.embed_positions.weight"

/** Names the norms around a part of a layer, without `.weight`; null where there is none. */
interface NormNames {
  readonly before: string | null
  readonly after: string | null
}

/** Returns the names of the norms of a layer's attention and of its feed-forward network, as transformers calls them. */
export const normsOf = (
  { normPlaces = "before" }: DecoderConfig,
  layer: number,
): { readonly attention: NormNames; readonly feedForward: NormNames } => {
  const name = (norm: string): string => `model.layers.${layer}.${norm}_layernorm`
  switch (normPlaces) {
    case "before":
      return {
        attention: { before: name("input"), after: null },
        feedForward: { before: name("post_attention"), after: null },
      }
    case "after":
      return {
        attention: { before: null, after: name("post_attention") },
        feedForward: { before: null, after: name("post_feedforward") },
      }
    case "both":
      return {
        attention: { before: name("input"), after: name("post_attention") },
        feedForward: { before: name("pre_feedforward"), after: name("post_feedforward") },
      }
  }
}

/**
 * Returns the names of the matrices of a layer's experts. Those of all experts are adjacent: `gate` and `up` have the shape
 * [experts · units, hiddenSize], `down` has [hiddenSize, experts · units].
 */
export const expertNames = (layer: number) => {
  const name = `model.layers.${layer}.mlp`
  return {
    router: `${name}.gate.weight`,
    gate: `${name}.experts.gate_proj.weight`,
    up: `${name}.experts.up_proj.weight`,
    down: `${name}.experts.down_proj.weight`,
  }
}

/** Returns the name of the norm of a layer's queries or keys, without `.weight`. */
export const queryKeyNormName = (layer: number, part: "q" | "k"): string =>
  `model.layers.${layer}.self_attn.${part}_norm`

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
  const { vocabSize, hiddenSize, layers, tiedEmbeddings, learnedPositions = false, maxPositions } = config
  const table = { shape: [vocabSize, hiddenSize], init: normal(initializerRange) }
  const declarations: Record<string, Declaration> = { [embeddingName]: table }
  if (learnedPositions) declarations[positionsName] = { shape: [maxPositions, hiddenSize], init: table.init }
  for (let layer = 0; layer < layers; layer++) {
    for (const projection of projectionsOf(config)) {
      const name = projectionName(layer, projection)
      const { inputs, outputs } = projectionSizes(config, projection)
      declarations[`${name}.weight`] = { shape: [outputs, inputs], init: normal(initializerRange) }
      if (hasBias(config, projection)) declarations[`${name}.bias`] = { shape: [outputs], init: zeros }
    }
    Object.assign(declarations, expertParameters(config, layer, initializerRange), normParameters(config, layer))
  }
  Object.assign(declarations, normParameter(config, moduleName(finalNormName), hiddenSize))
  if (!tiedEmbeddings) declarations[headName] = table
  return config.quantization === undefined ? declarations : quantised(declarations)
}

/** Returns the name of the scales of a matrix of bytes. */
export const scaleName = (weight: string): string => `${weight}_scale`

/** Replaces the declarations of the matrices that int8 quantises. */
const quantised = (declarations: Declarations): Declarations => {
  const isQuantised = (name: string): boolean =>
    name === embeddingName ||
    name === headName ||
    projections.some((projection) => name.endsWith(`${projection}.weight`))
  return Object.fromEntries(
    Object.entries(declarations).flatMap(([name, declaration]): ReadonlyArray<readonly [string, Declaration]> => {
      const { shape } = declaration
      if (!isQuantised(name) || name.includes(".experts.")) return [[name, declaration]]
      return [
        [name, { shape, init: zeros, dtype: "i8" }],
        [scaleName(name), { shape: [shape[0]], init: zeros }],
      ]
    }),
  )
}

const moduleName = (parameter: string): string => parameter.replace(/\.weight$/, "")

const normParameter = ({ norm = "rms" }: DecoderConfig, name: string, size: number): Declarations => ({
  [`${name}.weight`]: { shape: [size], init: norm === "rmsPlusOne" ? zeros : constant(1) },
  ...(norm === "layer" ? { [`${name}.bias`]: { shape: [size], init: zeros } } : {}),
})

/** Declares the norms of a layer. */
const normParameters = (config: DecoderConfig, layer: number): Declarations => {
  const { hiddenSize, heads, keyValueHeads, headDim, queryKeyNorm } = config
  const { attention, feedForward } = normsOf(config, layer)
  const names = [attention.before, attention.after, feedForward.before, feedForward.after]
  const around = names.filter((name) => name !== null).map((name) => normParameter(config, name, hiddenSize))
  if (queryKeyNorm === undefined) return Object.assign({}, ...around)
  const sizeFor = (count: number): number => (queryKeyNorm === "head" ? headDim : count * headDim)
  return Object.assign(
    {},
    normParameter(config, queryKeyNormName(layer, "q"), sizeFor(heads)),
    normParameter(config, queryKeyNormName(layer, "k"), sizeFor(keyValueHeads)),
    ...around,
  )
}

/** Declares the experts of a layer and their router. */
const expertParameters = ({ experts, hiddenSize }: DecoderConfig, layer: number, range: number): Declarations => {
  if (experts === undefined) return {}
  const { router, gate, up, down } = expertNames(layer)
  const units = experts.count * experts.units
  const init = normal(range)
  return {
    [router]: { shape: [experts.count, hiddenSize], init },
    [gate]: { shape: [units, hiddenSize], init },
    [up]: { shape: [units, hiddenSize], init },
    [down]: { shape: [hiddenSize, units], init },
  }
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
  Record.map(declarations, ({ shape, dtype }, name) => state(name, shape, dtype))

/** Draws the initial values of all declared parameters. The values of a parameter depend only on `random` and its name. */
export const initialValues = (declarations: Declarations, random: Stream): Readonly<Record<string, NamedArray>> =>
  Record.map(declarations, ({ shape, init }, name) => ({ shape, data: init(random.child(name), shape) }))

/** Returns the tensor of a parameter; throws a `GraphError` if it is missing. */
export const weightOf = (weights: Weights, name: string): Tensor =>
  weights[name] ?? fail("decoder", `expected a tensor for the parameter "${name}", found none`)
