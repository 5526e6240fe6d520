import * as NodeServices from "@effect/platform-node/NodeServices"
import { Deferred, Effect, Fiber, Layer } from "effect"
import type { WorkerError } from "../../../src/spread/workers/WorkerError.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import { redisStores } from "../../../src/trainer/ranks/processes-node.ts"
import { RankProcesses } from "../../../src/trainer/ranks/RankProcesses.ts"
import type { RankTask } from "../../../src/trainer/ranks/RankTask.ts"
import { trainAsRank } from "../../../src/trainer/ranks/trainAsRank.ts"
import type { RunEvent } from "../../../src/run/record/RunEvent.ts"

/** Ranks that are fibers of this process. `end` makes the ranks that work now end with an error. */
export const fibers = () => {
  let ended: Array<Deferred.Deferred<never, WorkerError>> = []
  const tasks: Array<RankTask> = []
  const start = Effect.fnUntraced(function* (task: RankTask) {
    tasks.push(task)
    const end = yield* Deferred.make<never, WorkerError>()
    ended.push(end)
    const fiber = yield* trainAsRank(task).pipe(
      Effect.provide(Layer.mergeAll(Wasm.layer, NodeServices.layer, redisStores)),
      Effect.forkScoped,
    )
    return Effect.raceFirst(Fiber.join(fiber), Deferred.await(end))
  })
  return {
    service: RankProcesses.of({ start }),
    tasks,
    end: (error: WorkerError): void => {
      for (const one of ended) Deferred.doneUnsafe(one, Effect.fail(error))
      ended = []
    },
  }
}

/** Returns the number of an update if the trainer as a whole recorded it; each run records its own updates, too. */
export const updateOf = (event: RunEvent): number | undefined =>
  event._tag === "UpdateApplied" && "trainer/runs" in event.metrics ? event.update : undefined
