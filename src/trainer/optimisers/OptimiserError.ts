import { Schema } from "effect"

/** The error of one run's optimiser. The runs of the other indices are not affected by it. */
export class OptimiserError extends Schema.TaggedError<OptimiserError>()("OptimiserError", {
  /** The id of the run, or its index if there is no run. */
  run: Schema.String,
  message: Schema.String,
}) {
  /** Makes the error with a message that begins with the run. */
  static of(run: string, problem: string): OptimiserError {
    return new OptimiserError({ run, message: `${run}: ${problem}` })
  }
}
