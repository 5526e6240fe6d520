/** Makes the layers of networks that compute numbers for each action: a trunk, maybe a memory, and linear heads. */
import { type RowSpace } from "../env/Space.ts"
import { orthogonal } from "../../tensor/graph/initialisers.ts"
import { linear } from "../../tensor/graph/layers.ts"
import { add, mean, reshape, sub } from "../../tensor/graph/ops.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import { memory, type Recall } from "./memory.ts"
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

/** The part of a network that computes numbers for each action, without the action masks. */
interface ActionHeads {
  readonly parameters: Declarations
  /** Computes [rows, actions], or [rows, actions, numbers] if an action has more than one number. */
  readonly apply: (weights: Weights, observations: Tensor) => Tensor
}

/** The part of a network with a memory that computes a number for each action, without the action masks. */
interface RecurrentActionHeads {
  readonly parameters: Declarations
  /** The number of elements of the memory before a sequence. */
  readonly memorySize: number
  /** Computes [sequences × steps, actions], and the memory after each sequence. */
  readonly apply: (
    weights: Weights,
    observations: Tensor,
    recall: Recall,
  ) => { readonly values: Tensor; readonly memory: Tensor }
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

/** Makes the layers of `actionHeads` with an LSTM of `lstm` units between the trunk and the heads. */
export const recurrentActionHeads = (options: ActionHeadsOptions & { readonly lstm: number }): RecurrentActionHeads => {
  const body = bodyOf(options)
  const lstm = memory(`${nameOf(options)}.memory`, body.outputs, options.lstm)
  const heads = headsOver(options, body, lstm.outputs, 1)
  return {
    parameters: { ...body.parameters, ...lstm.parameters, ...heads.parameters },
    memorySize: lstm.size,
    apply: (weights, observations, recall) => {
      const { features, memory: after } = lstm.apply(weights, body.apply(weights, observations), recall)
      return { values: heads.apply(weights, features), memory: after }
    },
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
