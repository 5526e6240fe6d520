/** Makes the dense layers of a network noisy, so that it explores by itself. */
import { normalFromUniform } from "../../tensor/graph/distributions.ts"
import { constant } from "../../tensor/graph/initialisers.ts"
import { abs, add, mul, reshape, sign, split, sqrt } from "../../tensor/graph/ops.ts"
import { fail, sameShape } from "../../tensor/graph/ops/core.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import type { Declarations, Weights } from "./trunk.ts"

/** The noise of a network's dense layers. */
export interface NoisyLayers {
  /** The parameters of the network and, for each weight of a dense layer, the deviation of its noise. */
  readonly parameters: Declarations
  /** The number of uniform random numbers in [0, 1) from which the noise of all layers is drawn. */
  readonly noiseSize: number
  /** Draws the weights of the network from uniform noise of shape [1, noiseSize]. All rows of a batch share the draw. */
  readonly draw: (weights: Weights, noise: Tensor) => Weights
}

/** The initial standard deviation of the noise, for a layer with one input: σ₀ of the paper. */
const initialDeviation = 0.5

/**
 * Adds noise to all dense layers of a network with these parameters (Fortunato et al. 2017, arXiv:1706.10295,
 * factorised Gaussian noise): a layer with the weights μ and p inputs has W = μ + σ ⊙ f(ε) f(ε′)ᵀ and the bias b = μᵇ +
 * σᵇ ⊙ f(ε′), where f(x) = sign(x) √|x|, and ε and ε′ are standard normal, one number for each input and output. σ is
 * learned; it starts at 0.5 / √p. Convolutions have no noise. The network itself does not change: call it with
 * `draw(weights, noise)` to act with noise, or with `weights` to act without.
 *
 * @example
 * ```ts
 * const options = { ...networkConfig, observationSpace: CartPole.env.observationSpace, actions: 2, dueling: false }
 * const network = Model.qNetwork(options)
 * const layers = noisyLayers(network.parameters)
 * Object.keys(layers.parameters) // q.0.weight, q.0.bias, …, q.0.weightDeviation, q.0.biasDeviation, …
 * ```
 */
export const noisyLayers = (parameters: Declarations): NoisyLayers => {
  const layers = Object.keys(parameters).flatMap((weight) => {
    const [inputs, outputs, ...more] = parameters[weight].shape
    const bias = weight.replace(/weight$/, "bias")
    const isDense = weight.endsWith(".weight") && outputs !== undefined && more.length === 0
    return isDense && bias in parameters && sameShape(parameters[bias].shape, [outputs])
      ? [{ weight, bias, inputs, outputs }]
      : []
  })
  const sizes = layers.flatMap(({ inputs, outputs }) => [inputs, outputs])
  const noiseSize = 2 * sizes.reduce((sum, size) => sum + size, 0)
  const deviations = layers.flatMap(({ weight, bias, inputs }) =>
    [weight, bias].map((name) => {
      const init = constant(initialDeviation / Math.sqrt(inputs))
      return [deviationOf(name), { shape: parameters[name].shape, init }] as const
    }),
  )
  return {
    parameters: { ...parameters, ...Object.fromEntries(deviations) },
    noiseSize,
    draw: (weights, noise) => {
      if (!sameShape(noise.shape, [1, noiseSize])) fail("noisyLayers", `expected noise [1, ${noiseSize}]`, noise)
      const normal = normalFromUniform(noise)
      const factors = split(mul(sign(normal), sqrt(abs(normal))), sizes, 1)
      const noisy = (name: string, factor: Tensor): Tensor =>
        add(weights[name], mul(weights[deviationOf(name)], factor))
      const drawn = layers.flatMap(({ weight, bias, inputs, outputs }, index) => {
        const [entering, leaving] = [factors[2 * index], factors[2 * index + 1]]
        return [
          [weight, noisy(weight, mul(reshape(entering, [inputs, 1]), leaving))],
          [bias, noisy(bias, reshape(leaving, [outputs]))],
        ] as const
      })
      return { ...weights, ...Object.fromEntries(drawn) }
    },
  }
}

/** Returns the name of the parameter that holds the deviations of a parameter's noise. */
const deviationOf = (name: string): string => `${name}Deviation`
