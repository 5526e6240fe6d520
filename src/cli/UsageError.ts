import { Schema } from "effect"

/** The command was used wrongly: exit code 2. */
export class UsageError extends Schema.TaggedError<UsageError>()("UsageError", { message: Schema.String }) {}
