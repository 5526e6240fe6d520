/**
 * Opens the store through which the ranks of a trainer exchange values. The setting `trainer.store` chooses it: a folder next
 * to the runs, which is the default, or a Redis server. The master opens a private place in the store (a new folder, or a new
 * prefix of keys), and sends its address to each rank.
 *
 * @example
 * ```ts
 * const place = yield* openPlace({ type: "files" }, { outputDirectory: "outputs", deadlineSeconds: 120 })
 * const store = storeAt(place)
 * ```
 */
import { Config, Context, Effect, FileSystem, Layer, Option, Path, Schedule, Schema, type Scope } from "effect"
import { makeFolder, systemMessage } from "../../base/files/files.ts"
import { positiveInt, withDefault } from "../../base/config/fields.ts"
import * as Layout from "../Layout.ts"
import { TrainerError } from "../TrainerError.ts"
import type { RedisStoreOptions } from "../store/redisStore.ts"
import { Store, storeError } from "../store/Store.ts"

/** The environment variable with the address of the Redis server, which may contain a password. */
const addressVariable = "REDIS_URL"

/** Returns what is wrong with the address of a Redis server; undefined for a valid address. */
const addressProblem = (url: string): string | undefined => {
  const parsed = URL.parse(url)
  if (parsed === null || !["redis:", "rediss:"].includes(parsed.protocol) || parsed.hostname === "")
    return "Expected an address such as redis://127.0.0.1:6379"
  return parsed.password === "" ? undefined : `Expected no password; put the whole address into ${addressVariable}`
}

/** Settings of the store in the folder `ranks`, next to the runs' folders. All ranks must see the same folder. */
const FileStore = Schema.Struct({
  /** The ranks exchange values by files. */
  type: Schema.Literal("files"),
})

/** Settings of the store on a Redis server. */
const RedisStore = Schema.Struct({
  /** The ranks exchange values through a Redis server. This needs the package `redis`. */
  type: Schema.Literal("redis"),
  /** The server's address, without a password. null reads the environment variable `REDIS_URL`. */
  url: withDefault(
    Schema.NullOr(
      Schema.String.check(
        Schema.makeFilter((url) => {
          const issue = addressProblem(url)
          return issue === undefined ? undefined : { path: [], issue }
        }),
      ),
    ),
    null,
  ),
})

/** The store through which the ranks of a trainer exchange values. */
export const RankStore = Schema.Union([FileStore, RedisStore])
export type RankStore = typeof RankStore.Type

/** The address of a place in the store that only the ranks of one start of a trainer use. */
export const StorePlace = Schema.Union([
  Schema.Struct({ type: Schema.Literal("files"), directory: Schema.String }),
  Schema.Struct({
    type: Schema.Literal("redis"),
    /** The server's address, without a password. null reads `REDIS_URL` on the machine that connects. */
    url: Schema.NullOr(Schema.String),
    prefix: Schema.String,
    expirySeconds: positiveInt,
  }),
])
export type StorePlace = typeof StorePlace.Type

/** The service that connects to Redis servers. `Node.rankProcesses` provides it, too. */
export class RedisStores extends Context.Service<
  RedisStores,
  { readonly connect: (options: RedisStoreOptions & { readonly url: string }) => Layer.Layer<Store, TrainerError> }
>()("effect-rl/multirun/RedisStores") {}

/** Connects a rank to a place in the store. */
export const storeAt = (place: StorePlace): Layer.Layer<Store, TrainerError, FileSystem.FileSystem | Path.Path> =>
  place.type === "files" ? Store.layerFileSystem(place) : Layer.unwrap(onRedis(place))

const onRedis = Effect.fnUntraced(function* (place: Extract<StorePlace, { readonly type: "redis" }>) {
  const failure = (problem: string) => storeError("open", "redis", problem)
  const url = yield* Effect.mapError(addressOf(place), ({ message }) => failure(message))
  const redis = yield* Effect.serviceOption(RedisStores)
  if (Option.isSome(redis)) return redis.value.connect({ ...place, url })
  return yield* failure("only Node connects to Redis: provide Node.rankProcesses")
})

/** The trainer whose ranks need a place in the store. */
interface PlaceOptions {
  /** The folder that holds the folders of the runs. */
  readonly outputDirectory: string
  /** The number of seconds for which a rank waits for another rank. */
  readonly deadlineSeconds: number
}

/**
 * Opens a new place in the store. A folder is removed when the scope closes; a Redis server drops the last values by itself.
 */
export const openPlace = Effect.fnUntraced(function* (
  store: RankStore,
  { outputDirectory, deadlineSeconds }: PlaceOptions,
): Effect.fn.Return<StorePlace, TrainerError, FileSystem.FileSystem | Path.Path | Scope.Scope> {
  if (store.type === "redis") {
    const expirySeconds = Math.ceil(Math.max(3600, 3 * deadlineSeconds))
    const prefix = `effect-rl/ranks/${crypto.randomUUID()}`
    return { type: "redis", url: store.url, prefix, expirySeconds }
  }
  const directory = yield* privateFolder((yield* Path.Path).join(outputDirectory, Layout.ranks))
  return { type: "files", directory }
})

/** Returns the address of a Redis server, including its password. */
const addressOf = Effect.fnUntraced(function* ({ url }: Pick<typeof RedisStore.Type, "url">) {
  if (url !== null) return url
  const refuse = (message: string) => new TrainerError({ message })
  const address = yield* Effect.orElseSucceed(Config.String(addressVariable), () => "")
  if (address === "")
    return yield* refuse(
      `expected the address of the Redis server in url, or in the environment variable ${addressVariable}`,
    )
  // The message does not show the address, which may contain a password.
  if (URL.parse(address) === null)
    return yield* refuse(`${addressVariable}: expected an address such as redis://user:password@host:6379`)
  return address
})

/** Connects to the store of a config once, before anything is trained. Fails if the store cannot be used. */
export const checkStore = Effect.fnUntraced(function* (store: RankStore) {
  if (store.type === "files") return
  const place = { type: store.type, url: store.url, prefix: "effect-rl/ranks/check", expirySeconds: 60 }
  yield* addressOf(store).pipe(
    Effect.andThen(Layer.build(storeAt(place))),
    Effect.scoped,
    Effect.mapError(({ message }) => TrainerError.at("trainer.store", message)),
  )
})

/**
 * Makes an empty folder inside `parent`, and removes `parent` when the scope closes. First removes what a killed trainer has
 * left in `parent`.
 */
export const privateFolder = Effect.fnUntraced(
  function* (parent: string) {
    const fs = yield* FileSystem.FileSystem
    // Repeat: ranks that are about to end may write a file into a folder while the system removes it.
    const removed = fs
      .remove(parent, { recursive: true, force: true })
      .pipe(Effect.retry({ schedule: Schedule.spaced("50 millis"), times: 20 }), Effect.ignore)
    yield* removed
    yield* Effect.acquireRelease(makeFolder(parent), () => removed)
    return yield* fs.makeTempDirectory({ directory: parent, prefix: "store-" })
  },
  (folder, parent) =>
    Effect.mapError(folder, (error) => TrainerError.at(parent, `cannot make it: ${systemMessage(error)}`)),
)
