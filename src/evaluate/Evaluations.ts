/**
 * Runs evaluations from their configs: a run's folder gets tables, scores, transcripts and a report. A stopped evaluation
 * resumes, and does not repeat calls that were answered.
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
import { Effect, FileSystem, Path, type Scope, Stream } from "effect"
import type { AgentError } from "../agent/AgentError.ts"
import * as Agents from "../agent/Agents.ts"
import {
  checkAll,
  ConfigError,
  type DecodeOptions,
  isPlain,
  type Override,
  type Plain,
  snakeCase,
  sourceOf,
} from "../config/Config.ts"
import { locate, unplacedModel, withPlaces } from "../config/places.ts"
import { sha256 } from "../config/sha256.ts"
import * as Datasets from "../task/Datasets.ts"
import type { DatasetError } from "../task/TaskSet.ts"
import { JsonLinesError, linesOf, valueOf } from "../formats/jsonLines.ts"
import type { OwnPlace, RunStore } from "../run/store/RunStore.ts"
import { priceOf, Spent } from "../lm/middleware/budgeted.ts"
import { Lm } from "../lm/Lm.ts"
import type { LmConfig } from "../lm/LmConfig.ts"
import * as Lms from "../lm/Lms.ts"
import type { Recorder } from "../run/record/Recorder.ts"
import * as Evaluate from "./Evaluate.ts"
import { described, namesOf, read, type AgentSection } from "./EvaluationConfig.ts"
import { type EvaluationResult, execute, type ExecuteError } from "./execute.ts"
import * as Report from "./Report.ts"
import { EpisodeRow } from "./rows.ts"
import * as Scorers from "./Scorers.ts"
import * as Layout from "../run/Layout.ts"
import { utf8 } from "../config/utf8.ts"

export { EvaluationSettings } from "./EvaluationConfig.ts"
export { type Contestant, EvaluationResult, execute, type Prepared } from "./execute.ts"

export type EvaluationError = ExecuteError | AgentError | DatasetError

export type Needs = RunStore | Recorder | Lms.Needs

export interface EvaluationOptions {
  /** The folder that the paths of data sets, prompts and other evaluations are relative to; by default the current one. */
  readonly baseDir?: string
  /** The name of the config in error messages, e.g. the path of its file. */
  readonly source?: string
  /** The name of the run, if the config has none. */
  readonly name?: string
  readonly overrides?: ReadonlyArray<Override>
  /** Where each key was written, for error messages: maps `agent.historyK` to `tasks.yaml:7`. */
  readonly lines?: ReadonlyMap<string, string>
  /** Returns the place of the run's folder for a config with a `results_dir`. */
  readonly placeOf?: (resultsDir: string) => Effect.Effect<OwnPlace, never, Path.Path>
}

/** Runs the evaluation of a config. */
export const fromConfig = (
  config: unknown,
  {
    baseDir = ".",
    source = "evaluation",
    name,
    overrides = [],
    lines = new Map(),
    placeOf = (resultsDir) => Effect.succeed({ resultsDir }),
  }: EvaluationOptions = {},
): Effect.Effect<EvaluationResult, EvaluationError, Exclude<Needs, Scope.Scope>> =>
  Effect.scoped(
    Effect.gen(function* () {
      const paths = yield* Path.Path
      const sections = yield* read(config, { source, overrides, lines, ...(name === undefined ? {} : { name }) })
      const { settings, from } = sections
      yield* checkAll([
        Datasets.decode(sections.dataset, { ...from, prefix: ["dataset"] }),
        ...sections.agents.map((one) => decodedAgent(one, from, baseDir)),
      ])
      const spent = new Spent()
      const open = (lmConfig: LmConfig, prefix: ReadonlyArray<string>) =>
        Lms.open(
          { ...lmConfig, cacheDir: paths.resolve(baseDir, lmConfig.cacheDir) },
          { spent, baseDir, source: placeOfModel([...prefix, "lmConfig"], from) },
        )
      const needs = yield* Effect.context<Lms.Needs>()
      const dataset = yield* Datasets.open(sections.dataset, {
        baseDir,
        from: { ...from, prefix: ["dataset"] },
        openLm: (lmConfig) =>
          open(lmConfig, ["dataset", "feedback"]).pipe(
            Effect.provideContext(needs),
            Effect.catchTag("LmError", ({ message }) => Effect.fail(ConfigError.at({ source }, "dataset", message))),
          ),
      })
      const scorers = yield* Scorers.openAll(settings.scorers, {
        baseDir,
        from: { ...from, prefix: ["scorers"] },
        openLm: (lmConfig) => open(lmConfig, ["scorers", "judge"]),
      })
      const decoded = yield* Effect.forEach(sections.agents, (one) => decodedAgent(one, from, baseDir))
      const names = namesOf(decoded.map((one) => ({ ...one, model: one.lmConfig.model })))
      const twice = names.find((one, at) => names.indexOf(one) < at)
      if (twice !== undefined) {
        return yield* ConfigError.at({ source }, "agents", `expected different names, found "${twice}" twice`)
      }
      const contestants = yield* Effect.forEach(decoded, ({ make, lmConfig, type, prefix, name }, at) =>
        Effect.gen(function* () {
          const agent = yield* Effect.provideService(make, Lm, yield* open(lmConfig, prefix))
          return {
            name: names[at],
            isNamed: name !== undefined,
            type,
            model: agent.model,
            protocol: Evaluate.frozen(agent, { maxSteps: settings.maxStepsPerEpisode }),
            price: agent.model === null ? undefined : priceOf(agent.model, lmConfig.prices),
          }
        }),
      )
      const compareTo = settings.compareTo === null ? null : yield* earlier(settings.compareTo, baseDir, from)
      const other =
        compareTo === null
          ? null
          : yield* Effect.mapError(readRows(compareTo), (error) =>
              error.line === null ? wrongCompareTo(error.message, from) : error,
            )
      const agents = yield* Effect.forEach(decoded, ({ config: plain }, at) =>
        Effect.map(withPlaces(plain, baseDir), (whole): Plain => ({ name: names[at], ...whole })),
      )
      return yield* execute({
        settings,
        tasks: dataset.tasks,
        contestants,
        scorers: scorers.map(({ scorer }) => scorer),
        effective: described(
          { ...settings, compareTo },
          {
            dataset: yield* withPlaces(dataset.config, baseDir),
            agents,
            scorers: yield* Effect.forEach(scorers, ({ config: plain }) => withPlaces(plain, baseDir)),
          },
        ),
        identity: {
          dataset: yield* sha256(utf8.encode(dataset.tasks.digest)),
          seed: settings.seed,
          repeats: settings.repeats,
          maxStepsPerEpisode: settings.maxStepsPerEpisode,
          agents: decoded.map(({ config: plain, lmConfig }, at) => identityOf(names[at], plain, lmConfig)),
          scorers: scorers.map(({ config: plain }) => judgeIdentity(plain)),
        },
        other,
        logCalls: decoded.some(({ lmConfig }) => lmConfig.logCalls),
        spent,
        source,
        place: settings.output.resultsDir === null ? undefined : yield* placeOf(settings.output.resultsDir),
      })
    }),
  )

const placeOfModel = (prefix: ReadonlyArray<string>, from: DecodeOptions): string =>
  `${sourceOf(from, [...prefix, "model"].join("."))}: ${prefix.map(snakeCase).join(".")}`

const decodedAgent = ({ name, prefix, config }: AgentSection, from: DecodeOptions, baseDir: string) =>
  Effect.map(Agents.decode(config, { ...from, prefix, baseDir }), (decoded) => ({ ...decoded, name, prefix }))

/** Gives the settings of an agent that a resumed evaluation must share; retries, limits and budgets may differ. */
const identityOf = (
  name: string,
  { verbose: _verbose, lmConfig: _all, ...agent }: Plain,
  lmConfig: LmConfig,
): Plain => {
  const { model, temperature, maxOutputTokens, stopSequences, thinkingBudget } = lmConfig
  return {
    name,
    ...agent,
    lmConfig: { model: unplacedModel(model), temperature, maxOutputTokens, stopSequences, thinkingBudget },
  }
}

const judgeIdentity = ({ lmConfig, ...plain }: Plain): Plain =>
  isPlain(lmConfig) ? { ...plain, model: lmConfig.model, temperature: lmConfig.temperature } : plain

/** Finds the folder of another evaluation, relative to the config's folder or the current one. */
const earlier = Effect.fnUntraced(function* (
  folder: string,
  baseDir: string,
  from: DecodeOptions,
): Effect.fn.Return<string, ConfigError, FileSystem.FileSystem | Path.Path> {
  const { path, isThere, tried } = yield* locate(folder, baseDir)
  if (isThere) return path
  return yield* wrongCompareTo(
    `expected the folder of a finished evaluation at ${tried.join(" or ")}, found nothing`,
    from,
  )
})

const wrongCompareTo = (problem: string, from: DecodeOptions): ConfigError =>
  ConfigError.at(from, "compare_to", problem)

const rowOf = valueOf(EpisodeRow)

/** Reads the episodes of a finished evaluation from its folder. */
export const readRows = Effect.fnUntraced(function* (
  folder: string,
): Effect.fn.Return<ReadonlyArray<EpisodeRow>, JsonLinesError, FileSystem.FileSystem> {
  const fs = yield* FileSystem.FileSystem
  const has = (file: string) => Effect.orElseSucceed(fs.exists(`${folder}/${file}`), () => false)
  if (!(yield* has(Layout.evaluation.episodes)) || !(yield* has(Layout.returns))) {
    const problem = (yield* has(Layout.evaluation.episodes))
      ? `it has no ${Layout.returns}, so it is still running or was stopped`
      : `it has no ${Layout.evaluation.episodes}`
    return yield* new JsonLinesError({
      path: folder,
      line: null,
      message: `${folder}: expected the folder of a finished evaluation; ${problem}`,
    })
  }
  const path = `${folder}/${Layout.evaluation.episodes}`
  return yield* linesOf(path).pipe(
    Stream.mapEffect((line) => rowOf(path, line)),
    Stream.runCollect,
  )
})

/** Compares two finished evaluations of the same tasks: agents with the same name, or else all with the first agent. */
export const compare = Effect.fnUntraced(function* (
  left: string,
  right: string,
  options: Pick<Report.ReportOptions, "confidence" | "seed"> = {},
): Effect.fn.Return<ReadonlyArray<Report.ComparisonReport>, JsonLinesError, FileSystem.FileSystem> {
  const [before, after] = [yield* readRows(left), yield* readRows(right)]
  const scorers = scorersOf(before).filter((name) => scorersOf(after).includes(name))
  const comparisons = Report.against(before, after, { ...options, scorers })
  if (comparisons.length > 0) return comparisons
  const missing = scorers.length === 0 ? "no scorer" : "no task that was scored"
  return yield* new JsonLinesError({
    path: right,
    line: null,
    message: `${left} and ${right} have ${missing} in common, so there is nothing to compare`,
  })
})

const scorersOf = (rows: ReadonlyArray<EpisodeRow>): ReadonlyArray<string> => [
  ...new Set(rows.flatMap(({ scores }) => Object.keys(scores))),
]
