import { Schema } from "effect"

/** Runs that cannot be asked for like this. The message is one line for people. */
export class RunsError extends Schema.TaggedError<RunsError>()("RunsError", { message: Schema.String }) {}
