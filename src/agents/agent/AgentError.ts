import { Schema } from "effect"

/**
 * Reports that an agent, a memory or a scorer cannot be made or cannot continue, usually because the user's code or data have
 * an error. The message is one line that names the agent, memory or scorer and tells what was expected.
 */
export class AgentError extends Schema.TaggedError<AgentError>()("AgentError", {
  /** The type of the agent or of the memory, with its name in configs; for a scorer, its name. */
  agent: Schema.String,
  message: Schema.String,
  /** The stack trace of the exception, if the user's own code threw one. */
  userStack: Schema.optionalKey(Schema.String),
}) {}
