/**
 * Executes a prepared evaluation as a run: plays and scores the episodes of one agent after another. Each episode is written
 * at once to the journal, from which a stopped evaluation resumes, and later, in order, to the tables of the run's folder. At
 * the end, `metrics.json` gets the report, and the journal is removed. `Evaluations.ts` calls it.
 */
import { Clock, Effect, type Scope } from "effect"
import type { WorkerError } from "../../spread/workers/WorkerError.ts"
import type { FormatError } from "../../base/formats/FormatError.ts"
import { ConfigError, display, isPlain, type Plain, toSnakeCase } from "../../base/config/Config.ts"
import { cores } from "../episode/cores.ts"
import { firstDifference } from "../../base/config/difference.ts"
import { parsedJson } from "../../base/config/text.ts"
import { reportingFailures } from "../task/feedbackFailures.ts"
import type { TaskSet } from "../task/TaskSet.ts"
import { inOrder } from "../episode/rollouts/inOrder.ts"
import type { Protocol } from "../episode/Protocol.ts"
import * as Rollouts from "../episode/rollouts/Rollouts.ts"
import { CurrentRun } from "../../run/CurrentRun.ts"
import { outcomeOf } from "../../run/evaluation.ts"
import { finishedResult } from "../../run/finishedResult.ts"
import { derivedName } from "../../run/identifier.ts"
import type { RunFiles } from "../../run/store/RunFiles.ts"
import type { OwnPlace, RunStore } from "../../run/store/RunStore.ts"
import { RunStoreError } from "../../run/store/RunStoreError.ts"
import type { SpendingCounter } from "../lm/middleware/budgeted.ts"
import type { Price } from "../lm/LmConfig.ts"
import { isSpent, type LmError } from "../lm/LmError.ts"
import { inEpisodeSpan } from "../lm/genAi.ts"
import { CallContext } from "../lm/Lm.ts"
import { CallSink } from "../lm/middleware/logged.ts"
import { Dispatcher } from "../../spread/cluster/Dispatcher.ts"
import { callFiles } from "../lm/callFiles.ts"
import { reportingFirstRetry } from "../lm/firstRetry.ts"
import type { Recorder } from "../../run/record/Recorder.ts"
import * as Layout from "../../run/Layout.ts"
import * as Run from "../../run/Run.ts"
import { RunOptions } from "../../run/RunOptions.ts"
import { asSent, runIdOf } from "../../run/spread/SentTraining.ts"
import type { RunSpec } from "../../run/RunSpec.ts"
import { type Chunk, chunkSize, chunksOf, indicesOf } from "../../spread/cluster/sent/chunks.ts"
import { type ChunkEpisode, chunkJob } from "./chunks.ts"
import * as Evaluate from "./Evaluate.ts"
import type { EvaluationSettings } from "./EvaluationConfig.ts"
import { episodeEnded, eventsOf } from "./events.ts"
import * as Journal from "./journal.ts"
import { reportCalls, withCalls } from "./remoteCalls.ts"
import { EvaluationResult, resultOf, scoredEpisodes } from "./result.ts"
import { episodeRow, type EpisodeRow, jsonl, stepRows } from "./rows.ts"
import type { AgentError } from "../agent/AgentError.ts"
import type { Scorer } from "./Scorer.ts"

/** An agent to evaluate. */
export interface Contestant {
  readonly name: string
  /** Whether the config names the agent. If not, the name is derived from the agent's type. */
  readonly isNamed: boolean
  readonly type: string
  readonly model: string | null
  readonly protocol: Protocol
  readonly price: Price | undefined
}

/** An evaluation that is ready to start: its settings, tasks, agents and scorers. */
export interface PreparedEvaluation {
  readonly settings: EvaluationSettings
  readonly tasks: TaskSet
  readonly contestants: ReadonlyArray<Contestant>
  readonly scorers: ReadonlyArray<Scorer>
  /** The config with all defaults, which is saved as `config.yaml`. */
  readonly effective: Plain
  /** The settings on which the episodes depend. They must be the same when the evaluation is resumed. */
  readonly identity: Plain
  /** The rows of another evaluation to compare with; null if there is none. */
  readonly other: ReadonlyArray<EpisodeRow> | null
  /** Whether every call of a model is written to a file. */
  readonly logCalls: boolean
  /** The counter of the calls, tokens and cost of all agents. When an evaluation is resumed, the counter continues. */
  readonly spent: SpendingCounter
  /** The name of the config in error messages. */
  readonly source: string
  readonly place: OwnPlace | undefined
}

export type ExecuteError = ConfigError | LmError | Run.RunError | FormatError | AgentError | WorkerError

interface EvaluationProgress {
  /** The rows of the recorded episodes: first those of the first agent, then those of the second, and so on. */
  readonly rows: Array<EpisodeRow>
  /**
   * The episodes that an earlier process played, by `keyOf`, with their positions in the journal, from which they must be
   * read again.
   */
  readonly earlier: Map<string, Journal.JournalledEpisode>
}

/** Plays the episodes that no earlier process has played, writes tables and report, and returns the result. */
export const execute = Effect.fnUntraced(function* (
  prepared: PreparedEvaluation,
): Effect.fn.Return<EvaluationResult, ExecuteError, RunStore | Recorder | Scope.Scope> {
  const { population = {}, onPlanned } = yield* RunOptions
  const spec = specOf(prepared, population)
  if (onPlanned !== undefined) yield* onPlanned(spec.identity, spec.config)
  return yield* Run.execute({
    spec,
    startedAtMillis: yield* Clock.currentTimeMillis,
    place: prepared.place,
    results: [Layout.evaluation.episodes, Layout.evaluation.steps, Layout.evaluation.table],
    open: (files: RunFiles) => open(prepared, files),
    loop: (state: EvaluationProgress) => playAll(prepared, state),
    position: ({ rows }: EvaluationProgress) => ({ step: rows.length, episodes: rows.length }),
    stopsUpon: isSpent,
    result: {
      schema: EvaluationResult,
      of: ({ rows }: EvaluationProgress) => resultOf(prepared, rows),
      after: (files: RunFiles) => files.remove(Layout.evaluation.journal),
    },
  })
})

const specOf = (
  { settings, tasks, contestants, effective }: PreparedEvaluation,
  population: Readonly<Record<string, string>>,
): RunSpec => {
  const names = contestants.map(({ name }) => name)
  const inPath = contestants.map(({ name, isNamed }) => (isNamed ? name : derivedName(name))).join("+")
  const total = contestants.length * tasks.size * settings.repeats
  const line = `evaluation of ${names.join(", ")} on ${tasks.name}, ${total} episodes, seed ${settings.seed}`
  return {
    kind: "evaluation",
    identity: {
      name: settings.name,
      population: { environment: derivedName(tasks.name), algorithm: inPath, ...population },
      seed: settings.seed,
    },
    config: effective,
    description: settings.description ?? line,
    env: tasks.name,
    algorithm: names.join("+"),
    devices: Object.fromEntries(contestants.flatMap(({ name, model }) => (model === null ? [] : [[name, model]]))),
    total,
    logLevel: settings.output.logLevel,
    quiet: !settings.verbose,
  }
}

/**
 * Makes the state with which the run starts: begins a new journal, or reads the journal of an earlier process. The tables
 * need not be restored, because they are written again from the first episode. If a resumed run has no journal, it must be
 * finished already: then nothing is played, and its saved result is returned.
 */
const open = Effect.fnUntraced(function* (
  prepared: PreparedEvaluation,
  files: RunFiles,
): Effect.fn.Return<Run.Opened<EvaluationProgress, EvaluationResult>, ExecuteError> {
  if (files.resumed && !(yield* files.exists(Layout.evaluation.journal))) {
    yield* checkFinished(prepared, files)
    return { state: { rows: [], earlier: new Map() }, resumedFromStep: null, isOver: () => true }
  }
  const { evaluation, entries, spent, seconds } = yield* Journal.readEarlier(files)
  if (evaluation === undefined) yield* Journal.begin(files, prepared.identity)
  else yield* refuseOther(prepared, evaluation)
  Object.assign(prepared.spent, spent)
  const earlier = new Map(entries.map((kept) => [keyOf(kept.agent, kept.index), kept]))
  return {
    state: { rows: [], earlier },
    resumedFromStep: files.resumed ? entries.length : null,
    seconds,
  }
})

const keyOf = (agent: string, index: number): string => `${index} ${agent}`

/** Returns the evaluation of one agent. It is recorded as a validation, with the agent's index as `seenEpisodes`. */
const evaluationFor = (
  { settings, tasks, contestants }: PreparedEvaluation,
  agentIndex: number,
): Evaluate.EvaluationPlan => ({
  tasks,
  protocol: contestants[agentIndex].protocol,
  seed: settings.seed,
  repeats: settings.repeats,
  concurrency: settings.workers ?? cores(),
  phase: { _tag: "validation", seenEpisodes: agentIndex },
})

/** Plays one episode of an agent, and scores it. */
const playEpisode = (prepared: PreparedEvaluation, agentIndex: number, index: number) =>
  inEpisodeSpan({ agent: prepared.contestants[agentIndex].name, index }, playAndScore(prepared, agentIndex, index))

const playAndScore = Effect.fnUntraced(function* (prepared: PreparedEvaluation, agentIndex: number, index: number) {
  const { contestants, scorers } = prepared
  const { name, price } = contestants[agentIndex]
  const evaluation = evaluationFor(prepared, agentIndex)
  const { phase = { _tag: "default" } } = evaluation
  const played = yield* Evaluate.one(evaluation, index)
  const row = yield* episodeRow(played, { agent: name, scorers, price }).pipe(
    // Label a judge's call with its episode, so that the log and the cache don't depend on the order of concurrent calls.
    Effect.provideService(CallContext, { phase, purpose: "judgement", episode: index + 1, step: 0 }),
  )
  return { played, row }
})

/** Plays the episodes of a chunk for another machine. Includes the calls of models if they are to be logged. */
export const playChunk = Effect.fnUntraced(function* (
  prepared: PreparedEvaluation,
  chunk: Chunk & { readonly agent: number },
) {
  const episodes: Array<ChunkEpisode> = []
  const play = Effect.fnUntraced(function* (index: number) {
    const { result, calls } = yield* withCalls(prepared.logCalls, playEpisode(prepared, chunk.agent, index))
    return { ...result, calls }
  })
  yield* inOrder(indicesOf(chunk), {
    concurrency: prepared.settings.workers ?? cores(),
    work: play,
    emit: (one) => Effect.sync(() => void episodes.push(one)),
  })
  return episodes
})

/** Adds what an episode on another machine has spent to the totals of the run. The calls of judges are not included. */
const addSpending = (
  spent: SpendingCounter,
  { calls, retries, input_tokens, output_tokens, cost }: EpisodeRow,
): void => {
  spent.calls += calls + retries
  spent.inputTokens += input_tokens
  spent.outputTokens += output_tokens
  spent.money += cost ?? 0
}

type Add = (entry: Journal.JournalEntry) => Effect.Effect<void, RunStoreError>

const playAll = Effect.fnUntraced(function* (prepared: PreparedEvaluation, state: EvaluationProgress) {
  const { files, recording } = yield* CurrentRun
  const add = yield* Journal.journal(files)
  const calls = prepared.logCalls ? callFiles(files) : null
  const playing = Effect.forEach(prepared.contestants.keys(), (agentIndex) => play(prepared, state, agentIndex, add), {
    discard: true,
  })
  const warn = (message: string) => recording.emit([{ _tag: "Warning", message }])
  yield* reportingFirstRetry(reportingFailures(Effect.provideService(playing, CallSink, calls), warn), warn)
}, Effect.scoped)

/** Plays all episodes of one agent, or reads them from the journal, and records them in the order of the tasks. */
const play = Effect.fnUntraced(function* (
  prepared: PreparedEvaluation,
  { rows, earlier }: EvaluationProgress,
  agentIndex: number,
  add: Add,
) {
  const { spent, contestants, identity } = prepared
  const contestant = contestants[agentIndex]
  const { name } = contestant
  const { files, recording, seconds } = yield* CurrentRun
  const evaluation = evaluationFor(prepared, agentIndex)
  const rowsBefore = rows.length
  const append = {
    rollouts: yield* files.appending(Layout.validationRollouts(agentIndex)),
    episodes: yield* files.appending(Layout.evaluation.episodes),
    steps: yield* files.appending(Layout.evaluation.steps),
  }
  const play = {
    run: yield* runIdOf(files.directory, identity),
    config: asSent(prepared.effective),
    identity,
    agent: agentIndex,
  }
  const dispatcher = yield* Dispatcher
  const isSpread = dispatcher.inFlight !== undefined
  const total = Evaluate.sizeOf(evaluation)

  /** Plays the episodes of a chunk that are not in the journal, here or on another machine, and returns all of them. */
  const work = Effect.fnUntraced(function* (chunk: Chunk) {
    const keptOf = (index: number) => earlier.get(keyOf(name, index))
    const isMissing = indicesOf(chunk).some((index) => keptOf(index) === undefined)
    const here = Effect.forEach(indicesOf(chunk), (index) =>
      Effect.map(playEpisode(prepared, agentIndex, index), (one): ChunkEpisode => ({ ...one, calls: [] })),
    )
    const answer = isMissing ? yield* dispatcher.run(chunkJob, { ...play, ...chunk }, here) : []
    const entries: Array<Journal.JournalEntry> = []
    for (const index of indicesOf(chunk)) {
      const kept = keptOf(index)
      if (kept !== undefined) {
        earlier.delete(keyOf(name, index))
        entries.push(yield* Journal.readAgain(files, kept))
        continue
      }
      const { played, row, calls } = answer[index - chunk.from]
      if (isSpread) addSpending(spent, row)
      yield* reportCalls(calls)
      const entry = { played, row, spent: spent.save(), seconds: yield* seconds }
      yield* add(entry)
      entries.push(entry)
    }
    return entries
  })
  const record = Effect.fnUntraced(function* ({ played, row }: Journal.JournalEntry) {
    rows.push(row)
    for (const rollout of played.rollouts) yield* append.rollouts(Rollouts.line(rollout))
    yield* append.steps(jsonl(stepRows(played, name)))
    yield* append.episodes(jsonl([row]))
    const { index, totalScore, steps, ending } = played
    const ended = { step: rows.length, episode: rowsBefore + index, return: totalScore, length: steps.length }
    yield* recording.emit([
      ...eventsOf(played, { seenEpisodes: agentIndex, agent: contestant, verbose: true }),
      episodeEnded(ended, ending),
    ])
  })
  yield* inOrder(chunksOf(total, isSpread ? chunkSize(total) : 1), {
    concurrency: dispatcher.inFlight ?? evaluation.concurrency,
    work,
    emit: (entries) => Effect.forEach(entries, record, { discard: true }),
  })
  const own = rows.slice(rowsBefore)
  const episodes = scoredEpisodes(own, name)
  const failed = own.length - episodes.length
  yield* recording.emit([
    episodes.length === 0
      ? { _tag: "Warning", message: `${name}: all ${failed} episodes failed` }
      : { _tag: "ValidationEnded", step: agentIndex, seenEpisodes: agentIndex, ...outcomeOf(episodes), failed },
  ])
})

/** Checks a resumed run that has no journal. Fails unless the run is finished and had the same settings. */
const checkFinished = Effect.fnUntraced(function* ({ effective, source }: PreparedEvaluation, files: RunFiles) {
  const path = files.directory
  if ((yield* finishedResult(files, EvaluationResult)) === undefined || !(yield* files.exists(Layout.configJson))) {
    const message = `${path}: expected an evaluation that was stopped, found nothing to resume; start a new evaluation without --resume`
    return yield* new RunStoreError({ path, operation: "resume", message })
  }
  const difference = firstDifference(
    essential(effective),
    essential(parsedJson(yield* files.readText(Layout.configJson))),
  )
  if (difference === undefined) return
  const { key, now, then } = difference
  const problem = `${path} was finished with ${display(then)}, found ${display(now)}; start a new evaluation without --resume`
  return yield* ConfigError.at({ source }, key, problem)
})

/** Returns the settings on which an evaluation's result depends, in snake_case, without all other settings. */
const essential = (config: unknown): Plain => {
  const renamed = toSnakeCase(config)
  if (!isPlain(renamed)) return {}
  const { workers: _1, verbose: _2, output: _3, description: _4, ...rest } = renamed
  return rest
}

/** Fails if the settings in the first line of the journal differ from those of this evaluation. */
const refuseOther = ({ identity, source }: PreparedEvaluation, before: Plain): Effect.Effect<void, ConfigError> => {
  const keys = [...new Set([...Object.keys(identity), ...Object.keys(before)])]
  const key = keys.find((one) => JSON.stringify(identity[one]) !== JSON.stringify(before[one]))
  if (key === undefined) return Effect.void
  const problem = `the evaluation was started with ${display(before[key])}, found ${display(identity[key])}; start a new evaluation without --resume`
  return Effect.fail(ConfigError.at({ source }, key, problem))
}
