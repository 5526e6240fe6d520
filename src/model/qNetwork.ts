import type { Box } from "../env/Space.ts"
import { orthogonal } from "../graph/initialisers.ts"
import { linear } from "../graph/layers.ts"
import { add, mean, reshape, sub } from "../graph/ops.ts"
import type { Tensor } from "../graph/Tensor.ts"
import { type Declarations, type NetworkConfig, trunk, type Weights } from "./trunk.ts"

/** A network that computes the values of all discrete actions: from observations [rows, size] to values [rows, actions]. */
export interface QNetwork {
  readonly parameters: Declarations
  readonly apply: (weights: Weights, observations: Tensor) => Tensor
}

interface QNetworkOptions extends NetworkConfig {
  readonly observationSpace: Box
  /** The number of actions. */
  readonly actions: number
  /** Computes the values from a state value and advantages with mean 0 (Wang et al. 2015, arXiv:1511.06581). */
  readonly dueling: boolean
}

/**
 * Makes a Q-network: a trunk, then one linear layer; a dueling network has a second one for the state value.
 *
 * @example
 * ```ts
 * const { observationSpace } = CartPole.env
 * const network = qNetwork({ ...networkConfig, observationSpace, actions: 2, dueling: false })
 * Object.keys(network.parameters) // q.0.weight, q.0.bias, …
 * ```
 */
export const qNetwork = (options: QNetworkOptions): QNetwork => {
  const { observationSpace, actions, dueling } = options
  const body = trunk("q", observationSpace, options)
  const advantage = linear(`q.${body.depth}`, body.outputs, actions, orthogonal(1))
  const value = dueling ? linear("q.value", body.outputs, 1, orthogonal(1)) : undefined
  return {
    parameters: { ...body.parameters, ...advantage.parameters, ...value?.parameters },
    apply: (weights, observations) => {
      const features = body.apply(weights, observations)
      const advantages = advantage.apply(weights, features)
      if (value === undefined) return advantages
      const [rows] = features.shape
      return add(value.apply(weights, features), sub(advantages, reshape(mean(advantages, 1), [rows, 1])))
    },
  }
}
