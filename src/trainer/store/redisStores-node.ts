/** Connects the ranks of a trainer through a Redis server. Loads the package `redis` only when it is needed. */
import { Effect, Layer } from "effect"
import type { Options } from "./redis-node.ts"
import { type Store, storeError } from "./Store.ts"
import type { TrainerError } from "../TrainerError.ts"

/**
 * Connects the ranks of a multi-run trainer through a Redis server. The package `redis` must be installed; it is loaded when
 * this Layer is built.
 */
export const redisStore = (options: Options): Layer.Layer<Store, TrainerError> =>
  Layer.unwrap(
    Effect.map(
      Effect.tryPromise({
        try: () => import("./redis-node.ts"),
        catch: () => storeError("open", "redis", "the package is not installed; run: npm install redis"),
      }),
      ({ layer }) => layer(options),
    ),
  )
