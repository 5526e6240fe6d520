import { Schema } from "effect"

/** A query of runs that cannot be answered. The message is one line for people. */
export class RunsError extends Schema.TaggedError<RunsError>()("RunsError", { message: Schema.String }) {}
