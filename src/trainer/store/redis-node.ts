/** Connects the ranks of a trainer through a Redis server on Node, with the package `redis`. */
import * as NodeRedis from "@effect/platform-node/NodeRedis"
import { Effect, Layer } from "effect"
import { quietLogs } from "../../base/config/quietLogs.ts"
import { messageOf } from "../../base/text/text.ts"
import * as redisStore from "./redisStore.ts"
import { type Store, storeError } from "./Store.ts"
import type { TrainerError } from "../TrainerError.ts"

export interface Options extends redisStore.RedisStoreOptions {
  /** The address of the server: `redis://localhost:6379`. */
  readonly url: string
}

/**
 * Provides the ranks' store on a Redis server, and closes the connection with the scope. If the connection is lost,
 * operations fail at once instead of waiting, so that the trainer can start again from its checkpoints.
 */
export const layer = ({ url, ...options }: Options): Layer.Layer<Store, TrainerError> =>
  Layer.provide(
    redisStore.layer(options),
    // Its log is silent, because the client would log each problem of the connection with a stack trace.
    Layer.catchTag(
      NodeRedis.layer({ url, disableOfflineQueue: true }).pipe(Layer.provide(quietLogs)),
      "RedisError",
      ({ cause }) =>
        // The password in the address is not shown.
        Layer.effectContext(
          Effect.fail(storeError("open", url.replace(/\/\/.*@/, "//"), `Redis: ${messageOf(cause)}`)),
        ),
    ),
  )
