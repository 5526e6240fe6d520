/**
 * Starts the ranks of a training on the workers of a cluster: each rank is a job of the `Dispatcher`, which keeps a slot of a
 * worker until the training ends. Its process connects to the training's own process, so the weights and gradients do not
 * pass through the database. If the cluster starts a job twice, the second copy replaces the first, which changes no results.
 */
import { Effect, Schema } from "effect"
import { WorkerError, failedDispatch } from "../workers/WorkerError.ts"
import { Dispatcher, type Handler, handler, job } from "../cluster/Dispatcher.ts"
import { startHere, type StartRank } from "./ranks-node.ts"
import { SliceTask } from "./SliceTask.ts"

/** The job that is one rank of a training. It ends when the training no longer needs the rank. */
const slicesJob = job({
  name: "slices",
  payload: Schema.Struct({ task: SliceTask, id: Schema.String }),
  result: Schema.Null,
  failure: WorkerError,
  key: ({ task: { rank, place }, id }) => `rank ${rank} of ${place.host}:${place.port} ${id}`,
})

/** Works as a rank on this machine until the training ends. */
const serveHere = (task: SliceTask) => Effect.as(Effect.scoped(Effect.flatten(startHere(task))), null)

/** The code of a worker that works as a rank. */
export const slicesHandler: Handler = handler(slicesJob, ({ task }) => serveHere(task))

/** Starts a rank on a machine of the `Dispatcher`. */
export const startJob: StartRank = (task) =>
  Effect.map(Dispatcher, (dispatcher) =>
    dispatcher.run(slicesJob, { task, id: crypto.randomUUID() }, serveHere(task)).pipe(
      Effect.asVoid,
      Effect.mapError((error) => failedDispatch(task.rank, error)),
    ),
  )
