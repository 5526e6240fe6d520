import { Schema } from "effect"

/** The error if agents, env or user code do not fit a protocol: nothing handles a tool, a player has no agent … */
export class ProtocolError extends Schema.TaggedError<ProtocolError>()("ProtocolError", {
  protocol: Schema.String,
  /** The id of the rollout. */
  rollout: Schema.String,
  message: Schema.String,
  /** The stack trace of the exception, if the user's own code threw one. */
  userStack: Schema.optionalKey(Schema.String),
}) {}
