/**
 * Exports losses and targets: functions from tensors to tensors, each with its formula and paper. A loss is a scalar to
 * minimise; a target is the number that an estimated value is trained towards. They do not depend on how the data was
 * collected, so any learner can use them.
 *
 * @example
 * ```ts
 * import { Graph, Losses } from "effect-rl"
 *
 * const ratio_t = Graph.constant([0.9, 1.5])
 * const advantage_t = Graph.constant([1, 2])
 * const loss = Losses.clippedSurrogate({ ratio_t, advantage_t, epsilon: 0.2 }) // −(0.9 + 2.4) / 2
 * ```
 */
export * from "./adversarial.ts"
export * from "./critics.ts"
export * from "./dqnLosses.ts"
export * from "./intrinsicMotivation.ts"
export * from "./objectiveGraph.ts"
export * from "./offline.ts"
export * from "./policyGradient.ts"
export * from "./preferences.ts"
export * from "./qLearning.ts"
export * from "./tokenLosses.ts"
export { meanMetrics, type MetricSums } from "./tokenMetrics.ts"
export * from "./TokenObjective.ts"
export * from "./tokenWeights.ts"
export * from "./valueDistributions.ts"
