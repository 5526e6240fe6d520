import { Schema } from "effect"

/** An agent that can't be made, or can't go on; the message is one line. */
export class AgentError extends Schema.TaggedError<AgentError>()("AgentError", {
  /** Its type. */
  agent: Schema.String,
  message: Schema.String,
  /** Where the user's own code threw. */
  userStack: Schema.optionalKey(Schema.String),
}) {}
