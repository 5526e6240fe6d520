import { Schema } from "effect"

/** Agents and env do not fit a protocol, e.g. nothing handles a tool call, or a player has no agent. */
export class ProtocolError extends Schema.TaggedError<ProtocolError>()("ProtocolError", {
  protocol: Schema.String,
  /** The id of the rollout. */
  rollout: Schema.String,
  message: Schema.String,
  /** The stack of the user's own code that threw. */
  userStack: Schema.optionalKey(Schema.String),
}) {}
