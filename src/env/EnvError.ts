import { Schema } from "effect"

/**
 * An env failed or was used wrongly: its code threw, a reward or an observation is not finite, or an action is not in its
 * space. The message is one line that names the env, the step and the problem.
 */
export class EnvError extends Schema.TaggedError<EnvError>()("EnvError", {
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

/** Makes an error about an env as a whole, such as `CartPole-v1: step before reset`. */
export const invalid = (env: string, problem: string): EnvError => new EnvError({ env, message: `${env}: ${problem}` })

/** Throws an `EnvError` unless a value is a whole number of at least `least`; the message begins with `described`. */
export const checkWhole = (env: string, value: number, least: number, described: string): void => {
  if (Number.isInteger(value) && value >= least) return
  throw new EnvError({ env, message: `${described}; it must be a whole number of at least ${least}` })
}
