import { Schema } from "effect"

/**
 * An env failed or was used wrongly: its code threw, a reward or an observation is not finite, or an action is not in its
 * space. The message is one line that names the env, the step and the problem.
 */
export class EnvError extends Schema.TaggedError<EnvError>()("EnvError", {
  /** The id of the env. */
  env: Schema.String,
  message: Schema.String,
  /** The index of the env in its batch. */
  index: Schema.optionalKey(Schema.Number),
  /** The number of the episode from 0, as in the path of its random stream. */
  episode: Schema.optionalKey(Schema.Number),
  /** The number of the step from 1; 0 is the reset. */
  step: Schema.optionalKey(Schema.Number),
  /** The stack of the error that the env's own code threw. */
  userStack: Schema.optionalKey(Schema.String),
}) {}
