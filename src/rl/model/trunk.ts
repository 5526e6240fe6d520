/** Defines the settings of networks, and makes trunks: the layers from observations to the features that heads read. */
import * as Schema from "effect/Schema"
import { bounded, layers, real, units, withDefault } from "../../base/config/fields.ts"
import { type Box, partsOf, type RowSpace } from "../env/Space.ts"
import { orthogonal } from "../../tensor/graph/initialisers.ts"
import { type GraphActivation, activations, conv, linear } from "../../tensor/graph/layers.ts"
import { relu, reshape } from "../../tensor/graph/ops.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import { networkTrunk, type Trunk, type Weights } from "./network/build.ts"
import { type Network, networkOf, type Networks } from "./network/layers.ts"
import { hasImages, isImage, joined, scaledImage, vectorOf, vectorSizeOf, withoutMask } from "./observations.ts"

export type { Declarations, Trunk, Weights } from "./network/build.ts"

const Convolution = Schema.Struct({ filters: units, kernel: units, stride: units })
type Convolution = typeof Convolution.Type

/** The settings of networks. */
export interface NetworkOptions {
  /** The sizes of the hidden layers. For images, these come after the convolutions. @default [64,64] */
  readonly hidden?: ReadonlyArray<number>
  /** The activation function between layers, for vectors; networks over images always use rectifiers. @default "tanh" */
  readonly activation?: "tanh" | "relu"
  /** The convolutions for image observations [channels, height, width]; null chooses them by the image's size. @default null */
  readonly convolutions?: ReadonlyArray<Convolution> | null
}

export const networkFields = {
  hidden: withDefault(layers, [64, 64]),
  activation: withDefault(Schema.Literals(["tanh", "relu"]), "tanh"),
  convolutions: withDefault(Schema.NullOr(Schema.Array(Convolution).check(Schema.isMaxLength(100))), null),
}

/** The settings of networks that can have a memory. */
export interface MemoryOptions {
  /** The number of units of a memory (an LSTM); 0 makes a network without one. @default 0 */
  readonly lstm?: number
  /**
   * The initial bias of the LSTM's forget gates. What a new LSTM has seen fades with a time constant of 1 + exp(bias)
   * steps: 2 steps with 0, 21 steps with 3. @default 3
   */
  readonly forgetBias?: number
  /**
   * The number of steps that gradients flow back through the memory; it must divide `nsteps`. 0 is the whole rollout.
   * @default 0
   */
  readonly sequence?: number
}

/** The settings of a memory, and of where an actor and a critic have it. */
export interface MemoryPlaceOptions extends MemoryOptions {
  /**
   * The number of hidden layers before the LSTM; the others follow it. null is 0 for vectors, and all of them for images, whose
   * convolutions come before the LSTM in any case. @default null
   */
  readonly lstmAfter?: number | null
  /**
   * The critic's memory: `own` is an LSTM of its own; `shared` is the actor's, with the layers before it. null is `own` for
   * vectors and `shared` for images. @default null
   */
  readonly criticMemory?: "own" | "shared" | null
}

export const memoryFields = {
  lstm: withDefault(bounded("optionalUnits"), 0),
  forgetBias: withDefault(real.check(Schema.isBetween({ minimum: -20, maximum: 20 })), 3),
  sequence: withDefault(bounded("unrolled"), 0),
}

export const memoryPlaceFields = {
  lstmAfter: withDefault(Schema.NullOr(bounded("layersBefore")), null),
  criticMemory: withDefault(Schema.NullOr(Schema.Literals(["own", "shared"])), null),
}

export interface NetworkConfig extends Required<Omit<NetworkOptions, "activation">> {
  readonly activation: GraphActivation
  /** The layers to use instead of `hidden`, `activation` and `convolutions`; null or undefined keeps these. */
  readonly network?: Networks | null
}

/** Names the layers of a policy that has only dense layers; `rl/export/policyFiles.ts` can write it for RLtools. */
export interface DensePolicy {
  /**
   * The layers in order. Each joins the outputs of the linear layers `names` (usually only one), which have the same
   * input.
   */
  readonly layers: ReadonlyArray<{
    readonly names: ReadonlyArray<string>
    readonly activation: GraphActivation | "identity"
  }>
  /** `sample_and_squash`: the last layer outputs means and log deviations; an action is tanh of a normal sample. */
  readonly head?: "sample_and_squash"
}

/**
 * Describes a trunk for vectors and its head as dense layers, which can be exported for RLtools; `last` is the activation
 * after the head. Returns undefined for all other observations (images, choices, parts), for rows with masks, and for a
 * network of the user's.
 */
export const denseLayers = (
  name: string,
  space: RowSpace,
  { hidden, activation, network = null }: NetworkConfig,
  last: GraphActivation | "identity" = "identity",
): DensePolicy | undefined =>
  space._tag !== "Box" || isImage(space) || network !== null
    ? undefined
    : {
        layers: Array.from({ length: hidden.length + 1 }, (_, index) => ({
          names: [`${name}.${index}`],
          activation: index < hidden.length ? activation : last,
        })),
      }

/**
 * Chooses convolutions by the image's shorter side in pixels: up to 12 one layer, as for MinAtar; below 36 two layers;
 * else the three layers of DQN's Nature paper, which do not fit into smaller images.
 */
const convolutionsFor = (size: number): ReadonlyArray<Convolution> =>
  size <= 12
    ? [{ filters: 16, kernel: 3, stride: 1 }]
    : size < 36
      ? [
          { filters: 16, kernel: 4, stride: 2 },
          { filters: 32, kernel: 3, stride: 1 },
        ]
      : [
          { filters: 32, kernel: 8, stride: 4 },
          { filters: 64, kernel: 4, stride: 2 },
          { filters: 64, kernel: 3, stride: 1 },
        ]

/** Returns the network of the user's for the actor, the critic, or without a name for all; null if there is none. */
export const networkFor = ({ network = null }: NetworkConfig, name?: "actor" | "critic"): Network | null =>
  network === null ? null : networkOf(network, name)

/**
 * Makes a trunk: convolutions for images, then hidden layers, each followed by its activation. If an observation has
 * parts, each image has its own convolutions, whose outputs are joined with the vectors of all other parts; choices
 * become one-hot vectors. A trunk does not read action masks. If `network` is not null, the trunk has these layers
 * instead.
 *
 * @example
 * ```ts
 * const body = trunk("actor", CartPole.env.observationSpace, { hidden: [64], activation: "tanh", convolutions: null })
 * Object.keys(body.parameters) // actor.0.weight, actor.0.bias
 * ```
 */
export const trunk = (name: string, space: RowSpace, config: NetworkConfig, network: Network | null = null): Trunk => {
  if (network !== null) return networkTrunk(name, space, network)
  const reader = readerOf(name, space, config)
  const layers = hiddenLayers(name, reader.outputs, space, config)
  return {
    ...layers,
    parameters: { ...reader.parameters, ...layers.parameters },
    apply: (weights, observations) => layers.apply(weights, reader.apply(weights, observations)),
  }
}

/**
 * Makes hidden layers over `inputs` features, each followed by its activation. They are numbered from `first`, the number of
 * layers that come before them.
 */
export const hiddenLayers = (
  name: string,
  inputs: number,
  space: RowSpace,
  { hidden, activation }: Pick<NetworkConfig, "hidden" | "activation">,
  first = 0,
): Trunk => {
  const layers = hidden.map((outputs, index) =>
    linear(`${name}.${first + index}`, index === 0 ? inputs : hidden[index - 1], outputs, orthogonal(Math.SQRT2)),
  )
  // Networks over images use rectifiers, whatever the activation for vectors is.
  const activate = hasImages(space) ? relu : activations[activation]
  return {
    parameters: Object.assign({}, ...layers.map((layer) => layer.parameters)),
    outputs: hidden.at(-1) ?? inputs,
    depth: first + layers.length,
    apply: (weights, features) => layers.reduce((value, layer) => activate(layer.apply(weights, value)), features),
  }
}

/** Makes the part of a trunk before its dense layers, which turns rows into vectors. */
const readerOf = (name: string, space: RowSpace, config: NetworkConfig): Omit<Trunk, "depth"> => {
  const readers = partsOf(space).map((part) => {
    const { path, space: own } = part
    const read = (observations: Tensor): Tensor => vectorOf(part, observations)
    if (own._tag !== "Box" || !isImage(own)) {
      return { parameters: {}, outputs: vectorSizeOf(own), apply: (_: Weights, rows: Tensor) => read(rows) }
    }
    const image = convolutionTrunk(path === "" ? name : `${name}.${path}`, own, config)
    return { ...image, apply: (weights: Weights, rows: Tensor) => image.apply(weights, read(rows)) }
  })
  return {
    parameters: Object.assign({}, ...readers.map((reader) => reader.parameters)),
    outputs: readers.reduce((sum, reader) => sum + reader.outputs, 0),
    apply: (weights, rows) => {
      const observations = withoutMask(space, rows)
      return joined(readers.map((reader) => reader.apply(weights, observations)))
    },
  }
}

const convolutionTrunk = (name: string, space: Box, { convolutions }: NetworkConfig): Omit<Trunk, "depth"> => {
  const { shape } = space
  const [channels, height, width] = shape
  let [inputs, high, wide] = [channels, height, width]
  const layers = (convolutions ?? convolutionsFor(Math.min(height, width))).map(
    ({ filters, kernel, stride }, index) => {
      const layer = conv(`${name}.conv${index}`, inputs, filters, { kernel, strides: stride })
      inputs = filters
      high = Math.floor((high - kernel) / stride) + 1
      wide = Math.floor((wide - kernel) / stride) + 1
      return layer
    },
  )
  const outputs = inputs * high * wide
  return {
    parameters: Object.assign({}, ...layers.map((layer) => layer.parameters)),
    outputs,
    apply: (weights, observations) => {
      const [rows] = observations.shape
      const image = scaledImage(space, reshape(observations, [rows, channels, height, width]))
      const filtered = layers.reduce((value, layer) => relu(layer.apply(weights, value)), image)
      return reshape(filtered, [rows, outputs])
    },
  }
}
