/**
 * Exports the parts of on-policy algorithms, with those that only some need: a bonus, a target network, auxiliary
 * tasks.
 */
export * from "./onPolicy.ts"
export { epsilonGreedy, epsilonSchedule, explorationFields, type ExplorationOptions } from "./exploration.ts"
export { onlyPlaying } from "./onlyPlaying.ts"
export { type AlgorithmsLoss, chosenLoss, type LossResult } from "./ownLoss.ts"
export { needsChoices } from "./requirements.ts"
export { withAuxiliary, withTarget } from "./rollout/features.ts"
export { type Bonus, type BonusColumns, type BonusRows, withBonus } from "./rollout/withBonus.ts"
export { type DemonstrationColumns, standardisedBy, withDemonstrations } from "./rollout/withDemonstrations.ts"
