/**
 * Exports the parts of every on-policy algorithm: settings, the description of its rollouts and of its learner, and the
 * types of its loss. `withFeatures.ts` adds parts that only some algorithms have, such as a bonus.
 */
export type { Batch } from "./Batch.ts"
export { addLosses, build, type Loss, type Net } from "./graphs.ts"
export * from "./parts.ts"
export { type Scheduled, scheduled } from "./scheduled.ts"
export { checkSde, deviationFields, type DeviationOptions, noiseSharing } from "./stateDependent.ts"
export { type ColumnsOf, experience } from "./rollout/Experience.ts"
export * from "./rollout/fields.ts"
export { rolloutLearner } from "./rollout/DescribedLearner.ts"
export type { Minibatch, Phase } from "./rollout/Phase.ts"
export type { BaseColumns } from "./rollout/RolloutData.ts"
export { applied, type AppliedLoss, type OwnLoss } from "./rollout/ownLoss.ts"
export { actorCriticLearner } from "./rollout/actorCriticLearner.ts"
