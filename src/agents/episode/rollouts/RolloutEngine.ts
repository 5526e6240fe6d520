/**
 * Plays a batch of requests for episodes, many at a time. The outcomes come in the order of the requests: `write` writes them
 * to a file, `stream` returns a stream, and `each` calls a function. `read` and `rollouts` read such a file.
 *
 * A failed episode does not stop the others: it is recorded, retried or dropped. A failure that all episodes would share,
 * such as a wrong API key or a spent budget, stops the batch; the next `write` resumes at the end of the file. If episodes
 * depend only on their seeds (not on a memory that other episodes write), the same requests give the same file, whatever the
 * concurrency, and whether or not the batch was stopped.
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
import type { FormatError } from "../../../base/formats/FormatError.ts"
import { messageOf } from "../../../base/text/text.ts"
import { sha256 } from "../../../base/text/sha256.ts"
import type { DatasetError } from "../../task/TaskSet.ts"
import type { TextEnv } from "../../task/TextEnv.ts"
import { CallContext } from "../../lm/Lm.ts"
import { type LmError, isFinal } from "../../lm/LmError.ts"
import { ProtocolError } from "../ProtocolError.ts"
import { inOrder } from "./inOrder.ts"
import { linesOf, valueOf } from "../../../base/formats/jsonLines.ts"
import { type RolloutFailure, RolloutOutcome } from "./Outcome.ts"
import * as outcomeFile from "./outcomeFile.ts"
import type { Protocol } from "../Protocol.ts"
import type { Rollout } from "../Rollout.ts"
import type { RolloutRequest } from "./RolloutRequest.ts"
import { utf8 } from "../../../base/text/utf8.ts"

/** A set of tasks, by position. `digest` changes if the tasks change. A `TaskSet` has this interface. */
export interface Tasks<Env = TextEnv> {
  readonly size: number
  readonly digest: string
  readonly at: (index: number) => Effect.Effect<Env, DatasetError>
}

/** An event while a batch is played; `index` is the position of the request in the batch. */
export type BatchEvent =
  /** Comes first if earlier runs of the batch have completed `done` requests, of which `failed` are recorded as failures. */
  | { readonly _tag: "Resumed"; readonly done: number; readonly failed: number }
  | { readonly _tag: "Started"; readonly index: number; readonly id: string }
  | { readonly _tag: "Retried"; readonly index: number; readonly id: string; readonly failure: RolloutFailure }
  | {
      readonly _tag: "Finished"
      readonly index: number
      readonly id: string
      readonly rollouts: ReadonlyArray<Rollout>
      readonly failure: RolloutFailure | null
      readonly attempts: number
    }

export interface RolloutBatch<Env = TextEnv> {
  readonly requests: Iterable<RolloutRequest>
  readonly tasks: Tasks<Env>
  readonly protocol: Protocol<Env> | ((request: RolloutRequest) => Protocol<Env>)
  /** The number of episodes that are played at the same time. */
  readonly concurrency: number
  /**
   * The treatment of a failed episode: `record` (the default) records the failure, `retry` plays the episode again with
   * the same seeds before it records a failure, and `drop` leaves it out.
   */
  readonly onFailure?: "record" | "retry" | "drop"
  /** The number of retries of each failed episode with `onFailure: "retry"`, 2 by default. */
  readonly retries?: number
  /** The phase, such as training, with which the log of model calls labels the calls. */
  readonly phase?: CallContext["phase"]
  readonly onEvent?: (event: BatchEvent) => Effect.Effect<void>
}

/** The totals of a batch. If it was resumed, they include the requests that earlier runs completed. */
export interface BatchSummary {
  readonly requests: number
  readonly rollouts: number
  /** The number of requests that are recorded as failures. */
  readonly failed: number
  readonly dropped: number
  /** The number of requests that earlier runs completed. */
  readonly resumed: number
}

/** Returns the protocol of a request. If the user's function throws, the protocol's episodes fail with that error. */
const protocolOf = <Env>({ protocol }: RolloutBatch<Env>, request: RolloutRequest): Protocol<Env> => {
  if (typeof protocol !== "function") return protocol
  try {
    return protocol(request)
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

/**
 * Plays a request, with its retries, and returns the outcome. Fails only for a reason that all requests would share, e.g. a
 * wrong API key.
 */
const playRequest = Effect.fnUntraced(function* <Env>(
  batch: RolloutBatch<Env>,
  tasks: string,
  request: RolloutRequest,
  index: number,
): Effect.fn.Return<RolloutOutcome, LmError> {
  const { onFailure = "record", phase = { _tag: "default" }, onEvent = silent } = batch
  const tries = onFailure === "retry" ? 1 + (batch.retries ?? 2) : 1
  const { id, task, envSeed, samplingSeed, groupId, tags } = request
  const protocol = protocolOf(batch, request)
  const context: CallContext = { phase, purpose: "action", episode: index + 1, step: 0 }
  const episode = Effect.flatMap(batch.tasks.at(task), (env) =>
    protocol.play({ id, env, envSeed, samplingSeed, groupId, tags }),
  ).pipe(Effect.scoped, Effect.provideService(CallContext, context))

  yield* onEvent({ _tag: "Started", index, id })
  for (let attempts = 1; ; attempts++) {
    const exit = yield* Effect.exit(episode)
    let rollouts: ReadonlyArray<Rollout> = []
    let failure: RolloutFailure | null = null
    if (Exit.isSuccess(exit)) rollouts = exit.value
    else {
      const error = Option.getOrUndefined(Cause.findErrorOption(exit.cause))
      // A failure without a typed error is an interruption or a defect, which is not an outcome of the request.
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

/** Hashes the digest of a set of tasks to 16 characters, because the digest can be as long as the set. */
const shortDigest = (tasks: Pick<Tasks, "digest">): Effect.Effect<string> =>
  Effect.map(sha256(utf8.encode(tasks.digest)), (digest) => digest.slice(0, 16))

/**
 * Plays the remaining requests, after those that `done` counts. Emits the outcomes in order, and returns the batch's totals.
 */
const playRest = Effect.fn("effect-rl.rollouts")(function* <Env, E>(
  batch: RolloutBatch<Env>,
  tasks: string,
  requests: Iterable<RolloutRequest>,
  done: outcomeFile.CompletedRequests,
  emit: (outcome: RolloutOutcome) => Effect.Effect<void, E>,
): Effect.fn.Return<BatchSummary, E | LmError> {
  const { onFailure, onEvent = silent, concurrency } = batch
  let { outcomes, rollouts, failed, dropped } = done
  const resumed = outcomes + dropped
  if (resumed > 0) yield* onEvent({ _tag: "Resumed", done: resumed, failed })
  yield* inOrder(requests, {
    concurrency,
    work: (request, index) => playRequest(batch, tasks, request, resumed + index),
    emit: (outcome) => {
      if (outcome.failure !== null && onFailure === "drop") {
        dropped++
        return Effect.void
      }
      outcomes++
      rollouts += outcome.rollouts.length
      if (outcome.failure !== null) failed++
      return emit(outcome)
    },
  })
  return { requests: outcomes + dropped, rollouts, failed, dropped, resumed }
})

/** Plays a batch, and calls `emit` with each outcome, in the order of the requests. */
export const each = Effect.fnUntraced(function* <Env, E>(
  batch: RolloutBatch<Env>,
  emit: (outcome: RolloutOutcome) => Effect.Effect<void, E>,
): Effect.fn.Return<BatchSummary, E | LmError> {
  return yield* playRest(batch, yield* shortDigest(batch.tasks), batch.requests, outcomeFile.nothingDone, emit)
})

/** Plays a batch as a stream of outcomes. It plays a limited number of episodes ahead of its consumer. */
export const stream = <Env>(batch: RolloutBatch<Env>): Stream.Stream<RolloutOutcome, LmError> =>
  Stream.callback((queue) =>
    Effect.matchCauseEffect(
      each(batch, (outcome) => Queue.offer(queue, outcome)),
      { onFailure: (cause) => Queue.failCause(queue, cause), onSuccess: () => Queue.end(queue) },
    ),
  )

/**
 * Plays a batch into a file with a line for each outcome, and resumes at the end of an existing file. If the file
 * belongs to another batch, it fails and leaves the file unchanged.
 */
export const write = <Env>(
  batch: RolloutBatch<Env>,
  path: string,
): Effect.Effect<BatchSummary, LmError | FormatError, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    const tasks = yield* shortDigest(batch.tasks)
    const requests = batch.requests[Symbol.iterator]()
    const nameOf = (request: RolloutRequest): string => protocolOf(batch, request).name
    const done = yield* outcomeFile.resume(path, requests, tasks, nameOf, batch.onFailure === "drop")
    const file = yield* outcomeFile.appending(path)
    const rest = { [Symbol.iterator]: () => requests }
    const playing = playRest(batch, tasks, rest, done, file.add)
    const summary = yield* Effect.onError(playing, () => Effect.ignore(file.flush))
    yield* file.flush
    return summary
  }).pipe(Effect.scoped)

const outcomeOf = valueOf(RolloutOutcome)

/** Reads the outcomes of a file, in order. An incomplete last line is an error. */
export const read = (path: string): Stream.Stream<RolloutOutcome, FormatError, FileSystem.FileSystem> =>
  Stream.mapEffect(linesOf(path), (line) => outcomeOf(path, line))

/** Reads the rollouts of a file of outcomes. */
export const rollouts = (path: string): Stream.Stream<Rollout, FormatError, FileSystem.FileSystem> =>
  Stream.flatMap(read(path), ({ rollouts }) => Stream.fromIterable(rollouts))
