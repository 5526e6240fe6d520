import { Schema } from "effect"

/** Agents and env that can't talk by a protocol: calls that nobody answers, a player that isn't there … */
export class ProtocolError extends Schema.TaggedError<ProtocolError>()("ProtocolError", {
  protocol: Schema.String,
  /** The rollout. */
  rollout: Schema.String,
  message: Schema.String,
  /** Where the user's own code threw. */
  userStack: Schema.optionalKey(Schema.String),
}) {}
