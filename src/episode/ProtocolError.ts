import { Schema } from "effect"

/** The error if agents and env do not fit a protocol, e.g. nothing handles a tool, or a player has no agent. */
export class ProtocolError extends Schema.TaggedError<ProtocolError>()("ProtocolError", {
  protocol: Schema.String,
  /** The id of the rollout. */
  rollout: Schema.String,
  message: Schema.String,
  /** The stack trace of the exception, if the user's own code threw one. */
  userStack: Schema.optionalKey(Schema.String),
}) {}
