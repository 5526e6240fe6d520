/**
 * Makes networks. A network is a value without weights: it declares its parameters by name, and builds the graph from
 * weights and observations to its outputs. An `Actor` is a network with which a learner can choose actions.
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
export * from "./actions.ts"
export type * from "./Actor.ts"
export * from "./ActorCritic.ts"
export * from "./batchRenorm.ts"
export * from "./critic.ts"
export * from "./memory.ts"
export * from "./noisy.ts"
export * from "./observations.ts"
export {
  type QNetwork,
  qNetwork,
  type RecurrentQNetwork,
  recurrentQNetwork,
  type TwinQNetworks,
  twinQNetworks,
} from "./qNetwork.ts"
export * from "./stateDependentNoise.ts"
export * from "./trunk.ts"
export * from "./valueDistribution.ts"
export * from "./valueIteration.ts"
