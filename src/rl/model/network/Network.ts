/**
 * Describes networks as values that compose: each function makes a layer as plain data, so that a config file can hold
 * a network, too. The setting `network` of `Ppo.make` and others takes a network, or one for the actor and one for the
 * critic. The algorithm adds the last layers (the heads), which fit its actions.
 */
import type {
  Activation,
  Attention,
  Convolution,
  Custom,
  Dense,
  Inputs,
  Layer,
  Network,
  Norm,
  OwnLayer,
  Parallel,
  Positions,
  Residual,
  Reshape,
  Sequential,
  ToShape,
} from "./layers.ts"
import { layersOf } from "./layers.ts"

export type { Layer, Network, Networks, OwnLayer } from "./layers.ts"

/** Makes a linear layer with this number of outputs. For tokens or images, it applies to the last axis. */
export const dense = (units: number, options: { readonly gain?: number } = {}): Dense => ({
  type: "dense",
  units,
  ...options,
})

export const tanh: Activation = { type: "tanh" }
export const relu: Activation = { type: "relu" }
export const gelu: Activation = { type: "gelu" }
export const sigmoid: Activation = { type: "sigmoid" }
export const silu: Activation = { type: "silu" }
export const softplus: Activation = { type: "softplus" }

/** Makes a convolution over images [channels, height, width], without the activation. */
export const convolution = (options: Omit<Convolution, "type">): Convolution => ({ type: "convolution", ...options })

/** Normalises the last axis to mean 0 and variance 1, then scales and shifts it by learned numbers. */
export const norm: Norm = { type: "norm" }

/** Gives the numbers of a row another shape, such as `reshape(8, 4)` for eight tokens with four features each. */
export const reshape = (...shape: ReadonlyArray<number>): Reshape => ({ type: "reshape", shape })

/** Flattens all numbers of a row to a vector. A network does so at its end anyway. */
export const flatten: ToShape = { type: "flatten" }

/** Turns an image [channels, height, width] into a token for each pixel, with the channels as features. */
export const tokens: ToShape = { type: "tokens" }

/** Averages tokens [tokens, features] to one vector [features]. */
export const mean: ToShape = { type: "mean" }

/** Adds a learned vector to each token, so that attention can tell positions apart. */
export const positions = (options: { readonly deviation?: number } = {}): Positions => ({
  type: "positions",
  ...options,
})

/** Makes attention of tokens [tokens, features] to each other, with this number of heads. */
export const attention = (options: { readonly heads: number; readonly units?: number }): Attention => ({
  type: "attention",
  ...options,
})

/** Puts layers one after another. */
export const sequential = (layers: ReadonlyArray<Layer>): Sequential => ({ type: "sequential", layers })

/** Adds the input of some layers to their output, which must have the same shape. */
export const residual = (layers: ReadonlyArray<Layer>): Residual => ({ type: "residual", layers })

/** Lets several networks read the same input, and joins their outputs. */
export const parallel = (branches: ReadonlyArray<Network>): Parallel => ({
  type: "parallel",
  branches: branches.map(layersOf),
})

/**
 * Gives each part of an observation (of a `Space.dict`, by the part's name) a network of its own, and joins their outputs. It is
 * the first layer of a network. A part that is not named is not read.
 *
 * @example
 * ```ts
 * inputs({ camera: [convolution({ filters: 16, kernel: 3 }), relu], speed: dense(16) })
 * ```
 */
export const inputs = (parts: Readonly<Record<string, Network>>): Inputs => ({
  type: "inputs",
  parts: Object.entries(parts).map(([name, network]) => ({ name, layers: layersOf(network) })),
})

/**
 * Makes a layer of your own from its parameters and a function over tensors. Config files have only its name, so a run with
 * it is resumed by its program.
 *
 * @example
 * ```ts
 * // Multiplies each number by a learned one.
 * const scaled = custom("scaled", {
 *   parameters: (shape) => ({ factors: { shape, init: Initialisers.constant(1) } }),
 *   apply: ({ factors }, x) => Graph.mul(x, factors),
 * })
 * Ppo.make({ network: sequential([scaled, dense(64), tanh]) })
 * ```
 */
export const custom = (name: string, layer: OwnLayer): Custom => ({ type: "custom", name, layer })
