/** Implements `RankProcesses`: starts a Node process for each rank, with `rank-node.ts` as its program. */
import { Effect, Layer, Schema } from "effect"
import { WorkerError } from "../../spread/workers/WorkerError.ts"
import type { BackendName } from "../../tensor/backend/names.ts"
import { startChild } from "../../spread/workers/process-node.ts"
import { programBeside } from "../../base/files/programBeside.ts"
import { redisStore } from "../store/redisStores-node.ts"
import { RedisStores } from "./rankStore.ts"
import { RankProcesses } from "./RankProcesses.ts"

const program = programBeside(import.meta.url, "rank-node")

/** Loads the Schemas of messages only when a rank is started, because most programs start none. */
const messages = Effect.promise(() => import("./messages-node.ts"))

/**
 * Provides ranks as processes of this machine. Their backend must be the same as the master's. `threads` is the number of
 * threads that compute in each process.
 */
export const layer = ({
  backend,
  threads = 1,
}: {
  readonly backend: BackendName
  readonly threads?: number
}): Layer.Layer<RankProcesses | RedisStores> =>
  Layer.merge(
    redisStores,
    Layer.sync(RankProcesses, () => processesOn(backend, threads)),
  )

/** Connects ranks through a Redis server, for trainers with `trainer.store: { type: redis }`. */
export const redisStores: Layer.Layer<RedisStores> = Layer.succeed(RedisStores, { connect: redisStore })

/** Makes the service that starts ranks as processes of this machine. */
export const processesOn = (backend: BackendName, threads = 1): RankProcesses["Service"] =>
  RankProcesses.of({
    start: Effect.fnUntraced(function* (task) {
      const { rank } = task
      const { Start } = yield* messages
      const line = yield* Effect.orDie(Schema.encodeEffect(Start)({ task, backend, threads }))
      const ended = yield* startChild({ rank, program, task: line })
      const message = `rank ${rank} was lost: its process was ended with exit code 0`
      return Effect.andThen(ended, Effect.fail(WorkerError.lost(message)))
    }),
  })
