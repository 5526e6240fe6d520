import { type Box, sizeOf } from "../env/Space.ts"
import { orthogonal } from "../graph/initialisers.ts"
import { linear } from "../graph/layers.ts"
import { add, concat, mean, reshape, sub } from "../graph/ops.ts"
import type { Tensor } from "../graph/Tensor.ts"
import { box } from "../env/Space.ts"
import { type Declarations, type NetworkConfig, trunk, type Weights } from "./trunk.ts"

/** What each of n actions is worth: observations [rows, size] → [rows, n]. */
export interface QNetwork {
  readonly parameters: Declarations
  readonly apply: (weights: Weights, observations: Tensor) => Tensor
}

export interface QOptions extends NetworkConfig {
  readonly observationSpace: Box
  readonly actions: number
  /** Value and advantages apart (Wang et al. 2015, arXiv:1511.06581). */
  readonly dueling: boolean
}

export const qNetwork = (options: QOptions): QNetwork => {
  const { observationSpace, actions, dueling } = options
  const below = trunk("q", observationSpace, options)
  const advantages = linear(`q.${below.depth}`, below.outputs, actions, orthogonal(1))
  const value = dueling ? linear("q.value", below.outputs, 1, orthogonal(1)) : undefined
  return {
    parameters: { ...below.parameters, ...advantages.parameters, ...value?.parameters },
    apply: (weights, observations) => {
      const features = below.apply(weights, observations)
      const each = advantages.apply(weights, features)
      if (value === undefined) return each
      const [rows] = features.shape
      return add(value.apply(weights, features), sub(each, reshape(mean(each, 1), [rows, 1])))
    },
  }
}

/** What an action with real numbers is worth: observations and actions → [rows]. */
export interface Critic {
  readonly parameters: Declarations
  readonly apply: (weights: Weights, observations: Tensor, actions: Tensor) => Tensor
}

export const critic = (name: string, observationSpace: Box, actionSpace: Box, config: NetworkConfig): Critic => {
  const unbounded = Array.from({ length: sizeOf(observationSpace) + sizeOf(actionSpace) }, () => Infinity)
  const joined = box(
    unbounded.map((bound) => -bound),
    unbounded,
  )
  const below = trunk(name, joined, config)
  const head = linear(`${name}.${below.depth}`, below.outputs, 1, orthogonal(1))
  return {
    parameters: { ...below.parameters, ...head.parameters },
    apply: (weights, observations, actions) => {
      const [rows] = observations.shape
      return reshape(head.apply(weights, below.apply(weights, concat([observations, actions], 1))), [rows])
    },
  }
}
