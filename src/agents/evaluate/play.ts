/**
 * Plays and scores the episodes of an evaluation, here or on other machines. Each episode is written at once to the journal, and
 * later, in order, to the tables of the run's folder. `execute.ts` and `worker.ts` call it.
 */
import { Effect } from "effect"
import { cores } from "../episode/cores.ts"
import { reportingFailures } from "../task/feedbackFailures.ts"
import { inOrder } from "../episode/rollouts/inOrder.ts"
import * as Rollouts from "../episode/rollouts/Rollouts.ts"
import { CurrentRun } from "../../run/CurrentRun.ts"
import { outcomeOf } from "../../run/evaluation.ts"
import type { RunStoreError } from "../../run/store/RunStoreError.ts"
import type { SpendingCounter } from "../lm/middleware/budgeted.ts"
import { inEpisodeSpan } from "../lm/genAi.ts"
import { CallContext } from "../lm/Lm.ts"
import { CallSink } from "../lm/middleware/logged.ts"
import { Dispatcher } from "../../spread/cluster/Dispatcher.ts"
import { callFiles } from "../lm/callFiles.ts"
import { reportingFirstRetry } from "../lm/firstRetry.ts"
import * as Layout from "../../run/Layout.ts"
import { asSent, runIdOf } from "../../run/spread/SentTraining.ts"
import { type Chunk, chunkSize, chunksOf, indicesOf } from "../../spread/cluster/sent/chunks.ts"
import { type ChunkEpisode, chunkJob } from "./chunks.ts"
import * as Evaluate from "./Evaluate.ts"
import { episodeEnded, eventsOf } from "./events.ts"
import * as Journal from "./journal.ts"
import { reportCalls, withCalls } from "./remoteCalls.ts"
import { scoredEpisodes } from "./result.ts"
import { episodeRow, type EpisodeRow, jsonl, stepRows } from "./rows.ts"
import type { EvaluationProgress, PreparedEvaluation } from "./PreparedEvaluation.ts"

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

/** Plays all episodes of all agents, or reads them from the journal, and records them. */
export const playAll = Effect.fnUntraced(function* (prepared: PreparedEvaluation, state: EvaluationProgress) {
  const { files, recording } = yield* CurrentRun
  const add = yield* Journal.open(files)
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
    const keptOf = (index: number) => earlier.get(Journal.keyOf(name, index))
    const isMissing = indicesOf(chunk).some((index) => keptOf(index) === undefined)
    const here = Effect.forEach(indicesOf(chunk), (index) =>
      Effect.map(playEpisode(prepared, agentIndex, index), (one): ChunkEpisode => ({ ...one, calls: [] })),
    )
    const answer = isMissing ? yield* dispatcher.run(chunkJob, { ...play, ...chunk }, here) : []
    const entries: Array<Journal.JournalEntry> = []
    for (const index of indicesOf(chunk)) {
      const kept = keptOf(index)
      if (kept !== undefined) {
        earlier.delete(Journal.keyOf(name, index))
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
