import { type RowSpace } from "../env/Space.ts"
import { orthogonal } from "../graph/initialisers.ts"
import { linear } from "../graph/layers.ts"
import { add, mean, reshape, sub } from "../graph/ops.ts"
import type { Tensor } from "../graph/Tensor.ts"
import { type Declarations, type NetworkConfig, networkFor, trunk, type Weights } from "./trunk.ts"

/** The options of networks that compute numbers for each action. */
export interface ActionHeadsOptions extends NetworkConfig {
  /** The beginning of the names of the parameters. @default "q" */
  readonly name?: string
  /** Takes the network that the user made for the critic, if it differs from the actor's. */
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

/**
 * Makes a trunk, then one linear layer, which computes `numbers` numbers for each action; a dueling network has a second
 * one for the state.
 */
export const actionHeads = (options: ActionHeadsOptions, numbers = 1): ActionHeads => {
  const { name = "q", role, observationSpace, actions, dueling } = options
  const each = numbers === 1 ? [] : [numbers]
  const body = trunk(name, observationSpace, options, networkFor(options, role))
  const advantage = linear(`${name}.${body.depth}`, body.outputs, actions * numbers, orthogonal(1))
  const value = dueling ? linear(`${name}.value`, body.outputs, numbers, orthogonal(1)) : undefined
  return {
    parameters: { ...body.parameters, ...advantage.parameters, ...value?.parameters },
    apply: (weights, observations) => {
      const features = body.apply(weights, observations)
      const [rows] = features.shape
      const advantages = reshape(advantage.apply(weights, features), [rows, actions, ...each])
      if (value === undefined) return advantages
      const values = reshape(value.apply(weights, features), [rows, 1, ...each])
      return add(values, sub(advantages, reshape(mean(advantages, 1), [rows, 1, ...each])))
    },
  }
}
