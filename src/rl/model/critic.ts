/**
 * Makes networks that compute the values of actions: critics for continuous actions, and Q-networks for discrete ones.
 */
import { type Box, box, type RowSpace, sizeOf, tuple, unmasked } from "../env/Space.ts"
import { withoutForbidden } from "../../tensor/graph/distributions.ts"
import { orthogonal } from "../../tensor/graph/initialisers.ts"
import { linear } from "../../tensor/graph/layers.ts"
import { concat, reshape } from "../../tensor/graph/ops.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import { type ActionHeadsOptions, actionHeads, recurrentActionHeads } from "./actionHeads.ts"
import { emptyMemory, type Recall } from "./memory.ts"
import { maskOf, withoutMask } from "./observations.ts"
import { type Declarations, type NetworkConfig, networkFor, trunk, type Weights } from "./trunk.ts"

/**
 * A network that computes the value of one continuous action: from observations and actions to values of shape [rows], or to
 * several numbers for each action, such as quantiles, of shape [rows, outputs].
 */
export interface Critic {
  readonly parameters: Declarations
  readonly apply: (weights: Weights, observations: Tensor, actions: Tensor) => Tensor
}

/**
 * Makes a critic: observation and action are joined and pass through a trunk and one linear layer. `outputs` is the
 * number of numbers for each action.
 */
export const critic = (
  name: string,
  observationSpace: RowSpace,
  actionSpace: Box,
  config: NetworkConfig,
  outputs?: number,
): Critic => {
  const seen = unmasked(observationSpace)
  const joined =
    seen._tag === "Box"
      ? box(-Infinity, Infinity, [sizeOf(seen) + sizeOf(actionSpace)])
      : tuple(seen, box(-Infinity, Infinity, [sizeOf(actionSpace)]))
  const body = trunk(name, joined, config, networkFor(config, "critic"))
  const head = linear(`${name}.${body.depth}`, body.outputs, outputs ?? 1, orthogonal(1))
  return {
    parameters: { ...body.parameters, ...head.parameters },
    apply: (weights, observations, actions) => {
      const [rows] = observations.shape
      return reshape(
        head.apply(weights, body.apply(weights, concat([withoutMask(observationSpace, observations), actions], 1))),
        outputs === undefined ? [rows] : [rows, outputs],
      )
    },
  }
}

/** Critics with separate weights. TD3 and SAC use the smaller value of two (Fujimoto et al. 2018, arXiv:1802.09477). */
export interface Critics {
  readonly parameters: Declarations
  /** Returns the outputs of each critic. */
  readonly apply: (weights: Weights, observations: Tensor, actions: Tensor) => ReadonlyArray<Tensor>
}

/** Makes `count` critics, whose parameters begin with `critic1`, `critic2` and so on. See `critic` for `outputs`. */
export const critics = (
  count: number,
  observationSpace: RowSpace,
  actionSpace: Box,
  config: NetworkConfig,
  outputs?: number,
): Critics => {
  const all = Array.from({ length: count }, (_, index) =>
    critic(`critic${index + 1}`, observationSpace, actionSpace, config, outputs),
  )
  return {
    parameters: Object.fromEntries(all.flatMap(({ parameters }) => Object.entries(parameters))),
    apply: (weights, observations, actions) => all.map((one) => one.apply(weights, observations, actions)),
  }
}

/**
 * A network that computes the values of all discrete actions: from observations [rows, size] to values [rows, actions].
 * An action that the mask in the row forbids has a very low value, so that it is never the best.
 */
export interface QNetwork {
  readonly parameters: Declarations
  readonly apply: (weights: Weights, observations: Tensor) => Tensor
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
export const qNetwork = (options: ActionHeadsOptions): QNetwork => {
  const heads = actionHeads(options)
  return {
    parameters: heads.parameters,
    apply: (weights, observations) =>
      withoutForbidden(heads.apply(weights, observations), maskOf(options.observationSpace, observations)),
  }
}

/** A Q-network with a memory, whose values depend on the earlier observations of an episode too. */
export interface RecurrentQNetwork {
  readonly parameters: Declarations
  /** The number of elements of the memory before a sequence. */
  readonly memorySize: number
  /**
   * Computes the values of all actions for the observations [sequences × steps, size] of sequences, of shape
   * [sequences × steps, actions], and the memory after each sequence. Without `recall`, each row begins an episode.
   */
  readonly evaluate: (
    weights: Weights,
    observations: Tensor,
    recall?: Recall,
  ) => { readonly values: Tensor; readonly memory: Tensor }
}

/**
 * Makes a Q-network with an LSTM of `lstm` units between the trunk and the linear layers.
 *
 * @example
 * ```ts
 * const { observationSpace } = CartPole.env
 * recurrentQNetwork({ ...networkConfig, observationSpace, actions: 2, dueling: false, lstm: 64 }).memorySize // 128
 * ```
 */
export const recurrentQNetwork = (options: ActionHeadsOptions & { readonly lstm: number }): RecurrentQNetwork => {
  const heads = recurrentActionHeads(options)
  return {
    parameters: heads.parameters,
    memorySize: heads.memorySize,
    evaluate: (weights, observations, recall = emptyMemory(observations.shape[0], heads.memorySize)) => {
      const { values, memory } = heads.apply(weights, observations, recall)
      return { values: withoutForbidden(values, maskOf(options.observationSpace, observations)), memory }
    },
  }
}

/** Two Q-networks with separate weights; the smaller of their values counts. */
export interface TwinQNetworks {
  readonly parameters: Declarations
  readonly apply: (weights: Weights, observations: Tensor) => readonly [Tensor, Tensor]
}

/** Makes two Q-networks, whose parameters begin with `critic1` and `critic2`. */
export const twinQNetworks = (options: Omit<ActionHeadsOptions, "name" | "role">): TwinQNetworks => {
  const first = qNetwork({ ...options, name: "critic1", role: "critic" })
  const second = qNetwork({ ...options, name: "critic2", role: "critic" })
  return {
    parameters: { ...first.parameters, ...second.parameters },
    apply: (weights, observations) => [first.apply(weights, observations), second.apply(weights, observations)],
  }
}
