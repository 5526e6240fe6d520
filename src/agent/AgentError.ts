import { Schema } from "effect"

/** The error for an agent that cannot be made or cannot continue. The message is one line. */
export class AgentError extends Schema.TaggedError<AgentError>()("AgentError", {
  /** The type of the agent. */
  agent: Schema.String,
  message: Schema.String,
  /** The stack trace of the exception, if the user's own code threw one. */
  userStack: Schema.optionalKey(Schema.String),
}) {}
