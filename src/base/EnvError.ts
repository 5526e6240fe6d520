/** Defines the error of envs, batches, spaces and wrappers, and functions that make or throw it. */
import * as Schema from "effect/Schema"
import { closest } from "./text/closest.ts"

/**
 * Reports that an env failed or was used wrongly: its code threw, a reward or an observation is not finite, an action
 * is not in its space, or an option is wrong. The message is one line that names the env and the problem, and also the
 * episode and the step if the error happened in an episode.
 */
export class EnvError extends Schema.TaggedError<EnvError>()("EnvError", {
  env: Schema.String,
  message: Schema.String,
  /** The index of the env in its batch. */
  index: Schema.optionalKey(Schema.Number),
  /** The number of the env's episode, counted from 0; absent if the error happened outside an episode. */
  episode: Schema.optionalKey(Schema.Number),
  /** The number of the step from 1; 0 is the reset. */
  step: Schema.optionalKey(Schema.Number),
  /** The stack of the error that the env's own code threw. */
  userStack: Schema.optionalKey(Schema.String),
}) {}

/** Makes an error about an env as a whole, such as `CartPole-v1: step before reset`. */
export const invalid = (env: string, problem: string): EnvError => new EnvError({ env, message: `${env}: ${problem}` })

/**
 * Throws an `EnvError` unless `value` is whole and at least `least`. Its message begins with `described`, such as
 * `KeyDoor: 1 rooms`.
 */
export const checkWhole = (env: string, value: number, least: number, described: string): void => {
  if (Number.isInteger(value) && value >= least) return
  throw new EnvError({ env, message: `${described}; it must be a whole number of at least ${least}` })
}

/**
 * Throws an `EnvError` if an env's options have a key that their Schema lacks. Configs are checked before, but
 * JavaScript code can pass any key.
 */
export const checkOptions = (
  name: string,
  options: object,
  { fields }: { readonly fields: Readonly<Record<string, unknown>> },
): void => {
  const unknown = Object.keys(options).find((key) => !Object.hasOwn(fields, key))
  if (unknown === undefined) return
  const near = closest(unknown, Object.keys(fields))
  const hint = near === undefined ? `its options are ${Object.keys(fields).join(", ")}` : `did you mean "${near}"?`
  throw new EnvError({ env: name, message: `${name}.make: unknown option "${unknown}"; ${hint}` })
}
