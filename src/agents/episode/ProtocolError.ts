import { Schema } from "effect"

/**
 * Reports that an episode cannot be played: the agents, the env or the user's code do not fit the protocol, e.g. a player has
 * no agent.
 */
export class ProtocolError extends Schema.TaggedError<ProtocolError>()("ProtocolError", {
  protocol: Schema.String,
  /** The id of the rollout that could not be completed. */
  rollout: Schema.String,
  message: Schema.String,
  /** The stack trace of the exception, if the user's own code threw one. */
  userStack: Schema.optionalKey(Schema.String),
}) {}
