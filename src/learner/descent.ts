import { gradients } from "../graph/gradients.ts"
import { state } from "../graph/ops.ts"
import { clipGlobalNorm, type Optimiser, type Updated } from "../graph/optimisers.ts"
import type { Layout } from "../graph/Parameters.ts"
import type { Tensor } from "../graph/Tensor.ts"
import type { Weights } from "../model/trunk.ts"

/** A network in a program: its flat vector of parameters, and a tensor for each parameter by its name. */
export interface Net {
  readonly layout: Layout
  readonly theta: Tensor
  readonly weights: Weights
}

/**
 * Declares a network whose parameters are the program's state of this name.
 *
 * @example
 * ```ts
 * const net = netOf(Parameters.layout(network.parameters), "theta")
 * network.evaluate(net.weights, observations)
 * ```
 */
export const netOf = (layout: Layout, name: string): Net => {
  const theta = state(name, [layout.size])
  return { layout, theta, weights: layout.tensorsOf(theta) }
}

/**
 * Takes one gradient step: computes the gradient of the loss, scales it down to the norm `maxGradNorm` (0 does not limit it),
 * and applies the optimiser.
 *
 * @example
 * ```ts
 * const net = netOf(Parameters.layout(network.parameters), "theta")
 * const { value } = network.evaluate(net.weights, observations)
 * const loss = Graph.mean(Graph.square(value))
 * const { next } = descend(net, loss, Optimisers.sgd({ size: net.layout.size, learningRate: 0.1 }), 0.5)
 * ```
 */
export const descend = (
  { layout, theta, weights }: Net,
  loss: Tensor,
  optimiser: Optimiser,
  maxGradNorm: number,
): Updated => {
  const { names } = layout
  const slopes = gradients(
    loss,
    names.map((key) => weights[key]),
  )
  const gradient = layout.flatten(Object.fromEntries(names.map((key, index) => [key, slopes[index]])))
  return optimiser.update(theta, maxGradNorm > 0 ? clipGlobalNorm(gradient, maxGradNorm) : gradient)
}
