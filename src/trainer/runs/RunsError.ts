import { Schema } from "effect"

/** The error of `Runs` as a whole: the output folder cannot be read, or no run came in time. One run's error is none. */
export class RunsError extends Schema.TaggedError<RunsError>()("RunsError", {
  path: Schema.String,
  message: Schema.String,
}) {}
