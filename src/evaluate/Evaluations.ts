/**
 * Evaluations as runs: from what a file says to a folder with tables, scores, transcripts and a report. What is stopped
 * goes on where it was, and asks nobody again what was answered.
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
import { described, namesOf, read, type SaidAgent } from "./EvaluationConfig.ts"
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

export interface Where {
  /** The folder that data sets, prompts and other evaluations are named from; the current one unless given. */
  readonly baseDir?: string
  /** What the config is called in messages. */
  readonly source?: string
  /** The run's name where the config has none. */
  readonly name?: string
  readonly overrides?: ReadonlyArray<Override>
  /** Where each key stands, for messages: `agent.historyK` in `tasks.yaml:7`. */
  readonly lines?: ReadonlyMap<string, string>
  /** Where a config that says so wants to be. */
  readonly placeOf?: (resultsDir: string) => Effect.Effect<OwnPlace, never, Path.Path>
}

/** An evaluation of plain data, as a YAML file holds it. */
export const fromConfig = (
  config: unknown,
  {
    baseDir = ".",
    source = "evaluation",
    name,
    overrides = [],
    lines = new Map(),
    placeOf = (resultsDir) => Effect.succeed({ resultsDir }),
  }: Where = {},
): Effect.Effect<EvaluationResult, EvaluationError, Exclude<Needs, Scope.Scope>> =>
  Effect.scoped(
    Effect.gen(function* () {
      const paths = yield* Path.Path
      const said = yield* read(config, { source, overrides, lines, ...(name === undefined ? {} : { name }) })
      const { settings, from } = said
      yield* checkAll([
        Datasets.decode(said.dataset, { ...from, prefix: ["dataset"] }),
        ...said.agents.map((one) => decodedAgent(one, from, baseDir)),
      ])
      const spent = new Spent()
      const open = (lmConfig: LmConfig, prefix: ReadonlyArray<string>) =>
        Lms.open(
          { ...lmConfig, cacheDir: paths.resolve(baseDir, lmConfig.cacheDir) },
          { spent, baseDir, source: placeOfModel([...prefix, "lmConfig"], from) },
        )
      const needs = yield* Effect.context<Lms.Needs>()
      const dataset = yield* Datasets.open(said.dataset, {
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
      const decoded = yield* Effect.forEach(said.agents, (one) => decodedAgent(one, from, baseDir))
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

const decodedAgent = ({ name, prefix, said }: SaidAgent, from: DecodeOptions, baseDir: string) =>
  Effect.map(Agents.decode(said, { ...from, prefix, baseDir }), (decoded) => ({ ...decoded, name, prefix }))

/** Retries, limits and budgets may be others when it goes on; what the model is asked, and how, may not. */
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

/** Another evaluation's folder, named from the config's, or as it was printed: from the current one. */
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

/** The episodes of a finished evaluation, from its folder. */
export const readRows = Effect.fnUntraced(function* (
  folder: string,
): Effect.fn.Return<ReadonlyArray<EpisodeRow>, JsonLinesError, FileSystem.FileSystem> {
  const fs = yield* FileSystem.FileSystem
  const has = (file: string) => Effect.orElseSucceed(fs.exists(`${folder}/${file}`), () => false)
  if (!(yield* has(Layout.evaluation.episodes)) || !(yield* has(Layout.returns))) {
    const why = (yield* has(Layout.evaluation.episodes))
      ? "it has no return.json, so it goes on or was stopped"
      : `it has no ${Layout.evaluation.episodes}`
    return yield* new JsonLinesError({
      path: folder,
      line: null,
      message: `${folder}: expected the folder of a finished evaluation; ${why}`,
    })
  }
  const path = `${folder}/${Layout.evaluation.episodes}`
  return yield* linesOf(path).pipe(
    Stream.mapEffect((line) => rowOf(path, line)),
    Stream.runCollect,
  )
})

/** Two finished evaluations of the same tasks: agents of the same name, else all against the first one's first. */
export const compare = Effect.fnUntraced(function* (
  left: string,
  right: string,
  options: Pick<Report.Options, "confidence" | "seed"> = {},
): Effect.fn.Return<ReadonlyArray<Report.ComparisonReport>, JsonLinesError, FileSystem.FileSystem> {
  const [before, after] = [yield* readRows(left), yield* readRows(right)]
  const scorers = scorersOf(before).filter((name) => scorersOf(after).includes(name))
  const found = Report.against(before, after, { ...options, scorers })
  if (found.length > 0) return found
  const why = scorers.length === 0 ? "no scorer" : "no task that was scored"
  return yield* new JsonLinesError({
    path: right,
    line: null,
    message: `${left} and ${right} have ${why} in common, so there is nothing to compare`,
  })
})

const scorersOf = (rows: ReadonlyArray<EpisodeRow>): ReadonlyArray<string> => [
  ...new Set(rows.flatMap(({ scores }) => Object.keys(scores))),
]
