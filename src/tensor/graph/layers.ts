/** Defines the layers of neural networks, composed of ops. Models and algorithms build their networks from them. */
import { type Initialiser, orthogonal, zeros } from "./initialisers.ts"
import {
  add,
  type Conv2dOptions,
  conv2d,
  gelu,
  matmul,
  mul,
  relu,
  reshape,
  sigmoid,
  silu,
  softplus,
  split,
  tanh,
} from "./ops.ts"
import { fail } from "./ops/core.ts"
import type { Declaration } from "./Parameters.ts"
import type { Tensor } from "./Tensor.ts"

/**
 * A part of a network. `parameters` declares its weights, whose names begin with the layer's name; `apply` computes its
 * output for the input `x` from tensors of these names.
 *
 * @example
 * ```ts
 * const net = mlp("actor", { sizes: [4, 64, 64, 2], activation: "tanh" })
 * const parameters = Parameters.layout(net.parameters) // actor.0.weight, actor.0.bias, …
 * const theta = Graph.state("theta", [parameters.size])
 * const logits = net.apply(parameters.tensorsOf(theta), observations)
 * ```
 */
export interface GraphLayer {
  readonly parameters: Readonly<Record<string, Declaration>>
  readonly apply: (weights: Readonly<Record<string, Tensor>>, x: Tensor) => Tensor
}

export const activations = { tanh, relu, gelu, sigmoid, silu, softplus } as const
export type GraphActivation = keyof typeof activations

/** Makes a linear layer, which computes x W + b for x of shape [batch, inputs]. */
export const linear = (
  name: string,
  inputs: number,
  outputs: number,
  init: Initialiser = orthogonal(1),
): GraphLayer => ({
  parameters: {
    [`${name}.weight`]: { shape: [inputs, outputs], init },
    [`${name}.bias`]: { shape: [outputs], init: zeros },
  },
  apply: (weights, x) => add(matmul(x, weights[`${name}.weight`]), weights[`${name}.bias`]),
})

export interface MlpOptions {
  /** The number of inputs, the number of units in each hidden layer, and the number of outputs. */
  readonly sizes: ReadonlyArray<number>
  readonly activation: GraphActivation
  /** The gain of the last layer's orthogonal initialisation; the gain of the other layers is √2. */
  readonly outputGain?: number
}

/** Makes a multilayer perceptron: linear layers with an activation after each layer except the last. */
export const mlp = (name: string, { sizes, activation, outputGain = 1 }: MlpOptions): GraphLayer => {
  if (sizes.length < 2) fail("mlp", `"${name}" needs inputs and outputs, found sizes [${sizes.join(", ")}]`)
  const last = sizes.length - 2
  const layers = sizes
    .slice(1)
    .map((outputs, index) =>
      linear(`${name}.${index}`, sizes[index], outputs, orthogonal(index === last ? outputGain : Math.SQRT2)),
    )
  return {
    parameters: Object.assign({}, ...layers.map((layer) => layer.parameters)),
    apply: (weights, x) =>
      layers.reduce((value, layer, index) => {
        const linearly = layer.apply(weights, value)
        return index === last ? linearly : activations[activation](linearly)
      }, x),
  }
}

export interface LstmState {
  readonly hidden: Tensor
  readonly cell: Tensor
}

export interface LstmCell {
  readonly parameters: Readonly<Record<string, Declaration>>
  /** Computes x W + b for the four gates, [rows, 4 × size]. It needs no state, so one call can do all time steps. */
  readonly fromInput: (weights: Readonly<Record<string, Tensor>>, x: Tensor) => Tensor
  /** Computes the next state from the result of `fromInput` for this step, and from the state before it. */
  readonly step: (weights: Readonly<Record<string, Tensor>>, fromInput: Tensor, state: LstmState) => LstmState
  readonly apply: (weights: Readonly<Record<string, Tensor>>, x: Tensor, state: LstmState) => LstmState
}

/**
 * Makes a cell of a long short-term memory (Hochreiter and Schmidhuber 1997). The order of the gates is input, forget,
 * candidate, output.
 *
 * `forgetBias` is the initial bias of the forget gates (Gers et al. 2000; Jozefowicz et al. 2015): the state of a new
 * cell fades with a time constant of 1 + exp(forgetBias) steps.
 */
export const lstmCell = (name: string, inputs: number, size: number, forgetBias = 0): LstmCell => {
  const fromInput: LstmCell["fromInput"] = (weights, x) =>
    add(matmul(x, weights[`${name}.inputWeight`]), weights[`${name}.bias`])
  const step: LstmCell["step"] = (weights, contribution, { hidden, cell }) => {
    const gates = add(contribution, matmul(hidden, weights[`${name}.hiddenWeight`]))
    const [inputGate, forgetGate, candidate, outputGate] = split(gates, [size, size, size, size], 1)
    const nextCell = add(mul(sigmoid(forgetGate), cell), mul(sigmoid(inputGate), tanh(candidate)))
    return { cell: nextCell, hidden: mul(sigmoid(outputGate), tanh(nextCell)) }
  }
  return {
    parameters: {
      [`${name}.inputWeight`]: { shape: [inputs, 4 * size], init: orthogonal(1) },
      [`${name}.hiddenWeight`]: { shape: [size, 4 * size], init: orthogonal(1) },
      [`${name}.bias`]: { shape: [4 * size], init: forgetGates(forgetBias) },
    },
    fromInput,
    step,
    apply: (weights, x, state) => step(weights, fromInput(weights, x), state),
  }
}

/** Draws the biases of the four gates: `bias` for the second one, the forget gates, and 0 for the others. */
const forgetGates =
  (bias: number): Initialiser =>
  (_, [length]) =>
    new Float32Array(length).fill(bias, length / 4, length / 2)

export interface ConvOptions extends Conv2dOptions {
  /** The height and the width of the kernel. */
  readonly kernel: number
}

/** Makes a convolution layer with a bias, for x of shape [N, C, H, W]. */
export const conv = (
  name: string,
  inputs: number,
  outputs: number,
  { kernel, ...options }: ConvOptions,
): GraphLayer => ({
  parameters: {
    [`${name}.weight`]: { shape: [outputs, inputs, kernel, kernel], init: orthogonal(Math.SQRT2) },
    [`${name}.bias`]: { shape: [outputs], init: zeros },
  },
  apply: (weights, x) =>
    add(conv2d(x, weights[`${name}.weight`], options), reshape(weights[`${name}.bias`], [outputs, 1, 1])),
})
