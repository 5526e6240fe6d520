/**
 * Lets other machines play episodes for the training of an agent, if the `Dispatcher` sends jobs to other machines.
 * `validation` plays the validation tasks. `ahead` plays the training episodes of an agent without a memory, before the loop
 * needs them. An agent with a memory plays its training episodes in the training's own process, because it learns from each
 * one for the next.
 */
import { Effect, Queue, type Scope } from "effect"
import type { WorkerError } from "../../../spread/workers/WorkerError.ts"
import type { AgentError } from "../../agent/AgentError.ts"
import { Dispatcher } from "../../../spread/cluster/Dispatcher.ts"
import { sha256 } from "../../../base/text/sha256.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import { inOrder } from "../../episode/rollouts/inOrder.ts"
import { usageOf } from "../../episode/Rollout.ts"
import { type Chunk, chunkSize, chunksOf } from "../../../spread/cluster/sent/chunks.ts"
import type { EpisodeToScore } from "../../evaluate/PlayedEpisode.ts"
import { reportCalls } from "../../evaluate/remoteCalls.ts"
import type { LmError } from "../../lm/LmError.ts"
import type { Rollout } from "../../episode/Rollout.ts"
import { CurrentRun } from "../../../run/CurrentRun.ts"
import { attach } from "../../../run/spread/Attachment.ts"
import { runIdOf } from "../../../run/spread/SentTraining.ts"
import type { RunStoreError } from "../../../run/store/RunStoreError.ts"
import { type AgentTraining, totalEpisodesOf } from "../AgentTraining.ts"
import type { RuntimeState } from "../RuntimeState.ts"
import { rolloutJob, type TrainingEpisode, validationJob } from "./jobs.ts"
import { playRollouts, playValidation } from "./play.ts"

/** The smallest number of jobs into which the episodes are divided (fewer if there are fewer episodes). */
const fewestJobs = 64

/**
 * Makes the id of the run for its jobs, and the counter of what other machines spend. Undefined if no jobs are sent to other
 * machines.
 */
export const spreadOf = Effect.fnUntraced(function* ({ sendable, agent, spent, price }: AgentTraining) {
  const dispatcher = yield* Dispatcher
  if (dispatcher.inFlight === undefined || sendable === undefined) return undefined
  const { files } = yield* CurrentRun
  const { training, identity } = sendable
  const fields = { run: yield* runIdOf(files.directory, { training, identity }), training, identity }
  const pay = (rollouts: ReadonlyArray<Rollout>): void => {
    if (agent.model === null || spent === undefined) return
    const { calls, retries, inputTokens, outputTokens } = usageOf(rollouts)
    spent.calls += calls + retries
    spent.add({ inputTokens, outputTokens, reasoningTokens: 0 }, price)
  }
  return { dispatcher, inFlight: dispatcher.inFlight, files, fields, pay }
})
type Spread = NonNullable<Effect.Success<ReturnType<typeof spreadOf>>>

/** Plays all validation tasks on other machines, and passes the episodes to `emit` in the order of the tasks. */
export const validation = Effect.fnUntraced(function* <E>(
  { dispatcher, inFlight, files, fields, pay }: Spread,
  training: AgentTraining,
  seen: number,
  emit: (played: EpisodeToScore, unanswered: LmError | null) => Effect.Effect<void, E>,
): Effect.fn.Return<void, E | LmError | AgentError | WorkerError | RunStoreError, Scope.Scope> {
  const { agent, validation } = training
  const lines = agent.memory === null ? null : utf8.encode(yield* agent.memory.snapshot)
  const memory = lines === null ? null : yield* attach(files, fields.run, lines)
  const memoryDigest = lines === null ? "" : (yield* sha256(lines)).slice(0, 12)
  const total = validation?.size ?? 0
  yield* inOrder(chunksOf(total, chunkSize(total, fewestJobs)), {
    concurrency: inFlight,
    work: (chunk) =>
      dispatcher
        .run(
          validationJob,
          { ...fields, seen, memory, memoryDigest, ...chunk },
          playValidation(training, agent, seen, chunk),
        )
        .pipe(Effect.catchTag("EndedEarly", ({ episodes }) => Effect.succeed(episodes))),
    emit: Effect.fnUntraced(function* (episodes) {
      for (const { played, unanswered, calls } of episodes) {
        pay(played.rollouts)
        yield* reportCalls(calls)
        yield* emit(played, unanswered)
      }
    }),
  })
}, Effect.scoped)

/**
 * Begins to play the remaining training episodes on other machines, until the scope closes. Returns the Effect that waits for
 * the next episode; undefined for an agent with a memory.
 */
export const ahead = Effect.fnUntraced(function* (
  { dispatcher, inFlight, fields, pay }: Spread,
  training: AgentTraining,
  { seen, begunAt }: RuntimeState,
) {
  const total = totalEpisodesOf(training)
  if (training.agent.memory !== null || seen >= total) return undefined
  const size = chunkSize(total, fewestJobs)
  // A resumed run asks for the same chunks again, so that it gets answers that already exist.
  const chunks = chunksOf(total, size)
    .filter(({ to }) => to > seen)
    .map(({ from, to }): Chunk => ({ from: Math.max(from, begunAt), to }))
  const episodes = yield* Queue.bounded<TrainingEpisode, WorkerError>(size)
  yield* inOrder(chunks, {
    concurrency: inFlight,
    work: (chunk) =>
      dispatcher.run(rolloutJob, { ...fields, ...chunk }, playRollouts(training, chunk)).pipe(
        Effect.catchTag("EndedEarly", (failed) => Effect.succeed(failed.episodes)),
        Effect.map((played) => played.slice(Math.max(0, seen - chunk.from))),
      ),
    emit: (played) => Effect.asVoid(Queue.offerAll(episodes, played)),
  }).pipe(
    Effect.catchCause((cause) => Queue.failCause(episodes, cause)),
    Effect.forkScoped,
  )
  return Effect.tap(Queue.take(episodes), ({ rollout, calls }) => {
    if (rollout !== null) pay([rollout])
    return reportCalls(calls)
  })
})
