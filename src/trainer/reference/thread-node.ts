/** Implements `ReferenceThreads` with Node's worker threads, whose program is `reference-node.ts`. */
import { Context, Deferred, Effect, Layer, Schema, type Scope } from "effect"
import { WorkerError } from "../../spread/workers/WorkerError.ts"
import { backendNames } from "../../tensor/backend/names.ts"
import { programBeside } from "../../base/config/programBeside.ts"
import { makeThread } from "../../spread/workers/thread-node.ts"
import type { Answer, Question } from "./messages.ts"
import { ReferenceTask, type ReferenceThread, ReferenceThreads } from "./ReferenceThreads.ts"

const program = programBeside(import.meta.url, "reference-node")

/** The data that the thread starts with. */
export const Start = Schema.Struct({
  task: ReferenceTask,
  name: Schema.Literals(backendNames),
  threads: Schema.Int,
})

/** Loads the module only when a thread is started, because most programs start none. */
const workerModule = Effect.promise(() => import("effect/workers/Worker"))

/** Starts threads for reference models. `threads` is the number of threads that compute in each of them. */
export const layer = ({ threads = 1 }: { readonly threads?: number }): Layer.Layer<ReferenceThreads> =>
  Layer.succeed(ReferenceThreads, {
    start: Effect.fnUntraced(function* (task): Effect.fn.Return<ReferenceThread, never, Scope.Scope> {
      const { WorkerPlatform } = yield* workerModule
      const data = yield* Effect.orDie(Schema.encodeUnknownEffect(Start)({ task, name: task.device, threads }))
      const { platform: layer, untilLost } = yield* makeThread({ name: "reference", program, data })
      const platform = yield* Layer.build(layer)
      const worker = yield* Context.get(platform, WorkerPlatform)
        .spawn<Answer, Question>(0)
        .pipe(Effect.provideContext(platform), Effect.orDie)
      const open = new Map<number, Deferred.Deferred<Float32Array, WorkerError>>()
      yield* worker
        .run((answer) =>
          Effect.sync(() => {
            const asked = open.get(answer.id)
            open.delete(answer.id)
            if (asked === undefined) return
            Deferred.doneUnsafe(
              asked,
              "failure" in answer
                ? Effect.fail(WorkerError.lost(`the reference's thread was lost: ${answer.failure}`))
                : Effect.succeed(answer.logProbabilities),
            )
          }),
        )
        // The end of the thread is ignored here, because `untilLost` reports it.
        .pipe(Effect.ignore, Effect.forkScoped)
      let asked = 0
      return {
        compute: (microBatch) =>
          Effect.suspend(() => {
            const id = asked++
            const answer = Deferred.makeUnsafe<Float32Array, WorkerError>()
            open.set(id, answer)
            return Effect.as(
              Effect.ignore(worker.send({ id, microBatch })),
              Effect.raceFirst(Deferred.await(answer), untilLost),
            )
          }),
      }
    }),
  })
