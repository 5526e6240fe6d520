/**
 * Spreads jobs over machines, by Effect Cluster and Workflow over Postgres. `worker` makes this process one that does jobs;
 * `layer` gives the jobs of this process to such workers. Clients and workers share only the database; the workers must also
 * reach each other's ports. `work.ts` describes how a job is sent, and `members.ts` lists the processes of the cluster.
 *
 * @example
 * ```ts
 * const spread = Effect.provide(evaluation, layer({ url: "postgres://rl@db.example/rl", say: Console.error }))
 * ```
 */
import * as NodeClusterSocket from "@effect/platform-node/NodeClusterSocket"
import { Cause, Context, Duration, Effect, Exit, Fiber, Layer, Option, References, type Scope } from "effect"
import * as ClusterWorkflowEngine from "effect/cluster/ClusterWorkflowEngine"
import * as RunnerAddress from "effect/cluster/RunnerAddress"
import type * as SqlClient from "effect/sql/SqlClient"
import type * as WorkflowEngine from "effect/workflow/WorkflowEngine"
import { WorkerError } from "../workers/WorkerError.ts"
import { Dispatcher, encodePayload, type DispatcherService, type Handler, type Job, settle } from "./Dispatcher.ts"
import { dropPayloads, isRemoved, keptDays, prune, removeAnswers, type SentJob } from "./cleanup.ts"
import { answers, type ClusterOptions, connect, sqlProblem } from "./database-node.ts"
import { parseUrl, shownUrl } from "./databaseUrl.ts"
import { recordFailure } from "./failures.ts"
import { limitedScope } from "./limitedScope.ts"
import { type Doing, doing, goneSeconds, join, leave, list, type Member, renew } from "./members.ts"
import { freePort, ownAddress, processName } from "./network-node.ts"
import { type Overview, overview } from "./overview.ts"
import { DatabaseAnswers, patience } from "./persistence.ts"
import { reasonOf } from "./reason.ts"
import { quietLogs } from "../../base/config/quietLogs.ts"
import { codeVersion } from "./version-node.ts"
import { JobWorkflow, leaseSeconds, queueLayer, renewSeconds, type Watcher, work, workflowLayer } from "./work.ts"

export { observe } from "./observe-node.ts"

interface WorkerOptions extends ClusterOptions {
  readonly handlers: ReadonlyArray<Handler>
  /** Whether to report only problems of the cluster, and not each job. */
  readonly quiet: boolean
  /** The number of jobs that this worker does at once. */
  readonly slots: number
  /** The host and port at which the other workers reach this one; found out if left out. */
  readonly address: { readonly host: string; readonly port: number } | undefined
}

/**
 * The smallest number of jobs that a client has under way at once. It has more if the workers have many slots: two for each
 * slot.
 */
const fewestInFlight = 64
/**
 * The number of failures of one job, a second apart while Postgres answers, after which a client gives up on it. After that
 * time, the jobs of a lost worker belong to another one.
 */
const mostTries = 2 * leaseSeconds
/**
 * The time limit for closing the connections to the other processes. The database shows them that this process has left, too.
 */
const closingTime = "10 seconds"
/** The time limit for removing the answers that a client has received, when it ends. */
const removalTime = "10 seconds"
/** The number of seconds after which a client wakes the workflow of an unanswered job, again and again. */
const wakeSeconds = 10

/**
 * The intervals with which Effect Cluster renews its locks and looks for changes. With its defaults, the work of a worker
 * that was killed begins again after half a minute; with these, after five seconds.
 */
const times = {
  shardLockRefreshInterval: "1 second",
  shardLockExpiration: "5 seconds",
  entityMessagePollInterval: "1 second",
  refreshAssignmentsInterval: "1 second",
  runnerHealthCheckInterval: "2 seconds",
} as const

/**
 * Adds this process to the table of members until the scope closes, and renews its row. Reports when the database stops
 * answering, and when it answers again. Returns an Effect that fails when the cluster refuses this process later.
 */
const monitored = Effect.fnUntraced(function* (
  member: Member,
  { shown, say }: { readonly shown: string; readonly say: ClusterOptions["say"] },
  state: () => Doing,
) {
  yield* sqlProblem(shown, join(member))
  yield* Effect.addFinalizer(() => Effect.ignore(Effect.timeout(leave(member), "3 seconds")))
  let isGone = false
  const beat = Effect.suspend(() => renew(member, state())).pipe(
    Effect.timeout(`${leaseSeconds} seconds`),
    Effect.matchEffect({
      onSuccess: () => {
        if (!isGone) return Effect.void
        isGone = false
        return say(`${shown} answers again`)
      },
      onFailure: (error) => {
        if (error instanceof WorkerError) return Effect.fail(error)
        if (isGone) return Effect.void
        isGone = true
        return say(`${shown} does not answer (${reasonOf(error)}); trying again, nothing is lost`)
      },
    }),
  )
  return Effect.andThen(Effect.sleep(`${renewSeconds} seconds`), beat).pipe(Effect.forever)
})

const memberOf = Effect.fnUntraced(function* (of: Pick<Member, "role" | "slots" | "address">) {
  const version = yield* codeVersion
  const name = processName()
  return { id: `${name} ${crypto.randomUUID()}`, name, version, ...of } satisfies Member
})

/** Makes this process a worker, until it is interrupted. It fails if the cluster refuses it. */
export const worker = Effect.fnUntraced(function* (
  options: WorkerOptions,
): Effect.fn.Return<never, WorkerError, Scope.Scope> {
  const { handlers, slots, say, quiet } = options
  const sayJob = (line: string) => (quiet ? Effect.void : say(line))
  const { context, shown } = yield* connect(options)
  const address = options.address ?? (yield* ownAddressFor(options.url))
  const at = `${address.host}:${address.port}`
  const member = yield* memberOf({ role: "worker", slots, address: at })
  const jobs = new Map<string, number>()
  let finished = 0
  const monitor = yield* Effect.provideContext(
    monitored(member, { shown, say }, () => doing(jobs, finished)),
    context,
  )
  yield* say(`${member.name} joined ${shown}: ${slots} jobs at once, version ${member.version}, at ${at}`)
  const watcher: Watcher = {
    started: (key) => {
      jobs.set(key, performance.now())
      return sayJob(`begins ${key}`)
    },
    ended: (key, problem) => {
      const seconds = ((performance.now() - (jobs.get(key) ?? 0)) / 1000).toFixed(1)
      jobs.delete(key)
      if (problem === null) return sayJob(`hands back ${key}`)
      finished++
      if (problem === undefined) return sayJob(`did ${key} in ${seconds} s`)
      const recorded = Effect.timeout(recordFailure({ key, message: problem, worker: member.name }), "5 seconds")
      // Only the page shows it, so a worker does not wait for a database that is gone.
      return Effect.andThen(
        Effect.ignore(Effect.provideContext(recorded, context)),
        sayJob(`failed ${key}: ${problem}`),
      )
    },
  }
  const runner = NodeClusterSocket.layer({
    shardingConfig: { ...times, runnerAddress: Option.some(RunnerAddress.make(address.host, address.port)) },
  })
  const engine = workflowLayer.pipe(
    Layer.provideMerge(ClusterWorkflowEngine.layer),
    Layer.provideMerge(runner),
    Layer.provideMerge(queueLayer),
    Layer.provide(Layer.succeedContext(context)),
    Layer.provide(Layer.succeed(DatabaseAnswers, answers(context))),
    Layer.provide(quietLogs),
  )
  const scope = yield* limitedScope(closingTime, say(`${member.name} still has connections to other workers`))
  const built = yield* sqlProblem(shown, Layer.buildWithScope(engine, scope))
  const pruning = prune({ days: keptDays, version: member.version }).pipe(
    Effect.ignoreCause,
    Effect.andThen(Effect.sleep("1 day")),
    Effect.forever,
  )
  yield* Effect.forkScoped(Effect.provideContext(pruning, context))
  const working = work(handlers, { version: member.version, slots, watcher }).pipe(
    Effect.provideContext(built),
    Effect.provideService(DatabaseAnswers, answers(context)),
    Effect.provide(quietLogs),
  )
  return yield* Effect.raceFirst(sqlProblem(shown, working), Effect.provideContext(monitor, context)).pipe(
    Effect.onInterrupt(() => say(`${member.name} leaves ${shown}; it did ${finished} jobs`)),
  )
})

/** Reads the state of a cluster without joining it. */
export const look = Effect.fnUntraced(function* (
  options: ClusterOptions,
): Effect.fn.Return<Overview, WorkerError, Scope.Scope> {
  const { context, shown } = yield* connect(options)
  return yield* sqlProblem(shown, Effect.provideContext(overview, context))
})

/** Removes jobs that are older than some days. Workers do this by themselves after `keptDays`. */
export const removeOld = Effect.fnUntraced(function* (
  options: ClusterOptions & { readonly days: number },
): Effect.fn.Return<number, WorkerError, Scope.Scope> {
  const { context, shown } = yield* connect(options)
  const version = yield* codeVersion
  return yield* sqlProblem(shown, Effect.provideContext(prune({ days: options.days, version }), context))
})

const ownAddressFor = Effect.fnUntraced(function* (url: string) {
  const host = yield* ownAddress(yield* parseUrl(url))
  return { host, port: yield* freePort(host) }
})

/** Sends the jobs of this process to the workers of a cluster. */
export const layer = (options: ClusterOptions): Layer.Layer<never, WorkerError> =>
  Layer.effect(Dispatcher, makeDispatcher(options))

const makeDispatcher = Effect.fnUntraced(function* (
  options: ClusterOptions,
): Effect.fn.Return<DispatcherService, WorkerError, Scope.Scope> {
  const { say } = options
  const { context, shown } = yield* connect(options)
  const member = yield* memberOf({ role: "client", slots: 0, address: "" })
  const waiting = new Map<string, number>()
  let finished = 0
  const monitor = yield* Effect.provideContext(
    monitored(member, { shown, say }, () => doing(waiting, finished)),
    context,
  )
  const engine = ClusterWorkflowEngine.layer.pipe(
    Layer.provideMerge(NodeClusterSocket.layer({ clientOnly: true, shardingConfig: times })),
    Layer.provideMerge(queueLayer),
    Layer.provide(Layer.succeedContext(context)),
    Layer.provide(quietLogs),
  )
  const scope = yield* limitedScope(closingTime, Effect.void)
  const built = Context.merge(yield* sqlProblem(shown, Layer.buildWithScope(engine, scope)), context)
  // If this process was frozen, the cluster may refuse it later; then all its jobs fail.
  const refused = yield* Effect.forkScoped(Effect.provideContext(monitor, context))
  yield* Effect.forkScoped(
    Effect.provideContext(Effect.ignore(sayIfAlone(options, shown, () => waiting.size)), context),
  )

  // The answers are removed only if the client succeeds: one that failed or was interrupted may be resumed and ask for them
  // again.
  const received: Array<SentJob> = []
  yield* Effect.addFinalizer((exit) =>
    Exit.isFailure(exit)
      ? Effect.void
      : Effect.provideContext(removeAnswers(received), context).pipe(
          // A finalizer is uninterruptible by default, so the time-out could not end it.
          Effect.interruptible,
          Effect.timeout(removalTime),
          Effect.ignoreCause,
        ),
  )

  const execute = (sent: Omit<SentJob, "round">) =>
    untilAnswered(sent, received).pipe(
      Effect.provideContext(built),
      Effect.provideService(DatabaseAnswers, answers(context)),
      Effect.provideService(References.MinimumLogLevel, "None"),
    )

  const workers = yield* sqlProblem(shown, Effect.provideContext(list, context))
  const slots = workers.reduce((sum, worker) => sum + worker.slots, 0)
  return {
    inFlight: Math.max(fewestInFlight, 2 * slots),
    run: Effect.fnUntraced(function* <Payload, Result, Failure>(job: Job<Payload, Result, Failure>, payload: Payload) {
      const key = `${job.name} ${job.key(payload)}`
      const sent = { job: job.name, version: member.version, key, payload: yield* encodePayload(job, payload) }
      waiting.set(key, performance.now())
      const answer = yield* Effect.raceFirst(
        execute(sent),
        Effect.mapError(Fiber.join(refused), ({ message }) => WorkerError.dispatch(job.name, message)),
      ).pipe(Effect.ensuring(Effect.sync(() => waiting.delete(key))))
      finished++
      return yield* settle(job, answer)
    }),
  }
})

/** Asks for the answer of a job until there is one, and adds the job to those that were received. */
const untilAnswered = Effect.fnUntraced(function* (sent: Omit<SentJob, "round">, received: Array<SentJob>) {
  // A job that failed for an earlier client is tried again: its user may have repaired the cause before this resume.
  let round = 0
  const failed = patience(sent, "asking for it", mostTries)
  while (yield* hasFailed({ ...sent, round })) round++
  for (;;) {
    const one = { ...sent, round }
    const exit = yield* Effect.exit(answerOf(one))
    if (Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)) return yield* exit
    if (Exit.isSuccess(exit) || Cause.hasFails(exit.cause)) {
      // If Postgres is gone now, the payload stays until the job is removed.
      yield* Effect.ignoreCause(Effect.timeout(dropPayloads(one), "5 seconds"))
      if (Exit.isSuccess(exit) && exit.value._tag === "Done") received.push({ ...one, payload: null })
      return yield* exit
    }
    // Postgres failed. If it failed in the middle of the workflow, the workflow has ended for good, and a new one begins.
    yield* failed(exit.cause)
    if (yield* hasFailed(one)) round++
  }
})

/**
 * Waits for the answer of a job. If another client with the same job receives the answer first and removes it when it ends,
 * asks for the job once more.
 */
const answerOf = Effect.fnUntraced(function* (sent: SentJob) {
  for (;;) {
    const answer = yield* Effect.raceFirst(JobWorkflow.execute(sent), woken(sent))
    if (answer !== undefined) return answer
  }
})

/**
 * Wakes the workflow of a job at intervals, until the job is removed. The worker that holds the workflow wakes it when the
 * answer arrives. If that worker is killed between both, nobody else would wake it. Waking a workflow too early is harmless:
 * it looks for its answer and continues to wait.
 */
const woken = Effect.fnUntraced(function* (
  sent: SentJob,
): Effect.fn.Return<undefined, never, WorkflowEngine.WorkflowEngine | SqlClient.SqlClient> {
  const id = yield* JobWorkflow.executionId(sent)
  const removed = Effect.timeout(isRemoved(id), "5 seconds").pipe(Effect.catchCause(() => Effect.succeed(false)))
  const wake = Effect.ignoreCause(Effect.timeout(JobWorkflow.resume(id), "5 seconds"))
  for (;;) {
    yield* Effect.sleep(Duration.seconds(wakeSeconds))
    if (yield* removed) return undefined
    yield* wake
  }
})

/** Tells whether the workflow of a job has ended without a result. Returns false while Postgres does not answer. */
const hasFailed = Effect.fnUntraced(function* (sent: SentJob) {
  const id = yield* JobWorkflow.executionId(sent)
  const polled = yield* Effect.exit(Effect.timeout(JobWorkflow.poll(id), "5 seconds"))
  if (Exit.isFailure(polled) || Option.isNone(polled.value)) return false
  const { value: state } = polled.value
  return state._tag === "Complete" && (Exit.isFailure(state.exit) || state.exit.value._tag === "Failed")
})

/** Warns the user when jobs wait because the cluster has no worker. */
const sayIfAlone = Effect.fnUntraced(function* ({ url, say }: ClusterOptions, shown: string, waiting: () => number) {
  let isAlone = false
  const check = Effect.gen(function* () {
    const workers = (yield* list).filter(({ role }) => role === "worker").length
    if (workers > 0 || waiting() === 0) isAlone = false
    else if (!isAlone) {
      isAlone = true
      yield* say(
        `no worker has joined ${shown}, so ${waiting()} jobs wait; start one: npx effect worker --join ${shownUrl(url)}`,
      )
    }
  })
  return yield* Effect.ignore(check).pipe(
    Effect.andThen(Effect.sleep(Duration.seconds(goneSeconds / 3))),
    Effect.forever,
  )
})
