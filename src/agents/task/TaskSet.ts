/**
 * Defines sets of tasks, shuffles them and limits their number. A set can make its tasks on demand, to save memory.
 *
 * @example
 * ```ts
 * const tasks = TaskSet.of("digits", [one, two, three])
 * const env = yield* tasks.at(0)
 * ```
 */
import { Effect, Schema } from "effect"
import { stream } from "../../base/rng/Rng.ts"
import type { TextEnv } from "./TextEnv.ts"

/**
 * Reports that a data set can't be read or is invalid, or that the hub refuses a request to read data or to upload a model.
 * The message names the file, the line and what was expected, or what the user has to set.
 */
export class DatasetError extends Schema.TaggedError<DatasetError>()("DatasetError", {
  path: Schema.String,
  message: Schema.String,
}) {}

export interface TaskSet {
  readonly name: string
  readonly size: number
  /** The digest of the contents and of how they are read. A run cannot be resumed with another digest. */
  readonly digest: string
  /** Returns the task at an index from 0 to `size` − 1. */
  readonly at: (index: number) => Effect.Effect<TextEnv, DatasetError>
}

/** Makes the error for an index that is outside of a set of tasks. */
export const noTask = (name: string, index: number, size: number): DatasetError =>
  new DatasetError({ path: name, message: `${name}: there is no task ${index}; it has ${size}` })

/** Makes a set of tasks that are in memory. By default, its digest covers their ids and types. */
export const of = (name: string, envs: ReadonlyArray<TextEnv>, digest?: string): TaskSet => ({
  name,
  size: envs.length,
  digest: digest ?? JSON.stringify(envs.map(({ id, type }) => [type, id])),
  at: (index) => {
    const env = envs[index]
    return env === undefined ? Effect.fail(noTask(name, index, envs.length)) : Effect.succeed(env)
  },
})

export interface TaskOrder {
  readonly shuffle: boolean
  readonly seed: number
  /** The number of tasks to keep, from the beginning of the order; null keeps all. */
  readonly maxSamples: number | null
}

/** Returns the indices of the tasks in the new order, or undefined if all tasks are kept in their own order. */
const indicesOf = (size: number, { shuffle, seed, maxSamples }: TaskOrder): Int32Array | undefined => {
  const taken = maxSamples === null ? size : Math.min(size, maxSamples)
  if (shuffle) return stream(seed, "shuffle").permutation(new Int32Array(size)).subarray(0, taken)
  return taken === size ? undefined : Int32Array.from({ length: taken }, (_, index) => index)
}

/**
 * Shuffles tasks, and keeps the first `maxSamples` of the new order. Then keeps only tasks for which `pick` returns true; it
 * gets the index in the original set, and is called in the new order.
 *
 * @example
 * ```ts
 * const some = TaskSet.ordered(tasks, { shuffle: true, seed: 42, maxSamples: 100 })
 * ```
 */
export const ordered = (tasks: TaskSet, order: TaskOrder, pick?: (index: number) => boolean): TaskSet => {
  let indices = indicesOf(tasks.size, order)
  if (pick !== undefined)
    indices = (indices ?? Int32Array.from({ length: tasks.size }, (_, index) => index)).filter(pick)
  if (indices === undefined) return tasks
  const { length: size } = indices
  const { shuffle, seed } = order
  return {
    name: tasks.name,
    size,
    digest: `${tasks.digest}:${shuffle ? seed : "in order"}:${size}`,
    // An index past the end is not in this set, even if the inner set has more tasks.
    at: (index) => tasks.at(index < size ? indices[index] : tasks.size),
  }
}
