/** Writes which weights an answer came from. It only computes. */
import type { WeightsUsed } from "../inference/Engine.ts"

/** Returns the weights in an answer's own key `weights`. */
export const weightsBody = ({ model, step, baseStep }: WeightsUsed) => ({ model, step, base_step: baseStep })

/**
 * Returns the `system_fingerprint` of an answer: the model and its training step, e.g. `run_a@12`. The choices of one
 * answer may come from different steps, if weights were loaded between their beginnings: `run_a@12+run_a@13`.
 */
export const fingerprint = (used: Iterable<WeightsUsed>): string =>
  [...new Set(Array.from(used, ({ model, step }) => `${model}@${step}`))].join("+")
