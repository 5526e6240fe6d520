/** Connects the ranks of a trainer through a Redis server on Node, by the package `redis`. */
import * as NodeRedis from "@effect/platform-node/NodeRedis"
import { Effect, Layer } from "effect"
import { quietLogs } from "../../base/config/quietLogs.ts"
import { messageOf } from "../../base/config/text.ts"
import * as redisStore from "./redisStore.ts"
import { type Store, storeError, type StoreError } from "./Store.ts"

export interface Options extends redisStore.RedisStoreOptions {
  /** The address of the server: `redis://localhost:6379`. */
  readonly url: string
}

/**
 * Provides the store of ranks on a Redis server; closes the connection with the scope. If the server goes away, the
 * operations fail at once, so that the trainer can start again from its checkpoints instead of waiting.
 */
export const layer = ({ url, ...options }: Options): Layer.Layer<Store, StoreError> =>
  Layer.provide(
    redisStore.layer(options),
    // The client also logs each problem of its connection, with a stack trace.
    Layer.catchTag(
      NodeRedis.layer({ url, disableOfflineQueue: true }).pipe(Layer.provide(quietLogs)),
      "RedisError",
      ({ cause }) =>
        // The address may contain a password.
        Layer.effectContext(
          Effect.fail(storeError("open", url.replace(/\/\/.*@/, "//"), `Redis: ${messageOf(cause)}`)),
        ),
    ),
  )
