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
import { stream } from "../rng/Rng.ts"
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

export interface Order {
  readonly shuffle: boolean
  /** Of the shuffle: the same one is the same order. */
  readonly seed: number
  /** The first so many of that order; null: all. */
  readonly maxSamples: number | null
}

/** The places of an order of so many tasks, or undefined where it is all of them as they are. */
const placesOf = (size: number, { shuffle, seed, maxSamples }: Order): Int32Array | undefined => {
  const taken = maxSamples === null ? size : Math.min(size, maxSamples)
  if (shuffle) return stream(seed, "shuffle").permutation(new Int32Array(size)).subarray(0, taken)
  return taken === size ? undefined : Int32Array.from({ length: taken }, (_, index) => index)
}

/**
 * The tasks in another order, or fewer of them. `pick` chooses among those that are left.
 *
 * @example
 * ```ts
 * const some = TaskSet.ordered(tasks, { shuffle: true, seed: 42, maxSamples: 100 })
 * ```
 */
export const ordered = (tasks: TaskSet, order: Order, pick?: (place: number) => boolean): TaskSet => {
  let places = placesOf(tasks.size, order)
  if (pick !== undefined) places = (places ?? Int32Array.from({ length: tasks.size }, (_, index) => index)).filter(pick)
  if (places === undefined) return tasks
  const { length: size } = places
  const { shuffle, seed } = order
  return {
    name: tasks.name,
    size,
    digest: `${tasks.digest}:${shuffle ? seed : "in order"}:${size}`,
    // Past the end there is nothing, whatever lies there in the set that this is a part of.
    at: (index) => tasks.at(index < size ? places[index] : tasks.size),
  }
}
