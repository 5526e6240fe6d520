/** Declares the layers of networks as plain data, which configs can hold, and their Schema. It builds no graphs. */
import { Predicate } from "effect"
import * as Schema from "effect/Schema"
import { bounded, codeTitle, nonNegative, positive, units } from "../../../base/config/fields.ts"
import { GraphError } from "../../../tensor/graph/GraphError.ts"
import type { Declaration } from "../../../tensor/graph/Parameters.ts"
import type { Shape, Tensor } from "../../../tensor/graph/Tensor.ts"

/**
 * Makes the Schemas of layers that have no settings, only a type. Each type has its own Schema, so that a union can
 * tell them apart.
 */
const bare = <const Types extends ReadonlyArray<string>>(types: Types) =>
  types.map((type: Types[number]) => Schema.Struct({ type: Schema.Literal(type) }))

const DenseLayer = Schema.Struct({
  type: Schema.Literal("dense"),
  /** The number of outputs. */
  units,
  /** The gain of the initial orthogonal weights; √2 if left out. */
  gain: Schema.optionalKey(positive),
})
const activationLayers = bare(["tanh", "relu", "gelu", "sigmoid", "silu", "softplus"])
const ConvolutionLayer = Schema.Struct({
  type: Schema.Literal("convolution"),
  filters: units,
  kernel: units,
  stride: Schema.optionalKey(units),
  /** The rows and columns of zeros around the image; `same` keeps its size at stride 1; 0 if left out. */
  padding: Schema.optionalKey(Schema.Union([bounded("optionalUnits"), Schema.Literal("same")])),
})
const NormLayer = Schema.Struct({ type: Schema.Literal("norm") })
const ReshapeLayer = Schema.Struct({
  type: Schema.Literal("reshape"),
  shape: Schema.Array(bounded("axis")).check(Schema.isMinLength(1), Schema.isMaxLength(4)),
})
const shapeLayers = bare(["flatten", "tokens", "mean"])
const PositionsLayer = Schema.Struct({
  type: Schema.Literal("positions"),
  /** The initial standard deviation of the learned vectors; 0.02 if left out. */
  deviation: Schema.optionalKey(nonNegative),
})
const AttentionLayer = Schema.Struct({
  type: Schema.Literal("attention"),
  heads: units,
  /** The number of features of each token in the result; if left out, the same as in the input. */
  units: Schema.optionalKey(units),
})
const CustomLayer = Schema.Struct({
  type: Schema.Literal("custom"),
  name: Schema.NonEmptyString,
  layer: Schema.optionalKey(
    Schema.declare((value: unknown): value is OwnLayer => Predicate.hasProperty(value, "apply"), {
      title: codeTitle,
      expected: "the code of a layer",
    }),
  ),
})

/** A linear layer. For tokens or an image, it applies to the last axis. */
export type Dense = typeof DenseLayer.Type
export type Activation = (typeof activationLayers)[number]["Type"]
/** A convolution of an image [channels, height, width]. */
export type Convolution = typeof ConvolutionLayer.Type
/** Normalises the last axis, then scales and shifts it (Ba et al. 2016). */
export type Norm = typeof NormLayer.Type
export type Reshape = typeof ReshapeLayer.Type
/** `flatten` gives a vector, `tokens` turns an image into a token for each pixel, `mean` averages tokens. */
export type ToShape = (typeof shapeLayers)[number]["Type"]
/** Adds a learned vector to each token, by its position. */
export type Positions = typeof PositionsLayer.Type
/** Attention of tokens [tokens, features] to each other (Vaswani et al. 2017). */
export type Attention = typeof AttentionLayer.Type

/** Layers one after another. */
export interface Sequential {
  readonly type: "sequential"
  readonly layers: ReadonlyArray<Layer>
}
/** Adds the input of some layers to their output. */
export interface Residual {
  readonly type: "residual"
  readonly layers: ReadonlyArray<Layer>
}
/** Several branches that read the same input; their outputs are flattened and joined. */
export interface Parallel {
  readonly type: "parallel"
  readonly branches: ReadonlyArray<ReadonlyArray<Layer>>
}
/** A branch for each part of an observation, by the part's name; their outputs are flattened and joined. */
export interface Inputs {
  readonly type: "inputs"
  readonly parts: ReadonlyArray<{ readonly name: string; readonly layers: ReadonlyArray<Layer> }>
}
/** A layer of the user's own. Configs have only its name. */
export interface Custom {
  readonly type: "custom"
  readonly name: string
  readonly layer?: OwnLayer
}

/** The code of a layer of the user's own. */
export interface OwnLayer {
  /** Declares the parameters for inputs of this shape, which has no axis for the rows of a batch. */
  readonly parameters?: (shape: Shape) => Readonly<Record<string, Declaration>>
  /** Computes the output from the parameters and the input `x` [rows, …shape]. Its first axis must stay the rows. */
  readonly apply: (parameters: Readonly<Record<string, Tensor>>, x: Tensor) => Tensor
}

export type Layer =
  | Dense
  | Activation
  | Convolution
  | Norm
  | Reshape
  | ToShape
  | Positions
  | Attention
  | Sequential
  | Residual
  | Parallel
  | Inputs
  | Custom

const types: ReadonlyArray<Layer["type"]> = [
  ...(["dense", "tanh", "relu", "gelu", "sigmoid", "silu", "softplus", "convolution", "norm", "reshape"] as const),
  ...(["flatten", "tokens", "mean", "positions", "attention", "sequential", "residual", "parallel"] as const),
  ...(["inputs", "custom"] as const),
]

const nested = Schema.Array(Schema.suspend((): Schema.Codec<Layer> => LayerSetting)).check(Schema.isMaxLength(100))

/** The Schema of a layer in a config. */
const LayerSetting: Schema.Codec<Layer> = Schema.Union([
  DenseLayer,
  ...activationLayers,
  ConvolutionLayer,
  NormLayer,
  ReshapeLayer,
  ...shapeLayers,
  PositionsLayer,
  AttentionLayer,
  Schema.Struct({ type: Schema.Literal("sequential"), layers: nested }),
  Schema.Struct({ type: Schema.Literal("residual"), layers: nested }),
  Schema.Struct({ type: Schema.Literal("parallel"), branches: Schema.Array(nested) }),
  Schema.Struct({
    type: Schema.Literal("inputs"),
    parts: Schema.Array(Schema.Struct({ name: Schema.NonEmptyString, layers: nested })),
  }),
  CustomLayer,
]).annotate({ identifier: "Layer", message: `Expected a layer, whose type is one of ${types.join(", ")}` })

/** A network in a config: a layer, or a list of them. */
export type Network = Layer | ReadonlyArray<Layer>

const NetworkSetting = Schema.Union([nested, LayerSetting]).annotate({ expected: "a list of layers, or one layer" })

/** The networks of an actor and of a critic; one network alone is the trunk that both share. */
export type Networks = Network | { readonly actor: Network; readonly critic: Network }

/** The Schema of the setting `network`; null leaves the choice to the algorithm. */
export const NetworksSetting: Schema.Codec<Networks | null> = Schema.NullOr(
  Schema.Union([nested, LayerSetting, Schema.Struct({ actor: NetworkSetting, critic: NetworkSetting })]).annotate({
    expected: "a list of layers, one layer, or networks for actor and critic",
  }),
)

/** Tells whether actor and critic have networks of their own. */
export const isSeparate = (networks: Networks): networks is { readonly actor: Network; readonly critic: Network } =>
  "actor" in networks

/**
 * Returns the network of the actor or of the critic; without a name, the one that all share. Throws a GraphError if there are
 * two and only one is needed.
 */
export const networkOf = (networks: Networks, name?: "actor" | "critic"): Network => {
  if (!isSeparate(networks)) return networks
  if (name !== undefined) return networks[name]
  const message = "algorithm.network: expected one network, found one for an actor and one for a critic"
  throw new GraphError({ op: "network", message, shapes: [], where: "" })
}

/** Returns the layers of a network. */
export const layersOf = (network: Network): ReadonlyArray<Layer> => (isList(network) ? network : [network])

const isList = (network: Network): network is ReadonlyArray<Layer> => Array.isArray(network)
