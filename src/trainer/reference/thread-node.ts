/** Implements `ReferenceThreads` with Node's worker threads, whose program is `reference-node.ts`. */
import { Context, Deferred, Effect, Layer, Schema, type Scope } from "effect"
import { backendNames } from "../../tensor/backend/names.ts"
import { makeSpawner } from "../worker-node.ts"
import type { Answer, Question } from "./messages.ts"
import { ReferenceLost, ReferenceTask, type ReferenceThread, ReferenceThreads } from "./ReferenceThreads.ts"

const program = new URL(
  import.meta.url.endsWith(".ts") ? "./reference-node.ts" : "./reference-node.js",
  import.meta.url,
)

/** The data that the thread starts with. */
export const Start = Schema.Struct({
  task: ReferenceTask,
  name: Schema.Literals(backendNames),
  threads: Schema.Int,
})

/** Loads the modules for threads when one is started, because most programs start none. */
const modules = Effect.all({
  NodeWorker: Effect.promise(() => import("@effect/platform-node/NodeWorker")),
  Worker: Effect.promise(() => import("effect/workers/Worker")),
})

const lost = (reason: string) => new ReferenceLost({ message: `the reference's thread was lost: ${reason}` })

/** Starts threads for references. `threads` is the number of threads that compute in each. */
export const layer = ({ threads = 1 }: { readonly threads?: number }): Layer.Layer<ReferenceThreads> =>
  Layer.succeed(ReferenceThreads, {
    start: Effect.fnUntraced(function* (task): Effect.fn.Return<ReferenceThread, never, Scope.Scope> {
      const { NodeWorker, Worker } = yield* modules
      const data = yield* Effect.orDie(Schema.encodeUnknownEffect(Start)({ task, name: task.device, threads }))
      const { spawn, untilEnded } = yield* makeSpawner({ name: "reference", program, data })
      const platform = yield* Layer.build(NodeWorker.layer(spawn))
      const worker = yield* Context.get(platform, Worker.WorkerPlatform)
        .spawn<Answer, Question>(0)
        .pipe(Effect.provideContext(platform), Effect.orDie)
      const open = new Map<number, Deferred.Deferred<Float32Array, ReferenceLost>>()
      const untilLost = Effect.mapError(untilEnded, lost)
      yield* worker
        .run((answer) =>
          Effect.sync(() => {
            const asked = open.get(answer.id)
            open.delete(answer.id)
            if (asked === undefined) return
            Deferred.doneUnsafe(
              asked,
              "failure" in answer ? Effect.fail(lost(answer.failure)) : Effect.succeed(answer.logProbabilities),
            )
          }),
        )
        // `untilEnded` tells how it has ended.
        .pipe(Effect.ignore, Effect.forkScoped)
      let asked = 0
      return {
        compute: (microBatch) =>
          Effect.suspend(() => {
            const id = asked++
            const answer = Deferred.makeUnsafe<Float32Array, ReferenceLost>()
            open.set(id, answer)
            return Effect.as(
              Effect.ignore(worker.send({ id, microBatch })),
              Effect.raceFirst(Deferred.await(answer), untilLost),
            )
          }),
      }
    }),
  })
