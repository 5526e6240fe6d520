import { Schema } from "effect"

/** A file of rollouts that can't be read, written or gone on with; the message is one line, and names file and line. */
export class RolloutsError extends Schema.TaggedError<RolloutsError>()("RolloutsError", {
  path: Schema.String,
  /** From 1; null where it is about the file as a whole. */
  line: Schema.NullOr(Schema.Int),
  message: Schema.String,
}) {}
