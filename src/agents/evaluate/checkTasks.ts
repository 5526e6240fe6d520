/** Checks the tasks of an evaluation against its settings, before anything is played. */
import { Effect } from "effect"
import { choiceHint } from "../../base/config/closest.ts"
import { checkAll, ConfigError, type DecodeOptions } from "../../base/config/Config.ts"
import type { TaskSet } from "../task/TaskSet.ts"

/**
 * Fails if two tasks have the same id, because their rows could not be distinguished, or if no task has a key of `by` in its
 * metadata. It opens all tasks, which takes little of the time in which they are played. Tasks that cannot be opened are
 * skipped: they count as failed when they are played.
 */
export const checkTasks = Effect.fnUntraced(function* (
  tasks: TaskSet,
  { by }: { readonly by: ReadonlyArray<string> },
  from: DecodeOptions,
): Effect.fn.Return<void, ConfigError> {
  const places = new Map<string, number>()
  const twice = new Map<string, string>()
  const keys = new Set<string>()
  for (let index = 0; index < tasks.size; index++) {
    const task = yield* Effect.orElseSucceed(tasks.at(index), () => undefined)
    if (task === undefined) continue
    const earlier = places.get(task.id)
    if (earlier !== undefined && !twice.has(task.id)) twice.set(task.id, `tasks ${earlier} and ${index}`)
    places.set(task.id, earlier ?? index)
    for (const key of Object.keys(task.metadata)) keys.add(key)
  }
  const [same] = twice
  const unknown = tasks.size === 0 ? undefined : by.find((key) => !keys.has(key))
  const hint = (key: string): string => (keys.size === 0 ? "they have none" : choiceHint(key, [...keys].sort()))
  yield* checkAll([
    same === undefined
      ? Effect.void
      : ConfigError.at(
          from,
          "dataset",
          `expected tasks with different ids, found ${JSON.stringify(same[0])} for ${same[1]}`,
        ),
    unknown === undefined
      ? Effect.void
      : ConfigError.at(from, "by", `no task has the key "${unknown}" in its metadata; ${hint(unknown)}`),
  ])
})
