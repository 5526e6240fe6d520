/**
 * Makes data sets of `num_tasks` tasks, called levels, from games. Each level is drawn from its own random stream, so level 7
 * of a seed does not depend on the number of tasks.
 */
import { Effect, type Schema } from "effect"
import { bounded, withDefault } from "../../../base/config/fields.ts"
import { sha256 } from "../../../base/text/sha256.ts"
import { stream, type Stream } from "../../../base/rng/Rng.ts"
import { type DatasetKind, make as makeKind, orderFields } from "../DatasetKind.ts"
import { type DatasetError, noTask, ordered, type TaskSet } from "../TaskSet.ts"
import type { TextEnv } from "../TextEnv.ts"
import { utf8 } from "../../../base/text/utf8.ts"

/** The config keys of every game. `seed` seeds the tasks, and their order if they are shuffled. */
export const levelFields = {
  /** The number of tasks. */
  numTasks: withDefault(bounded("tasks"), 100),
  ...orderFields,
}

type Levels = Schema.Struct<typeof levelFields>["Type"] & { readonly type: string }

/** Makes the tasks of a game. `task` receives the index, an id, and the random stream of the task. */
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
        : Effect.fail(noTask(type, index, numTasks))
    return ordered({ name: type, size: numTasks, digest, at }, config)
  })

/** Makes a game's kind of data set. `task` makes the task of a level; levels are numbered from 1. */
export const levelKind = <S extends Schema.Codec<Levels, unknown>>(
  type: string,
  schema: S,
  task: (config: S["Type"], id: string, level: number, random: Stream) => TextEnv,
): DatasetKind =>
  makeKind({
    type,
    schema,
    open: (config) => levels(config, (index, id, random) => task(config, id, index + 1, random)),
  })

/** Draws an item of a list at random. */
export const oneOf = <A>(list: ReadonlyArray<A>, random: Stream): A => list[random.integer(list.length)]

/** Returns the list in a random order. */
export const shuffled = <A>(list: ReadonlyArray<A>, random: Stream): ReadonlyArray<A> =>
  Array.from(random.permutation(new Int32Array(list.length)), (index) => list[index])
