import { Schema } from "effect"

/** Reports a failure of one run's optimiser. Other runs are not affected. */
export class OptimiserError extends Schema.TaggedError<OptimiserError>()("OptimiserError", {
  /** The id of the run, or its index if there is no run. */
  run: Schema.String,
  message: Schema.String,
}) {
  /** Makes the error; its message begins with the run. */
  static of(run: string, problem: string): OptimiserError {
    return new OptimiserError({ run, message: `${run}: ${problem}` })
  }
}
