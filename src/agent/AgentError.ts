import { Schema } from "effect"

/** An agent cannot be made or cannot continue; the message is one line. */
export class AgentError extends Schema.TaggedError<AgentError>()("AgentError", {
  /** The type of the agent. */
  agent: Schema.String,
  message: Schema.String,
  /** The stack of the user's own code that threw. */
  userStack: Schema.optionalKey(Schema.String),
}) {}
