/** Makes Q-networks, which compute the values of all discrete actions: a trunk, maybe a memory, and linear heads. */
import { type RowSpace } from "../env/Space.ts"
import { withoutForbidden } from "../../tensor/graph/distributions.ts"
import { orthogonal } from "../../tensor/graph/initialisers.ts"
import { linear } from "../../tensor/graph/layers.ts"
import { add, mean, reshape, sub } from "../../tensor/graph/ops.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import { emptyMemory, memory, type Recall } from "./memory.ts"
import { maskOf } from "./observations.ts"
import { type Declarations, type NetworkConfig, networkFor, type Trunk, trunk, type Weights } from "./trunk.ts"

/** The options of networks that compute numbers for each action. */
export interface ActionHeadsOptions extends NetworkConfig {
  /** The prefix of the names of the parameters. @default "q" */
  readonly name?: string
  /** If set, takes the critic's network from the user's setting `network`, if it has one for each role. */
  readonly role?: "critic"
  readonly observationSpace: RowSpace
  /** The number of actions. */
  readonly actions: number
  /** Whether values are the sum of a state value and of advantages with mean 0 (Wang et al. 2015, arXiv:1511.06581). */
  readonly dueling: boolean
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
  const body = bodyOf(options)
  const lstm = memory(`${nameOf(options)}.memory`, body.outputs, options.lstm)
  const heads = headsOver(options, body, lstm.outputs, 1)
  return {
    parameters: { ...body.parameters, ...lstm.parameters, ...heads.parameters },
    memorySize: lstm.size,
    evaluate: (weights, observations, recall = emptyMemory(observations.shape[0], lstm.size)) => {
      const { features, memory: after } = lstm.apply(weights, body.apply(weights, observations), recall)
      const values = heads.apply(weights, features)
      return { values: withoutForbidden(values, maskOf(options.observationSpace, observations)), memory: after }
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

/** The part of a network that computes numbers for each action, without the action masks. */
interface ActionHeads {
  readonly parameters: Declarations
  /** Computes [rows, actions], or [rows, actions, numbers] if an action has more than one number. */
  readonly apply: (weights: Weights, observations: Tensor) => Tensor
}

/**
 * Makes a trunk, then one linear layer, which computes `numbers` numbers for each action; a dueling network has a second
 * one for the state.
 */
export const actionHeads = (options: ActionHeadsOptions, numbers = 1): ActionHeads => {
  const body = bodyOf(options)
  const heads = headsOver(options, body, body.outputs, numbers)
  return {
    parameters: { ...body.parameters, ...heads.parameters },
    apply: (weights, observations) => heads.apply(weights, body.apply(weights, observations)),
  }
}

const nameOf = ({ name = "q" }: ActionHeadsOptions): string => name

const bodyOf = (options: ActionHeadsOptions): Trunk =>
  trunk(nameOf(options), options.observationSpace, options, networkFor(options, options.role))

/** Makes the linear layers after a trunk: from features to `numbers` numbers for each action. */
const headsOver = (options: ActionHeadsOptions, { depth }: Trunk, inputs: number, numbers: number): ActionHeads => {
  const { actions, dueling } = options
  const name = nameOf(options)
  const each = numbers === 1 ? [] : [numbers]
  const advantage = linear(`${name}.${depth}`, inputs, actions * numbers, orthogonal(1))
  const value = dueling ? linear(`${name}.value`, inputs, numbers, orthogonal(1)) : undefined
  return {
    parameters: { ...advantage.parameters, ...value?.parameters },
    apply: (weights, features) => {
      const [rows] = features.shape
      const advantages = reshape(advantage.apply(weights, features), [rows, actions, ...each])
      if (value === undefined) return advantages
      const values = reshape(value.apply(weights, features), [rows, 1, ...each])
      return add(values, sub(advantages, reshape(mean(advantages, 1), [rows, 1, ...each])))
    },
  }
}
