import { Cause, Clock, Effect, Exit, Schema, type Scope } from "effect"
import { stringify } from "yaml"
import { ConfigError, display, isPlain, type Plain, toSnakeCase } from "../config/Config.ts"
import { firstDifference } from "../config/difference.ts"
import { sha256 } from "../config/sha256.ts"
import type { TaskSet } from "../task/TaskSet.ts"
import { inOrder } from "../episode/rollouts/inOrder.ts"
import type { Protocol } from "../episode/Protocol.ts"
import * as Rollouts from "../episode/rollouts/Rollouts.ts"
import type { JsonLinesError } from "../formats/jsonLines.ts"
import { encodeReturnFile, spreadOf } from "../run/evaluation.ts"
import { finishedResult } from "../run/finishedResult.ts"
import { derivedName } from "../run/identifier.ts"
import type { RunFiles } from "../run/store/RunFiles.ts"
import { type OwnPlace, RunStore } from "../run/store/RunStore.ts"
import { RunStoreError } from "../run/store/RunStoreError.ts"
import type { Spent } from "../lm/middleware/budgeted.ts"
import type { Price } from "../lm/LmConfig.ts"
import type { LmError } from "../lm/LmError.ts"
import { CallContext } from "../lm/Lm.ts"
import { CallSink } from "../lm/middleware/logged.ts"
import { callFiles } from "../run/record/callFiles.ts"
import { withLogs } from "../run/record/logging.ts"
import { Recorder, type Recording } from "../run/record/Recorder.ts"
import type { RunStarted } from "../run/record/RunEvent.ts"
import * as Evaluate from "./Evaluate.ts"
import type { EvaluationSettings } from "./EvaluationConfig.ts"
import { eventsOf } from "./events.ts"
import * as Journal from "./journal.ts"
import * as Report from "./Report.ts"
import { csv, episodeRow, type EpisodeRow, jsonl, stepRows } from "./rows.ts"
import type { Scorer } from "./Scorer.ts"
import type { ScorerError } from "./ScorerError.ts"
import * as Layout from "../run/Layout.ts"
import { prettyJson } from "../config/text.ts"
import { utf8 } from "../config/utf8.ts"

/** Who is evaluated. */
export interface Contestant {
  readonly name: string
  /** Whether the evaluation's file says the name; it is derived of the agent's type where not. */
  readonly isNamed: boolean
  readonly type: string
  readonly model: string | null
  readonly protocol: Protocol
  readonly price: Price | undefined
}

/** An evaluation with everything that is in it made. */
export interface Prepared {
  readonly settings: EvaluationSettings
  readonly tasks: TaskSet
  readonly contestants: ReadonlyArray<Contestant>
  readonly scorers: ReadonlyArray<Scorer>
  /** What `config.yaml` says. */
  readonly effective: Plain
  /** What must be the same to go on: the rest may change what is shown, not what was played. */
  readonly identity: Plain
  /** Another evaluation's rows, to compare with. */
  readonly other: ReadonlyArray<EpisodeRow> | null
  readonly logCalls: boolean
  readonly spent: Spent
  /** Who said it all, for messages. */
  readonly source: string
  readonly place: OwnPlace | undefined
}

/** What an evaluation gives back, and what its `metrics.json` holds. */
export const EvaluationResult = Schema.Struct({
  runDir: Schema.String,
  /** Of the envs. */
  steps: Schema.Int,
  episodes: Schema.Int,
  failed: Schema.Int,
  /** What the envs gave the first agent, as a validation of any run. */
  validation: Schema.NullOr(
    Schema.Struct({
      step: Schema.Int,
      episodes: Schema.Int,
      meanReturn: Schema.Finite,
      stdReturn: Schema.Finite,
    }),
  ),
  report: Report.Report,
  /** Of its intervals. */
  confidence: Schema.Finite,
  /** SHA-256 over all that doesn't depend on the clock. */
  digest: Schema.String,
  wallSeconds: Schema.Finite,
})
export type EvaluationResult = typeof EvaluationResult.Type

export type ExecuteError = ConfigError | LmError | RunStoreError | JsonLinesError | ScorerError

/** The tables in a run's folder. */

/** Cores, as far as the machine tells. */
const cores = (): number => globalThis.navigator?.hardwareConcurrency ?? 1

/** Plays what isn't played yet, in a run's folder, and writes what it comes to. */
export const execute = Effect.fnUntraced(function* (
  prepared: Prepared,
): Effect.fn.Return<EvaluationResult, ExecuteError, RunStore | Recorder | Scope.Scope> {
  const { settings, tasks, contestants, effective, spent } = prepared
  const begun = yield* Clock.currentTimeMillis
  const algorithm = contestants.map(({ name }) => name).join("+")
  const inPath = contestants.map(({ name, isNamed }) => (isNamed ? name : derivedName(name))).join("+")
  const identity = {
    name: settings.name,
    population: { environment: derivedName(tasks.name), algorithm: inPath },
    seed: settings.seed,
  }
  const run = yield* (yield* RunStore).open(identity, prepared.place)
  if (run.resumed && !(yield* run.exists(Layout.evaluation.journal))) return yield* finishedBefore(prepared, run)
  const earlier = yield* Journal.readEarlier(run)
  if (earlier.evaluation !== undefined) yield* refuseOther(prepared, earlier.evaluation)
  // All but the journal is told once more, so that it is as if nobody had stopped.
  yield* run.cutBack({ sizes: {} })
  for (const stale of [...Layout.results, Layout.evaluation.episodes, Layout.evaluation.steps, Layout.evaluation.table])
    yield* run.remove(stale)
  Object.assign(spent, earlier.spent)
  yield* run.write(Layout.config, stringify(toSnakeCase(effective)))
  yield* run.write(Layout.configJson, prettyJson(toSnakeCase(effective)))
  const total = contestants.length * tasks.size * settings.repeats
  const line = `evaluation of ${contestants.map(({ name }) => name).join(", ")} on ${tasks.name}, ${total} episodes, seed ${settings.seed}`
  yield* run.write(Layout.description, `${settings.description ?? line}\n`)

  const known = earlier.entries.length
  const started: RunStarted = {
    _tag: "RunStarted",
    unit: "episodes",
    name: settings.name,
    env: tasks.name,
    algorithm,
    devices: Object.fromEntries(contestants.flatMap(({ name, model }) => (model === null ? [] : [[name, model]]))),
    seed: settings.seed,
    totalSteps: total,
    numEnvs: 1,
    resumedFromStep: run.resumed ? known : null,
    config: effective,
    logLevel: settings.output.logLevel,
    ...(settings.verbose ? {} : { quiet: true }),
  }
  const recording = yield* (yield* Recorder).start(run, started)
  yield* recording.emit([started])
  const add = yield* Journal.journal(run)
  if (earlier.evaluation === undefined) yield* add({ evaluation: prepared.identity })
  const seconds = Effect.map(Clock.currentTimeMillis, (now) => earlier.seconds + (now - begun) / 1000)

  const entries = new Map(earlier.entries.map((kept) => [keyOf(kept.agent, kept.index), kept]))
  const rows: Array<EpisodeRow> = []
  const playAll = Effect.fnUntraced(function* (recording: Recording) {
    for (const [place, contestant] of contestants.entries()) {
      yield* played({ prepared, run, recording, add, seconds, entries, place, contestant, told: rows })
    }
  })
  // An evaluation that has played everything is finished, also when a signal comes now.
  return yield* Effect.uninterruptibleMask((restore) =>
    withLogs(recording, settings.output.logLevel, (recording) =>
      Effect.onExit(restore(playAll(recording)), (exit) => concluded(recording, rows.length, exit)),
    ).pipe(
      Effect.provideService(CallSink, prepared.logCalls ? callFiles(run) : null),
      Effect.andThen(seconds),
      Effect.flatMap((wallSeconds) => finish(prepared, run, recording, rows, wallSeconds)),
    ),
  )
})

const keyOf = (agent: string, index: number): string => `${index} ${agent}`

interface Playing {
  readonly prepared: Prepared
  readonly run: RunFiles
  readonly recording: Recording
  readonly add: (entry: Journal.Entry) => Effect.Effect<void, RunStoreError>
  readonly seconds: Effect.Effect<number>
  /** Those of an earlier process; each is taken out when it is used. */
  readonly entries: Map<string, Journal.Kept>
  readonly place: number
  readonly contestant: Contestant
  /** What was told so far, also of agents before; who is interrupted knows by it how far all came. */
  readonly told: Array<EpisodeRow>
}

/** All episodes of an agent, told in their order. */
const played = Effect.fnUntraced(function* ({
  prepared,
  run,
  recording,
  add,
  seconds,
  entries,
  place,
  contestant,
  told,
}: Playing): Effect.fn.Return<void, ExecuteError, Scope.Scope> {
  const { settings, tasks, scorers, spent } = prepared
  const { name, protocol, price } = contestant
  const phase = { _tag: "validation", seenEpisodes: place } as const
  const evaluation: Evaluate.Evaluation = {
    tasks,
    protocol,
    seed: settings.seed,
    repeats: settings.repeats,
    concurrency: settings.workers ?? cores(),
    phase,
  }
  const before = told.length
  const append = {
    rollouts: yield* run.appending(Layout.validationRollouts(place)),
    episodes: yield* run.appending(Layout.evaluation.episodes),
    steps: yield* run.appending(Layout.evaluation.steps),
  }
  const work = Effect.fnUntraced(function* (index: number): Effect.fn.Return<Journal.Entry, ExecuteError> {
    const key = keyOf(name, index)
    const known = entries.get(key)
    if (known !== undefined) {
      entries.delete(key)
      return yield* Journal.readAgain(run, known)
    }
    const one = yield* Evaluate.one(evaluation, index)
    const row = yield* episodeRow(one, { agent: name, scorers, price }).pipe(
      // A judge's call has a place of its own, whatever else is judged at the time: in the log, and in the cache.
      Effect.provideService(CallContext, { phase, purpose: "judgement", episode: index + 1, step: 0 }),
    )
    const entry = { played: one, row, spent: spent.save(), seconds: yield* seconds }
    yield* add(entry)
    return entry
  })
  const tell = Effect.fnUntraced(function* ({
    played: one,
    row,
  }: Journal.Entry): Effect.fn.Return<void, RunStoreError> {
    told.push(row)
    for (const rollout of one.rollouts) yield* append.rollouts(Rollouts.line(rollout))
    yield* append.steps(jsonl(stepRows(one, name)))
    yield* append.episodes(jsonl([row]))
    const { terminated, truncated, truncationReason } = one.ending
    yield* recording.emit([
      ...eventsOf(one, { seenEpisodes: place, agent: contestant, verbose: true }),
      {
        _tag: "EpisodeEnded",
        step: told.length,
        episode: before + one.index,
        env: 0,
        return: one.totalScore,
        length: one.steps.length,
        terminated,
        truncated,
        truncationReason: truncationReason === "max_seq_len" ? null : truncationReason,
      },
    ])
  })
  const all = Array.from({ length: Evaluate.sizeOf(evaluation) }, (_, index) => index)
  yield* inOrder(all, { concurrency: evaluation.concurrency, work, tell })
  const rows = told.slice(before)
  const good = rows.filter(({ error }) => error === null)
  const failed = rows.length - good.length
  yield* recording.emit([
    good.length === 0
      ? { _tag: "Warning", message: `${name}: all ${failed} episodes failed` }
      : {
          _tag: "ValidationEnded",
          step: place,
          seenEpisodes: place,
          episodes: good.map(({ score, steps, terminated, truncated }) => ({
            return: score,
            length: steps,
            terminated,
            truncated,
          })),
          ...spreadOf(good.map(({ score }) => score)),
          failed,
        },
  ])
})

const concluded = (
  recording: Recording,
  episodes: number,
  exit: Exit.Exit<void, ExecuteError>,
): Effect.Effect<void, RunStoreError> => {
  const ended = (reason: "finished" | "interrupted" | "failed", message: string | null) =>
    recording.emit([{ _tag: "RunEnded", step: episodes, episodes, reason, message }])
  if (Exit.isSuccess(exit)) return ended("finished", null)
  if (Cause.hasInterruptsOnly(exit.cause)) return ended("interrupted", null)
  return Effect.ignore(ended("failed", Cause.pretty(exit.cause)))
}

/** The result of an evaluation that was finished before; any other folder is refused, and keeps its files. */
const finishedBefore = Effect.fnUntraced(function* (
  { effective, source }: Prepared,
  run: RunFiles,
): Effect.fn.Return<EvaluationResult, ConfigError | RunStoreError> {
  const path = run.directory
  const result = yield* finishedResult(run, EvaluationResult)
  if (result === undefined || !(yield* run.exists(Layout.configJson))) {
    const message = `${path}: this is not an evaluation that was stopped, so there is nothing to resume; start a new one without --resume`
    return yield* new RunStoreError({ path, operation: "resume", message })
  }
  const difference = firstDifference(lasting(effective), lasting(parsed(yield* run.readText(Layout.configJson))))
  if (difference === undefined) return { ...result, runDir: path }
  const { key, now, then } = difference
  const problem = `${path} was finished with ${display(then)}, found ${display(now)}; start a new evaluation without --resume`
  return yield* ConfigError.at({ source }, key, problem)
})

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** The settings that a finished evaluation's result depends on. */
const lasting = (config: unknown): Plain => {
  const renamed = toSnakeCase(config)
  if (!isPlain(renamed)) return {}
  const { workers: _1, verbose: _2, output: _3, description: _4, ...rest } = renamed
  return rest
}

/** What was played by other settings is none of this evaluation's. */
const refuseOther = ({ identity, source }: Prepared, then: Plain): Effect.Effect<void, ConfigError> => {
  const now: unknown = JSON.parse(JSON.stringify(identity))
  const current = isPlain(now) ? now : {}
  const key = [...new Set([...Object.keys(current), ...Object.keys(then)])].find(
    (one) => JSON.stringify(current[one]) !== JSON.stringify(then[one]),
  )
  if (key === undefined) return Effect.void
  const problem = `the evaluation was started with ${display(then[key])}, found ${display(current[key])}; start a new evaluation without --resume`
  return Effect.fail(ConfigError.at({ source }, key, problem))
}

/** How rows look at any time, whatever the server's faults were. */
const timeless = (
  { duration_ms: _duration, retries: _retries, scores, ...row }: EpisodeRow,
  timed: ReadonlySet<string>,
): string => JSON.stringify({ ...row, scores: Object.entries(scores).filter(([name]) => !timed.has(name)) })

const finish = Effect.fnUntraced(function* (
  { settings, scorers, contestants, other }: Prepared,
  run: RunFiles,
  recording: Recording,
  rows: ReadonlyArray<EpisodeRow>,
  wallSeconds: number,
): Effect.fn.Return<EvaluationResult, RunStoreError> {
  const options: Report.Options = {
    scorers: scorers.map(({ name }) => name),
    passAt: settings.passAt ?? [settings.repeats],
    threshold: settings.passThreshold,
    by: settings.by,
    confidence: settings.confidence,
    seed: settings.seed,
  }
  const own = Report.of(rows, options)
  const report =
    other === null ? own : { ...own, comparisons: [...own.comparisons, ...Report.against(other, rows, options)] }
  const timed = new Set(scorers.filter((one) => one.timed).map(({ name }) => name))
  const evaluations = contestants.map(({ name }, place) => {
    const good = rows.filter((row) => row.agent === name && row.error === null)
    return {
      step: place,
      returns: good.map(({ score }) => score),
      lengths: good.map(({ steps }) => steps),
      terminated: good.filter(({ terminated }) => terminated).length,
    }
  })
  const [first] = evaluations
  const result: EvaluationResult = {
    runDir: run.directory,
    steps: rows.reduce((sum, { steps }) => sum + steps, 0),
    episodes: rows.length,
    failed: rows.filter(({ error }) => error !== null).length,
    validation:
      first.returns.length === 0 ? null : { step: 0, episodes: first.returns.length, ...spreadOf(first.returns) },
    report,
    confidence: settings.confidence,
    digest: yield* sha256(utf8.encode(rows.map((row) => timeless(row, timed)).join("\n"))),
    wallSeconds,
  }
  yield* run.write(Layout.evaluation.table, csv(rows))
  yield* run.write(Layout.metrics, prettyJson(toSnakeCase(result)))
  yield* recording.flush
  // Last: its existence says that the run is finished.
  yield* run.write(Layout.returns, encodeReturnFile(evaluations))
  yield* run.remove(Layout.evaluation.journal)
  return result
})
