import { Schema } from "effect"

/** A scorer of the user's own that threw. */
export class ScorerError extends Schema.TaggedError<ScorerError>()("ScorerError", {
  scorer: Schema.String,
  message: Schema.String,
  /** Where the user's own code threw. */
  userStack: Schema.optionalKey(Schema.String),
}) {}
