/**
 * Makes tasks from folders in Harbor's format (`type: harbor`), for tasks that need no container. The agent works in a scratch
 * folder, by the tools `list_files`, `read_file` and `write_file`, or its answer becomes a file. Then the task's own verifier
 * runs there, and its reward is the score.
 *
 * @example
 * ```yaml
 * dataset:
 *   type: harbor
 *   dataset_path: tasks # a folder of tasks, or one task
 *   answer_file: /app/answer.txt # the agent's answer; null: the agent writes files by tools
 * ```
 */
import { type Context, Effect, Path, Schema } from "effect"
import { boundProblem } from "../../../base/config/bounds.ts"
import { ConfigError, type DecodeOptions, placeOf as placeIn } from "../../../base/config/Config.ts"
import { positiveBelow, withDefault } from "../../../base/config/fields.ts"
import { locate } from "../../../base/config/places.ts"
import { sha256 } from "../../../base/text/sha256.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import { type EnvError, invalid } from "../../../base/EnvError.ts"
import { permit } from "../../../base/trust/Trust.ts"
import type { Tool } from "../../agent/Tool.ts"
import { type DatasetKind, make as makeKind, orderFields, orderOf } from "../DatasetKind.ts"
import { of, ordered } from "../TaskSet.ts"
import { make as makeEnv, type TextEnv, type TextRules } from "../TextEnv.ts"
import { fileTools } from "./fileTools.ts"
import { writeInto } from "./folderFiles.ts"
import { type Files, makeScratch, placeOf, type Scratch, verify } from "./scratch.ts"
import { type HarborTask, readTask, taskFolders } from "./taskFolder.ts"

const Config = Schema.Struct({
  type: withDefault(Schema.Literal("harbor"), "harbor"),
  /** A folder with a folder for each task, or the folder of one task. */
  datasetPath: Schema.NonEmptyString,
  /**
   * The file that the agent's answer is saved as, such as `/app/answer.txt`; null: the agent writes files by the tools
   * `list_files`, `read_file` and `write_file`, and its answer only ends the episode.
   */
  answerFile: withDefault(Schema.NullOr(Schema.NonEmptyString), null),
  /** What to do about tasks that need a container: refuse the whole data set, or leave these tasks out. */
  needsContainer: withDefault(Schema.Literals(["refuse", "leave_out"]), "refuse"),
  /** The largest number of seconds that a verifier gets; a task may set a smaller number. */
  timeoutSeconds: withDefault(positiveBelow("seconds"), 600),
  ...orderFields,
})
type HarborConfig = typeof Config.Type

/** What is kept of a task between its episodes: its files are read again for each. */
interface KnownTask extends Pick<HarborTask, "id" | "instruction" | "workdir" | "metadata" | "digest"> {
  readonly folder: string
}

interface Episode {
  readonly scratch: Scratch
  readonly tools: ReadonlyMap<string, Tool>
}

const described = (tools: ReadonlyArray<Tool>): ReadonlyMap<string, Tool> =>
  new Map(tools.map((tool) => [tool.spec.name, tool]))

/** Reads a task again, which must be the one that the user permitted. */
const readAgain = Effect.fnUntraced(function* ({ id, folder, digest }: KnownTask) {
  const read = yield* Effect.mapError(readTask(folder), ({ message }) => invalid(id, message))
  if (read._tag === "Task" && read.task.digest === digest) return read.task
  return yield* invalid(id, `the files in ${folder} have changed since the data set was opened; start again`)
})

/** Makes the env of a task, whose episodes read and write files with `context`. */
const envOf = (known: KnownTask, config: HarborConfig, context: Context.Context<Files>): TextEnv => {
  const { id, instruction, workdir, metadata } = known
  const { answerFile, timeoutSeconds } = config
  const here = <A, E, R>(effect: Effect.Effect<A, E, R | Files>): Effect.Effect<A, E, Exclude<R, Files>> =>
    Effect.provideContext(effect, context)
  const saveAnswer = Effect.fnUntraced(function* (scratch: Scratch, answer: string) {
    if (answerFile === null) return
    const place = placeOf(yield* Path.Path, scratch, answerFile)
    if (place === undefined)
      return yield* invalid(id, `answer_file: expected a path in ${workdir}, found ${JSON.stringify(answerFile)}`)
    yield* Effect.mapError(writeInto(place, utf8.encode(answer)), (problem) => invalid(id, problem))
  })
  const judged = Effect.fnUntraced(function* (episode: Episode, answer: string) {
    yield* saveAnswer(episode.scratch, answer)
    const seconds = Math.min(timeoutSeconds, episode.scratch.task.timeoutS)
    const { reward: score, rewards } = yield* verify(episode.scratch, seconds)
    const message = `The reward is ${score}.`
    const feedback = { score, target: null, message, extra: { rewards } }
    return { state: episode, observation: null, feedback, terminated: true }
  })
  const how =
    answerFile === null
      ? `Work in ${workdir} with your tools. Answer when you have finished.`
      : `Your whole answer is saved as ${answerFile}.`
  const byTools: Pick<TextRules<Episode>, "tools" | "call"> = {
    tools: fileTools({ root: "/", workdir }, context).map(({ spec }) => spec),
    call: (episode, call) =>
      Effect.map(
        episode.tools.get(call.name)?.call(call) ??
          Effect.succeed({ content: `There is no tool "${call.name}".`, isError: true }),
        ({ content, isError }) => ({ state: episode, content, isError }),
      ),
  }
  return makeEnv<Episode>({
    id,
    type: "harbor",
    metadata,
    maxSteps: 1,
    begin: () =>
      here(
        Effect.map(Effect.flatMap(readAgain(known), makeScratch), (scratch) => ({
          state: { scratch, tools: described(fileTools(scratch, context)) },
          observation: `${instruction.trim()}\n\n${how}`,
        })),
      ),
    step: (episode, action): Effect.Effect<Effect.Success<ReturnType<typeof judged>>, EnvError> =>
      here(judged(episode, action)),
    ...(answerFile === null ? byTools : {}),
  })
}

/** Reads the tasks at a path. Fails at the first that needs a container, unless such tasks are left out. */
const readTasks = Effect.fnUntraced(function* (
  { datasetPath, needsContainer }: HarborConfig,
  from: DecodeOptions,
  baseDir: string,
) {
  const { path, isThere, tried } = yield* locate(datasetPath, baseDir)
  if (!isThere) return yield* ConfigError.at(from, "datasetPath", `there is no folder ${tried.join(" or ")}`)
  const folders = yield* taskFolders(path)
  const problem =
    folders.length === 0 ? `${path} has no task: expected task.toml in it, or in folders in it` : undefined
  const tooMany = folders.length === 0 ? problem : boundProblem("tasks", folders.length)
  if (tooMany !== undefined) return yield* ConfigError.at(from, "datasetPath", tooMany)
  const tasks: Array<KnownTask> = []
  for (const folder of folders) {
    const read = yield* readTask(folder)
    if (read._tag === "NeedsContainer") {
      if (needsContainer === "refuse") return yield* read.error
      continue
    }
    const { id, instruction, workdir, metadata, digest } = read.task
    tasks.push({ id, instruction, workdir, metadata, digest, folder })
  }
  if (tasks.length === 0)
    return yield* ConfigError.at(from, "datasetPath", `all ${folders.length} tasks need a container`)
  if (tasks.length < folders.length)
    yield* Effect.logWarning(
      `${path}: ${folders.length - tasks.length} of ${folders.length} tasks need a container and are left out`,
    )
  return tasks
})

export const kind: DatasetKind = makeKind({
  type: "harbor",
  schema: Config,
  open: (config, { from, baseDir }) =>
    Effect.gen(function* () {
      const tasks = yield* readTasks(config, from, baseDir)
      const digest = yield* sha256(utf8.encode(JSON.stringify(tasks.map(({ id, digest }) => [id, digest]))))
      yield* permit({
        _tag: "ProgramStart",
        place: placeIn(from, "datasetPath"),
        command: ["bash", "tests/test.sh"],
        variables: [],
        input: { tasks: tasks.map(({ id }) => id), sha256: digest },
      }).pipe(Effect.mapError(({ message }) => ConfigError.at(from, "datasetPath", message)))
      const context = yield* Effect.context<Files>()
      const envs = tasks.map((task) => envOf(task, config, context))
      return ordered(of("harbor", envs, digest), orderOf(config))
    }),
})
