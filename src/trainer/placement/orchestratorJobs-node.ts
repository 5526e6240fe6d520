/**
 * Implements `PlacedOrchestrators` over the machines of a cluster: the orchestrator of each run is a job of the `Dispatcher`,
 * which keeps a slot of a worker while the trainer trains the run. The worker plays the tasks with the answers of an
 * inference server, and writes the samples into the run's folder, as `effect orchestrate` does.
 *
 * The cluster may start a job several times. Then the newest copy plays, and the others end when they notice it. Until then,
 * both may write samples: a step's samples are written as a whole or not at all, so nothing is mixed or trained on twice.
 *
 * @example
 * ```ts
 * import * as Node from "effect-rl/node"
 *
 * const orchestrators = orchestratorJobs({ server: "http://10.0.0.7:8000" }).pipe(Layer.provide(Node.platform))
 * const handlers = [yield* orchestratorHandler("process 4711 on host")]
 * ```
 */
import { Config, Context, Deferred, Duration, Effect, Layer, Path, Schema } from "effect"
import { WorkerError } from "../../spread/workers/WorkerError.ts"
import { Dispatcher, type Handler, handler, job } from "../../spread/cluster/Dispatcher.ts"
import { sentPath } from "../../spread/cluster/sent/sentFiles-node.ts"
import { exists } from "../../base/files/files.ts"
import { utf8 } from "../../base/text/utf8.ts"
import type * as Lms from "../../agents/lm/Lms.ts"
import { owner as ownOwner } from "../../run/store/owner-node.ts"
import * as Layout from "../Layout.ts"
import { TrainerError } from "../TrainerError.ts"
import { connect } from "../outside/InferenceServer.ts"
import { orchestrateFolder, type PlayEvent } from "../outside/orchestrateFolder.ts"
import { mostAttempts, persistently } from "../outside/persistence.ts"
import { privateFolder } from "../ranks/rankStore.ts"
import { Store } from "../store/Store.ts"
import { trainerAt } from "../trainerFolder.ts"
import { holdLease, whileHeld } from "./lease.ts"
import { PlacedOrchestrators, type PlacedTrainer, type Placement } from "./PlacedOrchestrators.ts"

/** The reason why the job of a run ended before the run did. */
const Unfinished = Schema.Union([
  /** Another worker took the job, or the trainer gave the job up. The run is placed again, without a limit. */
  Schema.TaggedStruct("Replaced", { reason: Schema.String }),
  /**
   * The run could not continue. `step` is the step that it had reached, -1 if it did not begin. Such failures are limited.
   */
  Schema.TaggedStruct("Again", { step: Schema.Int, reason: Schema.String }),
])
type Unfinished = typeof Unfinished.Type

/** The job that plays the tasks of a run. Its result is null if the run is over. */
export const orchestratorJob = job({
  name: "orchestrator",
  payload: Schema.Struct({
    /** The folder of the trainer. */
    trainer: Schema.String,
    run: Schema.String,
    /** The address of the inference server. */
    server: Schema.String,
    /** The folder with the trainer's lease. */
    leases: Schema.String,
    deadlineSeconds: Schema.Finite,
    id: Schema.String,
  }),
  result: Schema.NullOr(Unfinished),
  failure: WorkerError,
  key: ({ trainer, run, id }) => `${run} of ${trainer} ${id}`,
})
type Payload = Parameters<(typeof orchestratorJob)["key"]>[0]

/** A worker's environment variable with the key of the inference server. The key itself must not be sent with the job. */
const keyVariable = "EFFECT_RL_SERVER_KEY"

/** The beginning of the names of processes that play for a cluster; see `ownerOf`. */
const ownerPrefix = "a worker of the cluster: "

/**
 * Returns the owner of a run's lock for a copy of the job. It takes over the lock of an older copy, which ends when it
 * notices that; but never a lock of another program.
 */
const ownerOf = (worker: string, id: string) => ({
  name: `${ownerPrefix}${worker} ${id}`,
  isAlive: (name: string) => (name.startsWith(ownerPrefix) ? Effect.succeed(false) : ownOwner.isAlive(name)),
})

const replaced = (reason: string): Unfinished => ({ _tag: "Replaced", reason })

/** Waits until a newer copy of the job begins. */
const untilSuperseded = Effect.fnUntraced(function* (store: Store["Service"], id: string) {
  const attempt = yield* store.add(`attempts/${id}`, 1)
  for (;;) {
    const newest = Number(utf8.decode(yield* store.get(`newest/${id}`)))
    if (newest > attempt) return replaced("another worker plays it")
    // Copies may write their numbers in any order, so the newest one corrects the value.
    if (newest < attempt) yield* store.set(`newest/${id}`, utf8.encode(String(attempt)))
    yield* Effect.sleep("1 second")
  }
})

/** Plays a run for a trainer on another machine, while the trainer holds the run's lease. */
const playPlaced = Effect.fnUntraced(function* (payload: Payload, worker: string) {
  const { trainer: directory, run, server: url, leases, deadlineSeconds, id } = payload
  const failed = (message: string) => WorkerError.failed(`${run}: ${message}`)
  const trainer = yield* Effect.mapError(trainerAt(directory), ({ message }) => failed(message))
  if (trainer === undefined) {
    const { resolve } = yield* Path.Path
    return yield* failed(
      `${worker} has no folder of a trainer ${resolve(directory)}; mount the same results folder on all machines`,
    )
  }
  const noLease = replaced(`${worker} found no lease of the trainer`)
  if (!(yield* exists(leases))) return noLease
  let step = -1
  let givenUp: string | undefined
  const again = (reason: string): Unfinished => ({ _tag: "Again", step, reason })
  const report = (event: PlayEvent) => {
    if (event._tag === "Begun") step = event.step
    if (event._tag === "GivenUp") givenUp = event.reason
    return "reason" in event ? Effect.logWarning(`${event.id}: ${event.reason}`) : Effect.void
  }
  const playing = Effect.gen(function* () {
    const store = yield* Store
    const server = yield* connect({
      url,
      apiKey: yield* Effect.orElseSucceed(Config.Redacted(keyVariable), () => null),
      report: (event) => (event._tag === "Failing" ? Effect.logWarning(`${run}: ${event.message}`) : Effect.void),
    }).pipe(Effect.mapError(({ message }) => failed(message)))
    const options = { trainer, only: run, server, owner: ownerOf(worker, crypto.randomUUID()), report }
    const untilOver = Effect.mapError(orchestrateFolder(options), ({ message }) => failed(message))
    const ended = Effect.map(untilOver, () => (givenUp === undefined ? null : again(givenUp)))
    return yield* whileHeld(
      { store, key: `lease/${id}`, deadline: Duration.seconds(deadlineSeconds) },
      Effect.scoped(Effect.raceFirst(untilSuperseded(store, id), ended)),
    )
  })
  const outcome = yield* playing.pipe(
    Effect.provide(Store.layerFileSystem({ directory: leases })),
    Effect.catchTag("TrainerError", ({ message }) => Effect.succeed(again(message))),
    Effect.scoped,
  )
  return outcome === undefined ? noLease : outcome
})

/** Makes the code of a worker that plays runs. `worker` is the name of the process, for messages. */
export const orchestratorHandler = (worker: string): Effect.Effect<Handler, never, Lms.LmNeeds> =>
  Effect.map(Effect.context<Lms.LmNeeds>(), (context) =>
    handler(orchestratorJob, (payload) => Effect.provideContext(playPlaced(payload, worker), context)),
  )

/** Provides orchestrators on the machines of the `Dispatcher`. They ask the inference server at `server`. */
export const orchestratorJobs = ({
  server,
}: {
  readonly server: string
}): Layer.Layer<PlacedOrchestrators, never, Lms.LmNeeds> =>
  Layer.effect(
    PlacedOrchestrators,
    Effect.gen(function* () {
      const context = yield* Effect.context<Lms.LmNeeds>()
      const { join } = yield* Path.Path
      const open = Effect.fnUntraced(function* ({ outputDirectory, deadlineSeconds }: PlacedTrainer) {
        const dispatcher = yield* Dispatcher
        const leases = yield* privateFolder(join(outputDirectory, Layout.orchestrators))
        const layer = Store.layerFileSystem({ directory: leases })
        const store = Context.get(yield* Layer.build(layer), Store)
        const failure = yield* Deferred.make<never, TrainerError>()
        const playOnce = Effect.fnUntraced(function* (run: string) {
          const id = crypto.randomUUID()
          yield* holdLease(store, `lease/${id}`)
          const sent = { trainer: sentPath(outputDirectory), leases: sentPath(leases) }
          const payload = { ...sent, run, server, deadlineSeconds, id }
          const here = Effect.provideContext(playPlaced(payload, "this process"), context)
          const outcome = yield* dispatcher.run(orchestratorJob, payload, here)
          // The run has ended. The trainer reads that from the run's folder, so nothing is to do.
          return outcome === null ? yield* Effect.never : outcome
        }, Effect.scoped)
        const begins = (run: string, reason: string) =>
          Effect.logWarning(`${run}: its orchestrator begins again: ${reason}`)
        /** Plays a run until it fails. If another worker only replaced the first one, continues. */
        const attempt = Effect.fnUntraced(function* (run: string) {
          for (;;) {
            const outcome = yield* playOnce(run)
            // Wait until a copy that still plays has noticed the end of its lease, which takes it a second.
            yield* Effect.sleep("3 seconds")
            if (outcome._tag === "Again") return outcome
            yield* begins(run, outcome.reason)
          }
        })
        const playing = Effect.fnUntraced(function* (run: string) {
          const outcome = yield* persistently(attempt(run), (reason) => begins(run, reason))
          const reason = outcome._tag === "Failed" ? outcome.reason : "it ended"
          return yield* new TrainerError({
            message: `${run}: its orchestrator failed ${mostAttempts} times in a row: ${reason}; remove the cause, then resume the trainer`,
          })
        })
        return {
          play: ({ id }) =>
            Effect.catch(playing(id), (error) =>
              Effect.andThen(Deferred.fail(failure, TrainerError.from(error)), Effect.never),
            ),
          failed: Deferred.await(failure),
        } satisfies Placement
      }, Effect.provideContext(context))
      return PlacedOrchestrators.of({ open })
    }),
  )
