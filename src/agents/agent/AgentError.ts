import { Schema } from "effect"

/** Reports that an agent, or a memory, cannot be made or cannot continue. The message is one line. */
export class AgentError extends Schema.TaggedError<AgentError>()("AgentError", {
  /** The type of the agent or of the memory, as in configs. */
  agent: Schema.String,
  message: Schema.String,
  /** The stack trace of the exception, if the user's own code threw one. */
  userStack: Schema.optionalKey(Schema.String),
}) {}
