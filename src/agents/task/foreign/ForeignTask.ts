/**
 * Makes tasks in words from a program in any language, such as ALFWorld or TextWorld. The program reads and writes lines of
 * JSON, as docs/agents/foreign-tasks.md describes.
 *
 * @example
 * ```yaml
 * train_dataset: { type: foreign, id: adventure, command: [python3, adventure.py], options: { rooms: 5 }, num_tasks: 100 }
 * ```
 */
import { Effect, Schema } from "effect"
import { boundProblem } from "../../../base/config/bounds.ts"
import { ConfigError, type DecodeOptions, placeOf, toSnakeCase } from "../../../base/config/Config.ts"
import { bounded, positiveBelow, withDefault } from "../../../base/config/fields.ts"
import { sha256 } from "../../../base/text/sha256.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import { permit } from "../../../base/trust/Trust.ts"
import { type DatasetKind, make as makeKind, orderFields, orderOf } from "../DatasetKind.ts"
import { game } from "../games/aloud.ts"
import { noTask, ordered, type TaskSet } from "../TaskSet.ts"
import type { TextEnv } from "../TextEnv.ts"
import {
  type BegunEpisode,
  type TextProcess,
  type TextProgram,
  type TextProgramOptions,
  TextPrograms,
} from "./TextPrograms.ts"

const Config = Schema.Struct({
  type: withDefault(Schema.Literal("foreign"), "foreign"),
  /** The program that simulates the tasks, and its arguments. */
  command: Schema.NonEmptyArray(Schema.NonEmptyString),
  /** The name of the tasks, which the program also gets. */
  id: Schema.NonEmptyString,
  /** The options that the program gets. */
  options: withDefault(Schema.Record(Schema.String, Schema.Json), {}),
  /** The number of tasks; null uses all tasks that the program has. */
  numTasks: withDefault(Schema.NullOr(bounded("tasks")), null),
  /** Whether observations end with the list of the possible actions, if the program lists them. */
  showActions: withDefault(Schema.Boolean, true),
  /** The number of processes, which is also the number of episodes that are played at the same time. */
  processes: withDefault(bounded("programs"), 4),
  /** The number of seconds after which a request without a reply fails. */
  timeoutSeconds: withDefault(positiveBelow("seconds"), 60),
  /** The names of the environment variables that the program gets, besides `PATH`, `HOME` and others without secrets. */
  variables: Schema.optionalKey(Schema.Array(Schema.NonEmptyString)),
  ...orderFields,
})
/** Makes the task of a program with this number, from 0. */
const make = (
  program: TextProgram,
  { id, showActions }: { readonly id: string; readonly showActions: boolean },
  task: number,
): TextEnv => {
  const name = `${id}-${task + 1}`
  const maxSteps = program.description.maxSteps ?? undefined
  const shown = (observation: string, { actions }: Pick<BegunEpisode, "actions">): string => {
    const possible = showActions ? (actions ?? []) : []
    return possible.length === 0 ? observation : `${observation}\nPossible actions: ${possible.join(", ")}`
  }
  return game<{ readonly process: TextProcess; readonly steps: number }>({
    id: name,
    type: id,
    metadata: { task },
    ...(maxSteps !== undefined && { maxSteps }),
    begin: (random) =>
      Effect.gen(function* () {
        const process = yield* program.lend
        const begun = yield* process.reset(name, task, random.uint32())
        return { state: { process, steps: 0 }, observation: shown(begun.observation, begun) }
      }),
    step: ({ process, steps }, action) =>
      Effect.map(process.step(`${name}, step ${steps + 1}`, action), (stepped) => {
        const { observation, reward, done, truncated = false, message, target = null, actions, info } = stepped
        return {
          state: { process, steps: steps + 1 },
          observation: observation === null || done ? observation : shown(observation, stepped),
          feedback: { score: reward, target, message: message ?? observation?.split("\n")[0] ?? "" },
          terminated: done,
          truncated: truncated && !done,
          info: { ...info, ...(actions !== undefined && actions !== null && { actions }) },
        }
      }),
  })
}

/** Describes which tasks of a program are made, and on what their digest depends. */
interface WantedTasks {
  readonly showActions: boolean
  /** The number of tasks; null uses all that the program has. */
  readonly count: number | null
  readonly identity: object
}

/** Opens a program and makes its tasks. `keys` are the settings that errors name. */
export const openTasks = Effect.fnUntraced(function* (
  options: TextProgramOptions,
  { showActions, count: wanted, identity }: WantedTasks,
  from: DecodeOptions,
  keys: { readonly program: string; readonly count: string },
) {
  const { id, command, variables = [] } = options
  const program = yield* permit({
    _tag: "ProgramStart",
    place: placeOf(from, keys.program),
    command,
    variables,
    input: { id, options: toSnakeCase(options.options) },
  }).pipe(
    Effect.andThen(TextPrograms),
    Effect.flatMap(({ open }) => open(options)),
    Effect.mapError(({ message }) => ConfigError.at(from, keys.program, message)),
  )
  const size = program.description.tasks ?? wanted
  if (size === null) {
    const problem = "expected the number of tasks, because the program does not say how many it has"
    return yield* ConfigError.at(from, keys.count, problem)
  }
  if (wanted !== null && wanted > size) {
    return yield* ConfigError.at(from, keys.count, `the program has ${size} tasks, found ${wanted}`)
  }
  const count = wanted ?? size
  const problem = boundProblem("tasks", count)
  if (problem !== undefined) {
    return yield* ConfigError.at(from, keys.count, `${problem}, the number of tasks that the program has`)
  }
  const digest = yield* sha256(utf8.encode(JSON.stringify({ id, ...identity, ...program.description })))
  const tasks: TaskSet = {
    name: id,
    size: count,
    digest,
    at: (index) =>
      index >= 0 && index < count
        ? Effect.succeed(make(program, { id, showActions }, index))
        : Effect.fail(noTask(id, index, count)),
  }
  return tasks
})

export const kind: DatasetKind = makeKind({
  type: "foreign",
  schema: Config,
  open: (config, { from }) =>
    Effect.gen(function* () {
      const { id, command, options, processes, timeoutSeconds, variables = [], numTasks: count, showActions } = config
      const program = { id, command, options, processes, timeoutSeconds, variables }
      const keys = { program: "command", count: "numTasks" }
      const tasks = yield* openTasks(program, { showActions, count, identity: { options } }, from, keys)
      return ordered(tasks, orderOf(config))
    }),
})
