/**
 * Networks as values: each declares its parameters by name, and applies weights to observations. An `Actor` is a network
 * that a learner can act with.
 *
 * @example
 * ```ts
 * import { CartPole, Model } from "effect-rl"
 *
 * const network = Model.actorCritic({
 *   ...CartPole.env,
 *   hidden: [64, 64],
 *   activation: "tanh",
 *   convolutions: null,
 *   lstm: 0,
 * })
 * network.noiseSize // 1
 * ```
 */
export { asNumbers, outputsFor, toEnvAction } from "./actions.ts"
export type { Acted, Acting, Actor, Observing } from "./Actor.ts"
export {
  type ActorCritic,
  actorCritic,
  type ActorCriticKept,
  type ActorCriticOptions,
  type Evaluation,
  type Features,
} from "./ActorCritic.ts"
export { type Critic, critic, type TwinCritics, twinCritics } from "./critic.ts"
export type { DensePolicy } from "./DensePolicy.ts"
export { type Memory, memory, type Recall } from "./memory.ts"
export { type QNetwork, qNetwork, type QNetworkOptions } from "./qNetwork.ts"
export { type ScaledActions, scaledActions } from "./scaledActions.ts"
export {
  type Convolution,
  type Declarations,
  denseLayers,
  memoryFields,
  type NetworkConfig,
  networkFields,
  type Trunk,
  trunk,
  type Weights,
} from "./trunk.ts"
export { planner, Planning, planningFields } from "./valueIteration.ts"
