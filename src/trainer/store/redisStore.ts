/** Connects the ranks of a trainer through a Redis server: the `Store` for several machines. */
import { Effect, Layer, Schema } from "effect"
import { Redis, type RedisError } from "effect/persistence/Redis"
import { messageOf } from "../../base/text/text.ts"
import { polling, type Primitives, Store, storeError, storeOf } from "./Store.ts"

export interface RedisStoreOptions {
  /** The prefix of all keys. Each start of the ranks needs a new one. */
  readonly prefix: string
  /** The time in milliseconds between two attempts to read a value that another rank will set. @default 10 */
  readonly pollMillis?: number
  /** The seconds after which the server deletes a key that no rank has changed. @default 86400 */
  readonly expirySeconds?: number
}

const decode = Schema.decodeUnknownEffect(Schema.Uint8ArrayFromBase64)
const encode = Schema.encodeSync(Schema.Uint8ArrayFromBase64)

/** Provides the ranks' store through the service `Redis`. Its Layer for Node is in `redis-node.ts`. */
export const layer = ({
  prefix,
  pollMillis = 10,
  expirySeconds = 86_400,
}: RedisStoreOptions): Layer.Layer<Store, never, Redis> =>
  Layer.effect(
    Store,
    Effect.gen(function* () {
      const redis = yield* Redis
      const expiry = String(expirySeconds)
      const failing = (operation: string, key: string) =>
        Effect.mapError(({ cause }: RedisError) => storeError(operation, key, `Redis: ${messageOf(cause)}`))
      const valueKey = (key: string): string => `${prefix}/values/${key}`
      const get: Primitives["get"] = Effect.fnUntraced(function* (key) {
        const text = yield* failing("get", key)(redis.send<string | null>("GET", valueKey(key)))
        if (text === null) return undefined
        return yield* Effect.mapError(decode(text), () =>
          storeError("get", key, `expected base64, found other text; use a prefix that no other program uses`),
        )
      })
      return storeOf({
        get,
        await: polling(get, pollMillis),
        set: (key, value) => failing("set", key)(redis.send("SET", valueKey(key), encode(value), "EX", expiry)),
        add: Effect.fnUntraced(
          function* (key, amount) {
            const counter = `${prefix}/counters/${key}`
            const sum = yield* redis.send<number>("INCRBY", counter, String(amount))
            yield* redis.send("EXPIRE", counter, expiry)
            return sum
          },
          (effect, key) => failing("add", key)(effect),
        ),
        remove: (key) => failing("remove", key)(redis.send("DEL", valueKey(key))),
      })
    }),
  )
