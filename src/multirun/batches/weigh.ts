/**
 * Computes the factors of tokens in the loss of a step. They depend only on the samples of the run's own step, not on
 * how the samples are divided into micro-batches or on other runs, so the sum of a step's losses is always the same.
 *
 * @example
 * ```ts
 * tokenMean({ trained: 10, length: 30 }, { samples: 4, trained: 50, tokens: 120 }) // 1/50
 * sequenceMean({ trained: 10, length: 30 }, { samples: 4, trained: 50, tokens: 120 }) // 1/(4·10)
 * ```
 */

/** The sizes of one sample. */
export interface SampleSize {
  /** The number of tokens to learn from. */
  readonly trained: number
  readonly length: number
}

/** The sizes of all samples of a run's step. */
export interface StepSize {
  readonly samples: number
  /** The number of tokens to learn from. */
  readonly trained: number
  readonly tokens: number
}

/** Returns the factor in the loss of each token that a sample's mask selects. */
export type Weigh = (sample: SampleSize, step: StepSize) => number

/** Averages over all tokens of the step, as DAPO does, so that long samples count more. */
export const tokenMean: Weigh = (_, step) => 1 / step.trained

/** Averages over the tokens of each sample and then over the samples of the step, as GRPO does. */
export const sequenceMean: Weigh = (sample, step) => 1 / (step.samples * sample.trained)

/** Divides the sum over each sample by a constant, and averages over the samples of the step, as Dr. GRPO does. */
export const constantLength =
  (tokens: number): Weigh =>
  (_, step) =>
    1 / (step.samples * tokens)
