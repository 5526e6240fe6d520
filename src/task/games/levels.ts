/**
 * Games as data sets: `num_tasks` tasks of a kind, each drawn from its own address, so that task 7 of a seed is the same one
 * however many there are.
 */
import { Effect } from "effect"
import { positiveInt, withDefault } from "../../config/fields.ts"
import { sha256 } from "../../config/sha256.ts"
import { stream, type Stream } from "../../rng/Rng.ts"
import { orderFields, orderOf } from "../DatasetKind.ts"
import { DatasetError, ordered, type Order, type TaskSet } from "../TaskSet.ts"
import type { TextEnv } from "../TextEnv.ts"
import { utf8 } from "../../config/utf8.ts"

/** The keys of every game; `seed` is that of the tasks, and of their order if they are shuffled. */
export const levelFields = {
  /** The number of tasks. */
  numTasks: withDefault(positiveInt, 100),
  ...orderFields,
}

export interface Levels extends Order {
  readonly type: string
  readonly numTasks: number
  readonly verbose: boolean
}

/** The tasks of a game: `task` is given the place, an id, and the chance that the task is drawn with. */
export const levels = (
  config: Levels,
  task: (index: number, id: string, random: Stream) => TextEnv,
): Effect.Effect<TaskSet, DatasetError> =>
  Effect.gen(function* () {
    const { verbose: _, ...settings } = config
    const { type, numTasks, seed } = config
    const digest = yield* sha256(utf8.encode(JSON.stringify(settings)))
    const at = (index: number): Effect.Effect<TextEnv, DatasetError> =>
      index >= 0 && index < numTasks
        ? Effect.sync(() => task(index, `${type}-${seed}-${index + 1}`, stream(seed, type, index)))
        : Effect.fail(
            new DatasetError({ path: type, message: `${type}: there is no task ${index}; it has ${numTasks}` }),
          )
    return ordered({ name: type, size: numTasks, digest, at }, orderOf(config))
  })

/** One of a list. */
export const oneOf = <A>(list: ReadonlyArray<A>, random: Stream): A => list[random.integer(list.length)]

/** The list in another order. */
export const shuffled = <A>(list: ReadonlyArray<A>, random: Stream): ReadonlyArray<A> =>
  Array.from(random.permutation(new Int32Array(list.length)), (index) => list[index])
