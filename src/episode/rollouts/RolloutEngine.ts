/**
 * Plays a batch of requests, many at a time, and gives what came of each in the requests' order.
 *
 * An episode that fails stops none of the others: it is written down, tried again, or left out. What would fail for all,
 * such as a wrong key or a budget that is spent, stops the batch. A batch that was stopped goes on where its file ends:
 * the same requests give the same file, however many are played at a time, whichever is done first, and wherever it was
 * stopped; as long as episodes only depend on their seeds, so not on a memory that others write.
 *
 * @example
 * ```ts
 * const summary = yield* RolloutEngine.write(
 *   { requests, tasks, protocol: SingleAgent.make(agent), concurrency: 100, onFailure: "retry" },
 *   "outcomes.jsonl",
 * )
 * const good = RolloutEngine.rollouts("outcomes.jsonl").pipe(Stream.filter(RolloutFilters.rewardAtLeast(1)))
 * ```
 */
import { Cause, Effect, Exit, type FileSystem, Option, type Path, Queue, Stream } from "effect"
import { messageOf } from "../../config/text.ts"
import { sha256 } from "../../config/sha256.ts"
import type { DatasetError } from "../../task/TaskSet.ts"
import type { TextEnv } from "../../task/TextEnv.ts"
import { CallContext } from "../../lm/Lm.ts"
import { type LmError, isFinal } from "../../lm/LmError.ts"
import { ProtocolError } from "../ProtocolError.ts"
import { inOrder } from "./inOrder.ts"
import { type JsonLinesError, linesOf, valueOf } from "../../formats/jsonLines.ts"
import { type Failure, Outcome } from "./Outcome.ts"
import * as outcomeFile from "./outcomeFile.ts"
import type { EpisodeFailure, Protocol } from "../Protocol.ts"
import type { Rollout } from "../Rollout.ts"
import type { RolloutRequest } from "./RolloutRequest.ts"
import { utf8 } from "../../config/utf8.ts"

/** Tasks by their places; a `TaskSet` is such a set. */
export interface Tasks<Env = TextEnv> {
  readonly size: number
  readonly digest: string
  readonly at: (index: number) => Effect.Effect<Env, DatasetError>
}

/** What is told while a batch is played, as it happens: requests by their places in the batch. */
export type BatchEvent =
  /** An earlier run's part, where there is one. */
  | { readonly _tag: "Resumed"; readonly done: number; readonly failed: number }
  | { readonly _tag: "Started"; readonly index: number; readonly id: string }
  | { readonly _tag: "Retried"; readonly index: number; readonly id: string; readonly failure: Failure }
  | {
      readonly _tag: "Finished"
      readonly index: number
      readonly id: string
      readonly rollouts: ReadonlyArray<Rollout>
      readonly failure: Failure | null
      readonly attempts: number
    }

export interface RolloutBatch<Env = TextEnv> {
  readonly requests: Iterable<RolloutRequest>
  readonly tasks: Tasks<Env>
  readonly protocol: Protocol<Env> | ((request: RolloutRequest) => Protocol<Env>)
  /** Episodes at a time. */
  readonly concurrency: number
  /**
   * What is done with an episode that failed: `record` (unless given) keeps why it did, `retry` plays it again first, by
   * the same seeds, and `drop` leaves it out.
   */
  readonly onFailure?: "record" | "retry" | "drop"
  /** How often it is played again; 2 unless given. */
  readonly retries?: number
  /** For the log of calls. */
  readonly phase?: CallContext["phase"]
  readonly onEvent?: (event: BatchEvent) => Effect.Effect<void>
}

export interface BatchSummary {
  /** Of this run and of those that it went on with; so are the others. */
  readonly requests: number
  readonly rollouts: number
  /** Requests that are kept with why they failed. */
  readonly failed: number
  readonly dropped: number
  /** Requests that an earlier run had done. */
  readonly resumed: number
}

const protocolOf = <Env>({ protocol }: RolloutBatch<Env>, request: RolloutRequest): Protocol<Env> =>
  typeof protocol === "function" ? guarded(protocol, request) : protocol

/** The protocol of a request; where the user's function throws, one whose episodes fail with what it threw. */
const guarded = <Env>(
  protocolFor: (request: RolloutRequest) => Protocol<Env>,
  request: RolloutRequest,
): Protocol<Env> => {
  try {
    return protocolFor(request)
  } catch (error) {
    const name = "unknown"
    const failure = new ProtocolError({
      protocol: name,
      rollout: request.id,
      message: `protocol: the function threw for the request ${request.id}: ${messageOf(error)}; expected a protocol`,
      ...(error instanceof Error && error.stack !== undefined ? { userStack: error.stack } : {}),
    })
    return { name, play: () => Effect.fail(failure) }
  }
}

const silent = (): Effect.Effect<void> => Effect.void

/** One request, as often as it takes. */
const playing = Effect.fnUntraced(function* <Env>(
  batch: RolloutBatch<Env>,
  tasks: string,
  request: RolloutRequest,
  index: number,
): Effect.fn.Return<Outcome, LmError> {
  const { onFailure = "record", phase = { _tag: "default" }, onEvent = silent } = batch
  const tries = onFailure === "retry" ? 1 + (batch.retries ?? 2) : 1
  const { id, task, envSeed, samplingSeed, groupId, tags } = request
  const protocol = protocolOf(batch, request)
  const context: CallContext = { phase, purpose: "action", episode: index + 1, step: 0 }
  const episode: Effect.Effect<ReadonlyArray<Rollout>, EpisodeFailure | DatasetError> = Effect.flatMap(
    batch.tasks.at(task),
    (env) => protocol.play({ id, env, envSeed, samplingSeed, groupId, tags }),
  ).pipe(Effect.scoped, Effect.provideService(CallContext, context))

  yield* onEvent({ _tag: "Started", index, id })
  for (let attempts = 1; ; attempts++) {
    const exit = yield* Effect.exit(episode)
    let rollouts: ReadonlyArray<Rollout> = []
    let failure: Failure | null = null
    if (Exit.isSuccess(exit)) rollouts = exit.value
    else {
      const error = Option.getOrUndefined(Cause.findErrorOption(exit.cause))
      // What is interrupted is not over, and what is a bug is no outcome.
      if (error === undefined) return yield* Effect.orDie(Effect.failCause(exit.cause))
      if (isFinal(error)) return yield* error
      failure = { error: error._tag, message: error.message }
      if (attempts < tries) {
        yield* onEvent({ _tag: "Retried", index, id, failure })
        continue
      }
    }
    yield* onEvent({ _tag: "Finished", index, id, rollouts, failure, attempts })
    return { request, protocol: protocol.name, tasks, rollouts, failure }
  }
})

/** The digest of a set can be as long as the set; in files it is 16 letters. */
const shortDigest = (tasks: Pick<Tasks, "digest">): Effect.Effect<string> =>
  Effect.map(sha256(utf8.encode(tasks.digest)), (digest) => digest.slice(0, 16))

const going = Effect.fnUntraced(function* <Env, E>(
  batch: RolloutBatch<Env>,
  tasks: string,
  requests: Iterable<RolloutRequest>,
  done: outcomeFile.Done,
  tell: (outcome: Outcome) => Effect.Effect<void, E>,
): Effect.fn.Return<BatchSummary, E | LmError> {
  const { onFailure, onEvent = silent, concurrency } = batch
  let { outcomes, rollouts, failed, dropped } = done
  const resumed = outcomes + dropped
  if (resumed > 0) yield* onEvent({ _tag: "Resumed", done: resumed, failed })
  yield* inOrder(requests, {
    concurrency,
    work: (request, index) => playing(batch, tasks, request, resumed + index),
    tell: (outcome) => {
      if (outcome.failure !== null && onFailure === "drop") {
        dropped++
        return Effect.void
      }
      outcomes++
      rollouts += outcome.rollouts.length
      if (outcome.failure !== null) failed++
      return tell(outcome)
    },
  })
  return { requests: outcomes + dropped, rollouts, failed, dropped, resumed }
})

/** Plays all, and tells of each in the requests' order. */
export const each = Effect.fnUntraced(function* <Env, E>(
  batch: RolloutBatch<Env>,
  tell: (outcome: Outcome) => Effect.Effect<void, E>,
): Effect.fn.Return<BatchSummary, E | LmError> {
  return yield* going(batch, yield* shortDigest(batch.tasks), batch.requests, outcomeFile.nothingDone, tell)
})

/** The same as a stream: what isn't taken yet isn't played much ahead of. */
export const stream = <Env>(batch: RolloutBatch<Env>): Stream.Stream<Outcome, LmError> =>
  Stream.callback((queue) =>
    Effect.matchCauseEffect(
      each(batch, (outcome) => Queue.offer(queue, outcome)),
      { onFailure: (cause) => Queue.failCause(queue, cause), onSuccess: () => Queue.end(queue) },
    ),
  )

/**
 * Plays all into a file, a line each, and goes on where the file ends. One that holds another batch is left as it is, and
 * an error.
 */
export const write = <Env>(
  batch: RolloutBatch<Env>,
  path: string,
): Effect.Effect<BatchSummary, LmError | JsonLinesError, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    const tasks = yield* shortDigest(batch.tasks)
    const requests = batch.requests[Symbol.iterator]()
    const done = yield* outcomeFile.goOn(path, {
      requests,
      tasks,
      protocolOf: (request) => protocolOf(batch, request).name,
      gaps: batch.onFailure === "drop",
    })
    const file = yield* outcomeFile.appending(path)
    const left = { [Symbol.iterator]: () => requests }
    const summary = yield* going(batch, tasks, left, done, file.add).pipe(
      Effect.onError(() => Effect.ignore(file.flush)),
    )
    yield* file.flush
    return summary
  }).pipe(Effect.scoped)

const outcomeOf = valueOf(Outcome)

/** What a file holds, in order; a last line that somebody was stopped within is an error. */
export const read = (path: string): Stream.Stream<Outcome, JsonLinesError, FileSystem.FileSystem> =>
  Stream.mapEffect(linesOf(path), (found) => outcomeOf(path, found))

/** The rollouts alone. */
export const rollouts = (path: string): Stream.Stream<Rollout, JsonLinesError, FileSystem.FileSystem> =>
  Stream.flatMap(read(path), ({ rollouts }) => Stream.fromIterable(rollouts))
