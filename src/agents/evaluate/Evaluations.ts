/**
 * Runs and compares evaluations. `fromConfig` runs the evaluation that a config describes: it opens the data set, the models,
 * the agents and the scorers; `execute.ts` then plays the episodes and writes the run's folder. `compare` reads two finished
 * evaluations from their folders with `readRows`, and changes no files. The command `effect eval` calls them.
 *
 * @example
 * ```ts
 * const { report } = yield* Evaluations.fromConfig({
 *   dataset: { type: "codebook", num_tasks: 50 },
 *   agents: { plain: { lm_config: { model: "gpt-4.1-mini" } }, large: { lm_config: { model: "gpt-4.1" } } },
 *   scorers: ["exact", "tokens"],
 *   repeats: 4,
 * })
 * console.log(Report.text(report))
 * ```
 */
import { Effect, type FileSystem, type Path, Schema, type Scope, Stream } from "effect"
import { FormatError } from "../../base/formats/FormatError.ts"
import type { AgentError } from "../agent/AgentError.ts"
import * as Agents from "../agent/Agents.ts"
import { checkAll, ConfigError, type DecodeOptions, type Plain } from "../../base/config/Config.ts"
import { exists, mostBytes, readText } from "../../base/files/files.ts"
import { locate, withPlaces } from "../../base/config/places.ts"
import { sha256 } from "../../base/text/sha256.ts"
import * as Datasets from "../task/Datasets.ts"
import type { DatasetError } from "../task/TaskSet.ts"
import { linesOf, valueOf } from "../../base/formats/jsonLines.ts"
import { RunOptions, withoutLauncher } from "../../run/RunOptions.ts"
import type { OwnPlace, RunStore } from "../../run/store/RunStore.ts"
import { priceOf } from "../lm/middleware/budgeted.ts"
import { Lm } from "../lm/Lm.ts"
import type { LmError } from "../lm/LmError.ts"
import type * as Lms from "../lm/Lms.ts"
import type { Recorder } from "../../run/record/Recorder.ts"
import { checkTasks } from "./checkTasks.ts"
import * as Evaluate from "./Evaluate.ts"
import { type AgentSection, namesOf, read, type ReadOptions } from "./EvaluationConfig.ts"
import { execute, type ExecuteError } from "./execute.ts"
import type { PreparedEvaluation } from "./PreparedEvaluation.ts"
import { agentIdentity, openParts, scorerIdentity } from "./openParts.ts"
import * as Report from "./report/Report.ts"
import type { EvaluationResult } from "./result.ts"
import { EpisodeRow } from "./rows.ts"
import { taskProblem, withIdsOf } from "./report/sameTasks.ts"
import * as Scorers from "./Scorers.ts"
import { parseMetrics } from "../../run/finishedResult.ts"
import * as Layout from "../../run/Layout.ts"
import { utf8 } from "../../base/text/utf8.ts"

export { withIdsOf } from "./report/sameTasks.ts"
export { EvaluationSettings } from "./EvaluationConfig.ts"
export { execute } from "./execute.ts"
export type { Contestant, PreparedEvaluation } from "./PreparedEvaluation.ts"
export { EvaluationResult } from "./result.ts"

/** The errors of an evaluation that can't start. */
export type PrepareError = ConfigError | AgentError | DatasetError | LmError | FormatError

export type EvaluationError = ExecuteError | PrepareError

export type EvaluationNeeds = RunStore | Recorder | Lms.LmNeeds

export interface EvaluationOptions extends ReadOptions {
  /** The folder from which relative paths of data sets, prompts and evaluations start; by default the current one. */
  readonly baseDir?: string
  /**
   * Returns where to create the run's folder if the config sets `results_dir`. By default, it is created in that folder
   * itself.
   */
  readonly placeOf?: (resultsDir: string) => Effect.Effect<OwnPlace, never, Path.Path>
}

/**
 * Runs the evaluation that a config describes, and returns its result. If the service `RunStore` resumes a stopped
 * evaluation, only the missing episodes are played. The overrides of a launcher (`RunOptions`), such as the command
 * `effect eval`, apply after those of the options.
 */
export const fromConfig = Effect.fnUntraced(function* (
  config: unknown,
  options: EvaluationOptions = {},
): Effect.fn.Return<EvaluationResult, EvaluationError, EvaluationNeeds | Scope.Scope> {
  return yield* execute(yield* prepare(config, withLauncher(options, yield* RunOptions)))
}, Effect.scoped)

/** Adds the settings that the launcher overrides, and its names for the run and the config where the options have none. */
const withLauncher = (options: EvaluationOptions, launcher: RunOptions): EvaluationOptions => {
  if (launcher === withoutLauncher) return options
  const { source, name, overrides } = launcher
  return { source, name, ...options, overrides: [...(options.overrides ?? []), ...overrides] }
}

/** Opens the data set, the models, the agents and the scorers of an evaluation. Nothing is played or written yet. */
export const prepare = (
  config: unknown,
  options: EvaluationOptions = {},
): Effect.Effect<PreparedEvaluation, PrepareError, Lms.LmNeeds | Scope.Scope> =>
  Agents.withOwnKinds(config, (named) => prepareNamed(named, options))

const prepareNamed = Effect.fnUntraced(function* (
  config: unknown,
  options: EvaluationOptions,
): Effect.fn.Return<PreparedEvaluation, PrepareError, Lms.LmNeeds | Scope.Scope> {
  const { baseDir = ".", placeOf = (resultsDir: string) => Effect.succeed({ resultsDir }) } = options
  const sections = yield* read(config, options)
  const { settings, from } = sections
  const { source } = from
  // Check the data set and all agents first, so that one error lists all problems.
  yield* checkAll([
    Datasets.decode(sections.dataset, { ...from, prefix: ["dataset"] }),
    ...sections.agents.map((one) => decodedAgent(one, from, baseDir)),
  ])
  const { spent, openLm, openDataset } = yield* openParts(from, baseDir)
  const dataset = yield* openDataset(sections.dataset, "dataset")
  const scorers = yield* Scorers.openAll(settings.scorers, {
    baseDir,
    from: { ...from, prefix: ["scorers"] },
    openLm: (lmConfig) => openLm(lmConfig, ["scorers", "judge", "lmConfig"]),
  })
  const labels = scorers.map(({ scorer }) => scorer.label?.key)
  yield* checkTasks(dataset.tasks, { by: settings.by, labels }, from)
  const decoded = yield* Effect.forEach(sections.agents, (one) => decodedAgent(one, from, baseDir))
  const names = namesOf(decoded.map((one) => ({ ...one, model: one.lmConfig?.model ?? null })))
  const duplicate = names.find((one, at) => names.indexOf(one) < at)
  if (duplicate !== undefined) {
    return yield* ConfigError.at({ source }, "agents", `expected different names, found "${duplicate}" twice`)
  }
  const contestants = yield* Effect.forEach(decoded, ({ make, lmConfig, type, prefix, name }, at) =>
    Effect.gen(function* () {
      const agent = yield* Effect.provideService(make, Lm, yield* openLm(lmConfig, [...prefix, "lmConfig"]))
      return {
        name: names[at],
        isNamed: name !== undefined,
        type,
        model: agent.model,
        protocol: Evaluate.frozen(agent, { maxSteps: settings.maxStepsPerEpisode }),
        price: lmConfig === null ? undefined : priceOf(lmConfig.model, lmConfig.prices),
      }
    }),
  )
  const earlier = settings.compareTo === null ? null : yield* readEarlier(settings.compareTo, baseDir, from)
  const agents = yield* Effect.forEach(decoded, ({ config: plain }, at) =>
    Effect.map(withPlaces(plain, baseDir), (whole): Plain => ({ name: names[at], ...whole })),
  )
  return {
    settings,
    tasks: dataset.tasks,
    contestants,
    scorers: scorers.map(({ scorer }) => scorer),
    // The complete config, which is saved as `config.yaml`. Running that file gives the same evaluation.
    effective: {
      ...settings,
      compareTo: earlier?.path ?? null,
      scorers: yield* Effect.forEach(scorers, ({ config: plain }) => withPlaces(plain, baseDir)),
      dataset: yield* withPlaces(dataset.config, baseDir),
      agents,
    },
    // The settings that must be equal when a stopped evaluation is resumed.
    identity: {
      dataset: yield* sha256(utf8.encode(dataset.tasks.digest)),
      seed: settings.seed,
      repeats: settings.repeats,
      maxStepsPerEpisode: settings.maxStepsPerEpisode,
      agents: decoded.map(({ config: plain, lmConfig }, at) => ({
        name: names[at],
        ...agentIdentity(plain, lmConfig),
      })),
      scorers: scorers.map(({ config: plain }) => scorerIdentity(plain)),
    },
    other: earlier?.rows ?? null,
    logCalls: decoded.some(({ lmConfig }) => lmConfig?.logCalls === true),
    spent,
    source,
    place: settings.output.resultsDir === null ? undefined : yield* placeOf(settings.output.resultsDir),
  }
})

const decodedAgent = ({ name, prefix, config }: AgentSection, from: DecodeOptions, baseDir: string) =>
  Effect.map(Agents.decode(config, { ...from, prefix, baseDir }), (decoded) => ({ ...decoded, name, prefix }))

/**
 * Reads the finished evaluation in `folder` (the setting `compare_to`). A relative path starts from the config's folder or
 * the current one. Returns the folder's absolute path, and a row for each episode.
 */
const readEarlier = Effect.fnUntraced(function* (folder: string, baseDir: string, from: DecodeOptions) {
  const refuse = (problem: string): ConfigError => ConfigError.at(from, "compare_to", problem)
  const { path, isThere, tried } = yield* locate(folder, baseDir)
  if (!isThere) {
    return yield* refuse(`expected the folder of a finished evaluation at ${tried.join(" or ")}, found nothing`)
  }
  const rows = yield* Effect.mapError(readRows(path), (error) =>
    error.line === undefined ? refuse(error.message) : error,
  )
  return { path, rows }
})

const rowOf = valueOf(EpisodeRow)

/** Reads a row for each episode of a finished evaluation from its folder. Fails if the evaluation is not finished. */
export const readRows = Effect.fnUntraced(function* (
  folder: string,
): Effect.fn.Return<ReadonlyArray<EpisodeRow>, FormatError, FileSystem.FileSystem> {
  const path = `${folder}/${Layout.evaluation.episodes}`
  const hasEpisodes = yield* exists(path)
  if (!hasEpisodes || !(yield* exists(`${folder}/${Layout.returns}`))) {
    const problem = hasEpisodes
      ? `it has no ${Layout.returns}, so it is still running or was stopped`
      : `it has no ${Layout.evaluation.episodes}`
    return yield* wrongFolder(folder, `${folder}: expected the folder of a finished evaluation; ${problem}`)
  }
  return yield* linesOf(path).pipe(
    Stream.mapEffect((line) => rowOf(path, line)),
    Stream.runCollect,
  )
})

/**
 * Compares two finished evaluations of the same tasks; `left` and `right` are their folders. Each agent of `right` is
 * compared with the agent of the same name in `left`, or with the first agent of `left` if no name matches. Fails if the
 * evaluations have no scorer, or no scored task, in common, or if a task has the same id, but another right answer or type.
 */
export const compare = Effect.fnUntraced(function* (
  left: string,
  right: string,
  options: Pick<Report.ReportOptions, "confidence" | "seed"> = {},
): Effect.fn.Return<ReadonlyArray<Report.ComparisonReport>, FormatError, FileSystem.FileSystem> {
  const after = yield* readRows(right)
  const before = withIdsOf(after, yield* readRows(left))
  const problem = taskProblem(before, after)
  if (problem !== undefined) return yield* wrongFolder(right, `${left} and ${right}: ${problem}`)
  const scorers = scorersOf(before).filter((name) => scorersOf(after).includes(name))
  const comparisons = Report.against(before, after, { ...options, scorers, directions: yield* directionsIn(right) })
  if (comparisons.length > 0) return comparisons
  const missing = scorers.length === 0 ? "no scorer" : "no task that was scored"
  return yield* wrongFolder(right, `${left} and ${right} have ${missing} in common, so there is nothing to compare`)
})

/** Reads the directions of the scorers in the report of a finished evaluation. */
const directionsIn = Effect.fnUntraced(function* (folder: string) {
  const read = readText(`${folder}/${Layout.metrics}`, mostBytes.text).pipe(
    Effect.flatMap((text) => parseMetrics(text, Schema.Struct({ report: Report.Report }))),
  )
  const { report } = yield* Effect.orElseSucceed(read, () => ({ report: { agents: [] } }))
  return new Map(
    report.agents.flatMap(({ scores }) => scores.map(({ scorer, direction }) => [scorer, direction] as const)),
  )
})

const wrongFolder = (path: string, message: string) => new FormatError({ path, message })

const scorersOf = (rows: ReadonlyArray<EpisodeRow>): ReadonlyArray<string> => [
  ...new Set(rows.flatMap(({ scores }) => Object.keys(scores))),
]
