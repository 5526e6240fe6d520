/** Formats the end of an answer, and the weights that generated it. These are pure functions. */
import type { Generated, WeightsUsed } from "../inference/Engine.ts"

/** Returns the content of an answer's key `weights`, which is our own extension. */
export const weightsBody = ({ model, step, baseStep }: WeightsUsed) => ({ model, step, base_step: baseStep })

/**
 * Returns the `system_fingerprint` of an answer: the model and its training step, e.g. `run_a@12`. If weights were loaded
 * between the beginnings of two choices, an answer has both: `run_a@12+run_a@13`.
 */
export const fingerprint = (used: Iterable<WeightsUsed>): string =>
  [...new Set(Array.from(used, ({ model, step }) => `${model}@${step}`))].join("+")

/** Returns the keys of a choice that say why it ended, and which weights generated it. */
export const ending = ({ finishReason, stopReason, weights }: Generated) => ({
  finish_reason: finishReason,
  stop_reason: stopReason,
  weights: weightsBody(weights),
})
