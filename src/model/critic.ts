import { type Box, box, sizeOf } from "../env/Space.ts"
import { orthogonal } from "../graph/initialisers.ts"
import { linear } from "../graph/layers.ts"
import { concat, reshape } from "../graph/ops.ts"
import type { Tensor } from "../graph/Tensor.ts"
import { type Declarations, type NetworkConfig, trunk, type Weights } from "./trunk.ts"

/** A network that computes the value of one continuous action: from observations and actions to values of shape [rows]. */
export interface Critic {
  readonly parameters: Declarations
  readonly apply: (weights: Weights, observations: Tensor, actions: Tensor) => Tensor
}

/** Makes a critic: observation and action are joined and pass through a trunk and one linear layer. */
export const critic = (name: string, observationSpace: Box, actionSpace: Box, config: NetworkConfig): Critic => {
  const joined = box(-Infinity, Infinity, [sizeOf(observationSpace) + sizeOf(actionSpace)])
  const body = trunk(name, joined, config)
  const head = linear(`${name}.${body.depth}`, body.outputs, 1, orthogonal(1))
  return {
    parameters: { ...body.parameters, ...head.parameters },
    apply: (weights, observations, actions) => {
      const [rows] = observations.shape
      return reshape(head.apply(weights, body.apply(weights, concat([observations, actions], 1))), [rows])
    },
  }
}

/** Two critics with separate weights, of which the smaller value is used (Fujimoto et al. 2018, arXiv:1802.09477). */
export interface TwinCritics {
  readonly parameters: Declarations
  readonly apply: (weights: Weights, observations: Tensor, actions: Tensor) => readonly [Tensor, Tensor]
}

export const twinCritics = (observationSpace: Box, actionSpace: Box, config: NetworkConfig): TwinCritics => {
  const first = critic("critic1", observationSpace, actionSpace, config)
  const second = critic("critic2", observationSpace, actionSpace, config)
  return {
    parameters: { ...first.parameters, ...second.parameters },
    apply: (weights, observations, actions) => [
      first.apply(weights, observations, actions),
      second.apply(weights, observations, actions),
    ],
  }
}
