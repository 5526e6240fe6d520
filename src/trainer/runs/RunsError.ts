import { Schema } from "effect"

/**
 * Reports a failure of the service `Runs` itself: the output folder cannot be read, or no run was found in time. Failures of
 * single runs are not of this kind.
 */
export class RunsError extends Schema.TaggedError<RunsError>()("RunsError", {
  path: Schema.String,
  message: Schema.String,
}) {}
