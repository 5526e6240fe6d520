import { Schema } from "effect"

/**
 * An env that went wrong, or was used wrongly: it threw, it gave a reward or an observation that is not finite, or it
 * was handed an action that is none of its own. The message is one line that says which env, where and what.
 */
export class EnvError extends Schema.TaggedError<EnvError>()("EnvError", {
  /** The env's id. */
  env: Schema.String,
  message: Schema.String,
  /** Which of a batch. */
  index: Schema.optionalKey(Schema.Number),
  /** Counted from 0, as in the path of the episode's random stream. */
  episode: Schema.optionalKey(Schema.Number),
  /** Counted from 1; 0 is the reset. */
  step: Schema.optionalKey(Schema.Number),
  /** Where the env's own code threw. */
  userStack: Schema.optionalKey(Schema.String),
}) {}
