import { Schema } from "effect"

/**
 * Reports that an agent, a memory or a scorer cannot be made or cannot continue, mostly because code or data of the user
 * are not as expected. The message is one line that names it and says what was expected.
 */
export class AgentError extends Schema.TaggedError<AgentError>()("AgentError", {
  /** The type of the agent or of the memory, as in configs, or the name of the scorer. */
  agent: Schema.String,
  message: Schema.String,
  /** The stack trace of the exception, if the user's own code threw one. */
  userStack: Schema.optionalKey(Schema.String),
}) {}
