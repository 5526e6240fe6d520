/** Checks the tasks of an evaluation against its settings, before anything is played. */
import { Effect } from "effect"
import { choiceHint } from "../../base/text/closest.ts"
import { checkAll, ConfigError, type DecodeOptions, display } from "../../base/config/Config.ts"
import type { TaskSet } from "../task/TaskSet.ts"
import { labelValue } from "./report/judgeAgreement.ts"

/** The keys of the tasks' metadata that an evaluation uses. */
interface TaskKeys {
  /** The keys for whose values means are reported. */
  readonly by: ReadonlyArray<string>
  /** The label of each scorer; undefined for a scorer without one. */
  readonly labels?: ReadonlyArray<string | undefined>
}

/**
 * Fails if two tasks have the same id, because their rows could not be distinguished, if no task has a key of `by` or the label
 * of a judge in its metadata, or if a label is no score. It opens all tasks, which takes little of the time in which they are played. Tasks that cannot be opened are
 * skipped: they count as failed when they are played.
 */
export const checkTasks = Effect.fnUntraced(function* (
  tasks: TaskSet,
  { by, labels = [] }: TaskKeys,
  from: DecodeOptions,
): Effect.fn.Return<void, ConfigError> {
  const places = new Map<string, number>()
  const twice = new Map<string, string>()
  const keys = new Set<string>()
  const wrongLabels = new Map<string, string>()
  for (let index = 0; index < tasks.size; index++) {
    const task = yield* Effect.orElseSucceed(tasks.at(index), () => undefined)
    if (task === undefined) continue
    const earlier = places.get(task.id)
    if (earlier !== undefined && !twice.has(task.id)) twice.set(task.id, `tasks ${earlier} and ${index}`)
    places.set(task.id, earlier ?? index)
    for (const key of Object.keys(task.metadata)) keys.add(key)
    for (const key of labels) {
      if (key === undefined || wrongLabels.has(key) || labelValue(task.metadata[key]) !== null) continue
      wrongLabels.set(key, `${display(task.metadata[key])} for task ${display(task.id)}`)
    }
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
    ...labels.map((key, at) => {
      if (key === undefined || tasks.size === 0) return Effect.void
      const refuse = (problem: string) => ConfigError.at(from, `scorers.${at}.label`, problem)
      if (!keys.has(key)) return refuse(`no task has the key "${key}" in its metadata; ${hint(key)}`)
      const wrong = wrongLabels.get(key)
      return wrong === undefined
        ? Effect.void
        : refuse(`expected labels that are numbers, true or false, found ${wrong}`)
    }),
  ])
})
