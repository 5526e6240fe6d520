/**
 * Many tasks, by their places: a data set is read where it is asked, so one of a million tasks takes no more memory than
 * one of ten.
 *
 * @example
 * ```ts
 * const tasks = TaskSet.of("digits", [one, two, three])
 * const env = yield* tasks.at(0)
 * ```
 */
import { Effect, Schema } from "effect"
import type { TextEnv } from "./TextEnv.ts"

/** A data set that can't be read, or holds what it shouldn't: the file, the line, what was found and expected. */
export class DatasetError extends Schema.TaggedError<DatasetError>()("DatasetError", {
  path: Schema.String,
  message: Schema.String,
}) {}

export interface TaskSet {
  readonly name: string
  readonly size: number
  /** Of its contents and of how they are read: runs of another one aren't gone on with. */
  readonly digest: string
  /** Counted from 0, and defined below `size`. */
  readonly at: (index: number) => Effect.Effect<TextEnv, DatasetError>
}

/** Tasks that are values already. The digest is of their ids and types. */
export const of = (name: string, envs: ReadonlyArray<TextEnv>, digest?: string): TaskSet => ({
  name,
  size: envs.length,
  digest: digest ?? JSON.stringify(envs.map(({ id, type }) => [type, id])),
  at: (index) => {
    const env = envs[index]
    return env === undefined
      ? Effect.fail(
          new DatasetError({ path: name, message: `${name}: there is no task ${index}; it has ${envs.length}` }),
        )
      : Effect.succeed(env)
  },
})
