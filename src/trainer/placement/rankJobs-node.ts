/**
 * Implements `RankProcesses` over the machines of a cluster. Each rank except the master is a job of the `Dispatcher`, which
 * occupies a slot of a worker as long as the trainer needs the rank. The worker starts a process for the rank.
 *
 * The cluster may start a job several times, but a rank must not be started twice: the second copy would send the gradients
 * of turns that are over. So a copy begins only if it is the first to claim the rank. A later copy means that the worker of
 * the first one was lost, and fails with that reason. Then all ranks start again from the last checkpoints, with new keys in
 * the store, where the first copy cannot disturb them.
 */
import { Context, Duration, Effect, Fiber, type FileSystem, Layer, Path, Schema } from "effect"
import { WorkerError, failedDispatch } from "../../spread/workers/WorkerError.ts"
import { type BackendName, backendNames } from "../../tensor/backend/names.ts"
import { Dispatcher, type Handler, handler, job } from "../../spread/cluster/Dispatcher.ts"
import { sentPath } from "../../spread/cluster/sent/sentFiles-node.ts"
import { exists } from "../../base/files/files.ts"
import { utf8 } from "../../base/text/utf8.ts"
import { RankProcesses } from "../ranks/RankProcesses.ts"
import { type RedisStores, storeAt } from "../ranks/rankStore.ts"
import { RankTask } from "../ranks/RankTask.ts"
import { polling, Store } from "../store/Store.ts"
import { holdLease, whileHeld } from "./lease.ts"
import type { TrainerError } from "../TrainerError.ts"

/** The job that is one rank of a trainer. It ends when the trainer no longer needs the rank. */
const rankJob = job({
  name: "rank",
  payload: Schema.Struct({ task: RankTask, backend: Schema.Literals(backendNames), id: Schema.String }),
  result: Schema.Null,
  failure: WorkerError,
  key: ({ task, id }) => `${task.rank} of ${task.trainer.ranks} of ${task.outputDirectory} ${id}`,
})
type RankPayload = Parameters<(typeof rankJob)["key"]>[0]

type Started = Pick<RankProcesses["Service"], "start">

/** The part of a machine that starts the processes of ranks. */
interface Machine {
  readonly processesOn: (backend: BackendName) => Started
}

/** The keys of a rank in the ranks' store. */
const keysOf = (rank: number) => ({
  lease: `lease/${rank}`,
  /** The name of the worker that has a slot for the rank. */
  placed: `placed/${rank}`,
  /** The counter of the copies that wanted to begin the rank. */
  claims: `claims/${rank}`,
})
/** The time after which the user is warned that a rank waits for a slot. */
const patience = "10 seconds"

/** The key that the trainer sets when all ranks have a slot. */
const begin = "begin"

const lost = (rank: number, problem: string): WorkerError => WorkerError.lost(`rank ${rank} was lost: ${problem}`)

/** Trains as a rank for a trainer on another machine, while the trainer holds the rank's lease. */
const trainPlaced = Effect.fnUntraced(function* (
  { task, backend }: RankPayload,
  { worker, processesOn }: Machine & { readonly worker: string },
) {
  const { rank, outputDirectory, trainer, store: place } = task
  if (!(yield* exists(outputDirectory))) {
    const { resolve } = yield* Path.Path
    const message = `rank ${rank}: ${worker} has no folder ${resolve(outputDirectory)}; mount the same results folder on all machines`
    return yield* WorkerError.failed(message)
  }
  // The trainer has ended. Opening the store would create its folder again.
  if (place.type === "files" && !(yield* exists(place.directory))) return null
  const keys = keysOf(rank)
  const failing = Effect.mapError(({ message }: TrainerError) => lost(rank, message))
  const training = Effect.gen(function* () {
    const store = yield* Store
    const turn = Effect.gen(function* () {
      yield* failing(store.set(keys.placed, utf8.encode(worker)))
      yield* failing(polling(store.get, "200 millis")(begin))
      if ((yield* failing(store.add(keys.claims, 1))) > 1)
        return yield* lost(rank, "the worker that computed it has disappeared")
      return yield* Effect.flatten(processesOn(backend).start(task))
    }).pipe(Effect.scoped)
    const held = { store, key: keys.lease, deadline: Duration.seconds(trainer.rankDeadline) }
    yield* Effect.catchTag(whileHeld(held, turn), "TrainerError", ({ message }) => lost(rank, message))
    return null
  })
  return yield* training.pipe(
    Effect.provide(storeAt(place)),
    Effect.catchTag("TrainerError", ({ message }) => lost(rank, message)),
    Effect.scoped,
  )
})

/** Makes the code of a worker that trains as a rank. `worker` is the name of the process, for messages. */
export const rankHandler = (
  options: Machine & { readonly worker: string },
): Effect.Effect<Handler, never, FileSystem.FileSystem | Path.Path | RedisStores> =>
  Effect.map(Effect.context<FileSystem.FileSystem | Path.Path | RedisStores>(), (context) =>
    handler(rankJob, (payload) => Effect.provideContext(trainPlaced(payload, options), context)),
  )

/** Returns the task with paths that are valid on the workers of a cluster. */
const sentTask = (task: RankTask): RankTask => {
  const { store, outputDirectory, baseDir } = task
  return {
    ...task,
    outputDirectory: sentPath(outputDirectory),
    baseDir: sentPath(baseDir),
    store: store.type === "files" ? { ...store, directory: sentPath(store.directory) } : store,
  }
}

/** Provides ranks on the machines of the `Dispatcher`. They compute on `backend`. */
export const rankJobs = ({
  backend,
  processesOn,
}: Machine & { readonly backend: BackendName }): Layer.Layer<
  RankProcesses,
  never,
  FileSystem.FileSystem | Path.Path | RedisStores
> =>
  Layer.effect(
    RankProcesses,
    Effect.gen(function* () {
      const context = yield* Effect.context<FileSystem.FileSystem | Path.Path | RedisStores>()
      const start = Effect.fnUntraced(
        function* (task: RankTask) {
          const { rank } = task
          const dispatcher = yield* Dispatcher
          const store = Context.get(yield* Layer.build(storeAt(task.store)), Store)
          const keys = keysOf(rank)
          yield* holdLease(store, keys.lease)
          const payload = { task: sentTask(task), backend, id: crypto.randomUUID() }
          const here = trainPlaced(payload, { worker: "this process", processesOn })
          const job = yield* dispatcher.run(rankJob, payload, here).pipe(
            // The job ends without a failure only if it found no lease.
            Effect.andThen(Effect.fail(lost(rank, "its worker found no lease in the ranks' store"))),
            Effect.mapError((error) => (error._tag === "WorkerError" ? failedDispatch(rank, error) : error)),
            Effect.forkScoped,
          )
          const placed = polling(store.get, "200 millis")(keys.placed)
          const warning = Effect.logWarning(`rank ${rank} waits until a worker of the cluster has a free slot`)
          const waiting = Effect.andThen(Effect.andThen(Effect.sleep(patience), warning), Effect.never)
          const worker = yield* Effect.raceAllFirst([placed, Fiber.join(job), waiting])
          yield* Effect.logInfo(`rank ${rank} has a place in ${utf8.decode(worker)}`)
          return Effect.andThen(store.set(begin, utf8.encode("")), Fiber.join(job)).pipe(
            Effect.catchTag("TrainerError", ({ message }) => lost(rank, message)),
          )
        },
        Effect.provideContext(context),
        (starting, { rank }) => Effect.catchTag(starting, "TrainerError", ({ message }) => lost(rank, message)),
      )
      return RankProcesses.of({ start })
    }),
  )
