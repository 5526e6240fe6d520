/** Builds the parts of an algorithm's update as graphs: networks, gradient steps and sums of losses. */
import type { Effect } from "effect"
import { attempt } from "../../base/config/attempt.ts"
import { GraphError } from "../../tensor/graph/GraphError.ts"
import { gradients } from "../../tensor/graph/gradients.ts"
import { add, constant, greater, mul, state, sub, where } from "../../tensor/graph/ops.ts"
import { clipGlobalNorm, type Optimiser, type OptimiserUpdate } from "../../tensor/graph/optimisers.ts"
import type { ParameterLayout } from "../../tensor/graph/Parameters.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import type { Weights } from "../model/trunk.ts"

/**
 * Runs code that builds a graph; a GraphError that the code throws becomes a failure of the Effect.
 *
 * @example
 * ```ts
 * const network = build(() => Model.trunk("trunk", CartPole.env.observationSpace, networkConfig))
 * // Effect<Model.Trunk, GraphError>
 * ```
 */
export const build = <A>(body: () => A): Effect.Effect<A, GraphError> => attempt(body, GraphError)

/** A network in a program: its flat vector of parameters, and a tensor for each parameter by its name. */
export interface Net {
  /** The position of each parameter in `theta`. */
  readonly layout: ParameterLayout
  /** The flat vector of all parameters. */
  readonly theta: Tensor
  readonly weights: Weights
}

/**
 * Declares a program state of this name, which holds a network's parameters, and returns the network's tensors.
 *
 * @example
 * ```ts
 * const net = netOf(Parameters.layout(network.parameters), "theta")
 * network.evaluate(net.weights, observations)
 * ```
 */
export const netOf = (layout: ParameterLayout, name: string): Net => {
  const theta = state(name, [layout.size])
  return { layout, theta, weights: layout.tensorsOf(theta) }
}

/**
 * Builds one gradient step: takes the gradient of the loss, scales it down if its norm exceeds `maxGradNorm` (0 sets no
 * limit), and applies the optimiser. Returns the weights after it, and the optimiser's states with their next values.
 *
 * @example
 * ```ts
 * const net = netOf(Parameters.layout(network.parameters), "theta")
 * const { value } = network.evaluate(net.weights, observations)
 * const loss = Graph.mean(Graph.square(value))
 * const { next } = descend(net, loss, Optimisers.sgd({ size: net.layout.size, learningRate: 0.1 }), 0.5)
 * ```
 */
export const descend = (net: Net, loss: Tensor, optimiser: Optimiser, maxGradNorm: number): OptimiserUpdate =>
  follow(net, gradientOf(net, loss), optimiser, maxGradNorm)

/** Builds the gradient of a loss with respect to a network's parameters, as one flat vector. */
export const gradientOf = ({ layout, weights }: Net, loss: Tensor): Tensor => {
  const { names } = layout
  const slopes = gradients(
    loss,
    names.map((key) => weights[key]),
  )
  return layout.flatten(Object.fromEntries(names.map((key, index) => [key, slopes[index]])))
}

/** Builds the step against a gradient: the part of `descend` that comes after the gradient. */
export const follow = (
  { theta }: Pick<Net, "theta">,
  gradient: Tensor,
  optimiser: Optimiser,
  maxGradNorm: number,
): OptimiserUpdate => optimiser.update(theta, maxGradNorm > 0 ? clipGlobalNorm(gradient, maxGradNorm) : gradient)

/** Scales the changes of parameters that have their own learning rate, by that rate's share of the common rate. */
export const slowed = ({ layout, theta }: Net, shares: Readonly<Record<string, number>>, next: Tensor): Tensor =>
  Object.keys(shares).length === 0
    ? next
    : add(theta, mul(constant(layout.spread((name) => shares[name] ?? 1)), sub(next, theta)))

/**
 * Restricts a step to the parameters that are learned; the others keep their values, even if the optimiser would move
 * weights whose gradient is 0, as weight decay does.
 */
export const restricted = (
  { layout, theta }: Net,
  learns: ((parameter: string) => boolean) | undefined,
  next: Tensor,
): Tensor =>
  learns === undefined
    ? next
    : where(greater(constant(layout.spread((name) => (learns(name) ? 1 : 0))), 0), next, theta)

/** The result of a loss function: the number to minimise, and the metrics to report. */
export interface Loss {
  /** The scalar to minimise. */
  readonly loss: Tensor
  /** Scalars that are averaged over the minibatches of an update, by their names in TensorBoard. */
  readonly metrics: Readonly<Record<string, Tensor>>
  /** Ends the update at the first minibatch in which the scalar `value` exceeds `atMost`, and leaves that minibatch out. */
  readonly limit?: { readonly value: Tensor; readonly atMost: number } | undefined
}

/**
 * Returns the sum of losses, with the metrics of all of them. Only the first loss's `limit` applies.
 *
 * @example
 * ```ts
 * const value = { loss: Graph.constant(1), metrics: {} }
 * const both = addLosses(value, { loss: Graph.constant(2), metrics: { "losses/extra": Graph.constant(2) } })
 * both.loss // 3
 * ```
 */
export const addLosses = (first: Loss, ...others: ReadonlyArray<Loss>): Loss =>
  others.reduce(
    (sum, { loss, metrics }) => ({ ...sum, loss: add(sum.loss, loss), metrics: { ...sum.metrics, ...metrics } }),
    first,
  )
