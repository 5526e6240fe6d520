/**
 * Exports the parts of this folder from which algorithms are made, for users of the package. An experience describes
 * how an algorithm acts and what it stores. An on-policy algorithm makes an `experience` and gives it to
 * `rolloutLearner` with its losses; an off-policy algorithm makes a `replayExperience` and gives it to `replayLearner`
 * with its update. Further functions add features: `withTarget`, `withBonus`, `withDemonstrations` and `withAuxiliary`
 * to an experience, `withTargets`, `withPriorities` and `withSequences` to a replay experience.
 *
 * `examples/own-parts/own-algorithm.ts` shows the whole path of an algorithm, from the network to the update, in 36
 * lines. In `src/rl/algorithms/rollouts/A2c.ts`, `actorCriticLearner` does these steps. Both files work in your project
 * if you import everything from `effect-rl`.
 *
 * @example
 * ```ts
 * import { Effect } from "effect"
 * import { Algorithm, Learner, Losses, Model, Optimisers, Schedules } from "effect-rl"
 *
 * const reinforce = Effect.fnUntraced(function* (config: { readonly learningRate: number }, task: Algorithm.Task) {
 *   const network = yield* Learner.build(() =>
 *     Model.actorCritic({ ...task, hidden: [32], activation: "tanh", convolutions: null, lstm: 0 }),
 *   )
 *   const returns = { gamma: 0.99, lambda: 1 }
 *   const rollout = Learner.experience({ name: "reinforce", task, actor: network, steps: 100, returns })
 *   return Learner.rolloutLearner(rollout, {
 *     learningRate: Schedules.linear(config.learningRate),
 *     phases: [
 *       {
 *         name: "update",
 *         epochs: 1,
 *         minibatches: 1,
 *         maxGradNorm: 0.5,
 *         optimiser: Optimisers.adam,
 *         loss: ({ batch, weights }) => {
 *           const { distribution } = network.evaluate(weights, batch.observations)
 *           const logProbability_t = distribution.logProbability(batch.actions)
 *           return { loss: Losses.policyGradient({ logProbability_t, advantage_t: batch.advantages }), metrics: {} }
 *         },
 *       },
 *     ],
 *   })
 * })
 * ```
 */
export { Averages } from "./Averages.ts"
export * from "./Batch.ts"
export { type Awaited, drive, type Steps, waitFor } from "./drive.ts"
export * from "./graphs.ts"
export { onlyPlaying } from "./onlyPlaying.ts"
export { epsilonGreedy, epsilonSchedule, explorationFields, type ExplorationOptions } from "./exploration.ts"
export { type AlgorithmsLoss, chosenLoss, type LossResult } from "./ownLoss.ts"
export * from "./parts.ts"
export { needsBoundedBox, needsChoices, needsImagesAndChoices } from "./requirements.ts"
export {
  type CourseOfNumber,
  type Scheduled,
  scheduled,
  type ScheduledInputs,
  scheduleOf,
  withInputs,
} from "./scheduled.ts"
export {
  checkSde,
  deviationFields,
  type DeviationOptions,
  noiseSharing,
  ReplaySde,
  type ReplaySdeOptions,
  Sde,
  type SdeOptions,
} from "./stateDependent.ts"
export * from "./replay/fields.ts"
export type { ReplayColumns, ReplayExperience, SequenceColumns, SequenceLengths } from "./replay/ReplayExperience.ts"
export { replayExperience, withPriorities, withSequences, withTargets } from "./replay/ReplayExperience.ts"
export type { ActorOutputs, CriticOutputs, OwnReplayLoss, TransitionBatch } from "./replay/ownLosses.ts"
export { type SoftLosses, softUpdate } from "./replay/softUpdate.ts"
export { checkTemperature, temperature, temperatureFields } from "./replay/temperature.ts"
export { type Learning, type Update } from "./replay/networks.ts"
export { offlineLearner } from "./replay/OfflineLearner.ts"
export { replayLearner } from "./replay/ReplayLearner.ts"
export { everyNth, gradientStep, polyak } from "./replay/steps.ts"
export * from "./rollout/Experience.ts"
export * from "./rollout/fields.ts"
export * from "./search/fields.ts"
export { searchLearner, type SearchLearnerOptions } from "./search/SearchLearner.ts"
export type { SearchColumns } from "./search/searchRollout.ts"
export * from "./search/TreeSearch.ts"
export type { BaseColumns, Rollout } from "./rollout/RolloutData.ts"
export { type DescribedLearner, rolloutLearner, type RolloutUpdate } from "./rollout/DescribedLearner.ts"
export { learnerOf } from "./learnerOf.ts"
export {
  applied,
  lossWith,
  type LossOutputs,
  type LossBatch,
  type OwnLoss,
  type PolicyAndValue,
} from "./rollout/ownLoss.ts"
export type { AnyPhase, Minibatch, Phase, SteppingPhase } from "./rollout/Phase.ts"
export { actorCriticLearner } from "./rollout/actorCriticLearner.ts"
export { type Auxiliary, type AuxiliaryMemory, withAuxiliary, withTarget } from "./rollout/features.ts"
export * from "./rollout/withBonus.ts"
export * from "./rollout/withDemonstrations.ts"
