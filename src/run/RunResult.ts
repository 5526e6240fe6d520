import { Schema } from "effect"

/** The summary of one validation. */
export const ValidationSummary = Schema.Struct({
  step: Schema.Int,
  episodes: Schema.Int,
  meanReturn: Schema.Finite,
  stdReturn: Schema.Finite,
})
export type ValidationSummary = typeof ValidationSummary.Type

/** The result of a training, which `--json` prints. */
export const RunResult = Schema.Struct({
  runDir: Schema.String,
  steps: Schema.Int,
  episodes: Schema.Int,
  /** Mean return of all training episodes; null before the first one ends. */
  meanScore: Schema.NullOr(Schema.Finite),
  /** Mean return of the last 100 training episodes. */
  meanReturn: Schema.NullOr(Schema.Finite),
  /** The last validation. */
  validation: Schema.NullOr(ValidationSummary),
  /** Validations that failed; run.log says why. */
  failedValidations: Schema.Int,
  /** SHA-256 over the final weights and all scores. */
  digest: Schema.String,
  wallSeconds: Schema.Finite,
  stepsPerSecond: Schema.Finite,
})
export type RunResult = typeof RunResult.Type
