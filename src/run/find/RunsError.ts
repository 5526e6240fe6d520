import { Schema } from "effect"

/** The error of a query of runs that cannot be answered. Its message is one line for users. */
export class RunsError extends Schema.TaggedError<RunsError>()("RunsError", { message: Schema.String }) {}
