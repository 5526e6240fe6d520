/**
 * Defines how a job reaches a worker. Each job is a durable workflow of Effect Cluster, whose only step puts the job into a
 * durable queue and waits for the answer. The workflow and the queue are kept in Postgres, so neither a worker nor a client
 * that disappears loses them. Workers take jobs from the queue when they have a free slot, so fast workers get more of them;
 * the workflow belongs to whichever worker holds its shard, and costs that worker nothing.
 *
 * A job that a worker has taken is renewed every second. If it is not renewed for five seconds (the worker was killed,
 * frozen or cut off), the next free worker takes it. Both may finish it: the first answer counts.
 */
import { Cause, Effect, Exit, Layer, Schedule, Schema } from "effect"
import * as PersistedQueue from "effect/persistence/PersistedQueue"
import * as DurableDeferred from "effect/workflow/DurableDeferred"
import * as Workflow from "effect/workflow/Workflow"
import { WorkerError } from "../workers/WorkerError.ts"
import { Answer, type Handler } from "./Dispatcher.ts"
import { checkSize, persistently } from "./persistence.ts"

/** The Schema of a job as clients send it. */
const Sent = {
  job: Schema.String,
  /** The version of the code that asks for the job. Only a worker with the same version does it. */
  version: Schema.String,
  /** The key of the job, which begins with the name of its kind. */
  key: Schema.String,
  /** The number of times that the workflow had to begin again because Postgres failed in the middle of it. */
  round: Schema.Int,
  payload: Schema.Unknown,
}

/**
 * The number of seconds without a renewal after which another worker may take a job, and the number of seconds between two
 * renewals.
 */
export const leaseSeconds = 5
export const renewSeconds = 1

/** The number of workers that may lose a job before it fails. The job itself may be what ends them. */
const mostLost = 20

/** The workflow of one job: puts it into the queue, and waits for its answer. */
export const JobWorkflow = Workflow.make("effect-rl/Job", {
  payload: Sent,
  idempotencyKey: ({ version, key, round }) => `${version} ${key} ${round}`,
  success: Answer,
  error: WorkerError,
  suspendedRetrySchedule: Schedule.min([Schedule.exponential(100, 1.3), Schedule.spaced(1000)]),
})

/** The name under which the engine keeps the answer of a job. */
export const answerName = "effect-rl/answer"
const answered = DurableDeferred.make(answerName, { success: Answer, error: WorkerError })

const Queued = Schema.Struct({ ...Sent, token: DurableDeferred.Token })
type Queued = typeof Queued.Type

/** The name of the queue of one version of the code. */
export const queueName = (version: string): string => `effect-rl/jobs ${version}`

/** Opens the queue of one version of the code. Jobs that a client of another version left behind stay in another queue. */
const queueOf = (version: string) =>
  PersistedQueue.make({
    name: queueName(version),
    schema: Queued,
    // The limit `mostLost` applies earlier, and answers the job; a job that reached this limit would get no answer.
    maxAttempts: 1000,
    retrySchedule: Schedule.spaced(1000),
  })

/** Provides the code of the workflow to a worker. */
export const workflowLayer = JobWorkflow.toLayer(
  Effect.fnUntraced(function* (sent, id) {
    const token = yield* DurableDeferred.token(answered)
    const jobs = yield* queueOf(sent.version)
    yield* persistently(sent, "putting it into the queue", jobs.offer({ ...sent, token }, { id }))
    return yield* DurableDeferred.await(answered)
  }),
)

/** Receives the reports of a worker about the jobs in its slots. */
export interface Watcher {
  readonly started: (key: string) => Effect.Effect<void>
  /** Reports that a job ended. `problem` is undefined if the job was done; null if it was handed back. */
  readonly ended: (key: string, problem: string | null | undefined) => Effect.Effect<void>
}

/** Returns why a job failed; undefined if it was done. */
const problemOf = (exit: Exit.Exit<Answer, WorkerError>): string | undefined => {
  const failure = Exit.isFailure(exit)
    ? Cause.squash(exit.cause)
    : exit.value._tag === "Failed"
      ? exit.value.failure
      : undefined
  if (failure === undefined) return undefined
  const hasMessage = typeof failure === "object" && failure !== null && "message" in failure
  return hasMessage ? String(failure.message) : typeof failure === "string" ? failure : JSON.stringify(failure)
}

/**
 * Takes jobs from the queue and does them, `slots` at once, until it is interrupted. Then it returns unfinished jobs to the
 * queue.
 */
export const work = Effect.fnUntraced(function* (
  handlers: ReadonlyArray<Handler>,
  { version, slots, watcher }: { readonly version: string; readonly slots: number; readonly watcher: Watcher },
) {
  const byName = new Map(handlers.map((one) => [one.name, one]))
  const jobs = yield* queueOf(version)
  const perform = ({ job, key, payload }: Queued, attempts: number) =>
    Effect.suspend(() => {
      const problem = (message: string) => Effect.fail(WorkerError.dispatch(job, `job ${job}: ${message}`))
      const handler = byName.get(job)
      if (handler === undefined) return problem("this worker has no code for it")
      if (attempts > mostLost)
        return problem(`${mostLost} workers were lost while they did it, so it is not tried again`)
      // A defect is a bug in the job's code: its caller receives it as the answer, and the worker continues.
      return Effect.catchDefect(handler.perform(payload), (defect) =>
        problem(`it failed with an unexpected error: ${defect instanceof Error ? defect.message : String(defect)}`),
      ).pipe(Effect.tap((answer) => checkSize({ job, key }, answer)))
    })
  const one = jobs.take(
    Effect.fnUntraced(function* (queued: Queued, { attempts }) {
      yield* watcher.started(queued.key)
      const exit = yield* Effect.exit(perform(queued, attempts)).pipe(
        Effect.onInterrupt(() => watcher.ended(queued.key, null)),
      )
      if (Exit.isFailure(exit) && Cause.hasInterrupts(exit.cause)) return yield* Effect.interrupt
      const send = (exit: Exit.Exit<Answer, WorkerError>) =>
        persistently(queued, "sending its answer", DurableDeferred.done(answered, { token: queued.token, exit }))
      // If an answer cannot be sent, the reason is sent instead, so that no client waits for ever.
      const sent = yield* send(exit).pipe(
        Effect.as(exit),
        Effect.catch((error) => Effect.as(send(Exit.fail(error)), Exit.fail(error))),
        Effect.tapError(({ message }) => watcher.ended(queued.key, message)),
      )
      yield* watcher.ended(queued.key, problemOf(sent))
    }),
  )
  const slot = one.pipe(Effect.sandbox, Effect.retry(Schedule.spaced(1000)), Effect.orDie, Effect.forever)
  return yield* Effect.all(
    Array.from({ length: slots }, () => slot),
    { concurrency: "unbounded", discard: true },
  ).pipe(Effect.andThen(Effect.never))
})

/** The table of the queue. */
export const queueTable = "effect_rl_queue"

/** Provides the queue to workers and clients, in the database of the cluster. */
export const queueLayer = PersistedQueue.layer.pipe(
  Layer.provide(
    PersistedQueue.layerStoreSql({
      tableName: queueTable,
      pollInterval: 200,
      lockRefreshInterval: renewSeconds * 1000,
      lockExpiration: leaseSeconds * 1000,
    }),
  ),
)
