/**
 * Exports the parts of algorithms with a replay buffer: settings, the description of what they store, their learner,
 * and the steps of their updates.
 */
export type { Batch } from "./Batch.ts"
export { epsilonGreedy, epsilonSchedule, explorationFields, type ExplorationOptions } from "./exploration.ts"
export { build } from "./graphs.ts"
export { type AlgorithmsLoss, chosenLoss } from "./ownLoss.ts"
export { learningRateSetting } from "./parts.ts"
export { needsBoundedBox, needsChoices } from "./requirements.ts"
export { type Scheduled, scheduled, scheduleOf } from "./scheduled.ts"
export { checkSde, noiseSharing, ReplaySde, type ReplaySdeOptions } from "./stateDependent.ts"
export * from "./replay/fields.ts"
export type { Learning, Update } from "./replay/networks.ts"
export type { ActorOutputs, CriticOutputs, OwnReplayLoss } from "./replay/ownLosses.ts"
export * from "./replay/ReplayExperience.ts"
export { replayLearner } from "./replay/ReplayLearner.ts"
export { softUpdate } from "./replay/softUpdate.ts"
export { everyNth, gradientStep, polyak } from "./replay/steps.ts"
export { checkTemperature, temperature, temperatureFields } from "./replay/temperature.ts"
