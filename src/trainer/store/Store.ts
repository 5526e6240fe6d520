/**
 * The service through which the ranks of a trainer share values: a value that one rank sets can be read or awaited by all
 * others, and the ranks can wait for each other at barriers. `memory` connects ranks in one process, `layerFileSystem`
 * connects processes through a folder, and `layer` of `redisStore.ts` through a Redis server.
 *
 * Every wait has a deadline, after which an error names the missing rank. Start each set of ranks with an empty store (a new
 * folder, another prefix), because old values would be mistaken for new ones.
 *
 * @example
 * ```ts
 * yield* Effect.gen(function* () {
 *   const store = yield* Store
 *   yield* store.set("answer", new Uint8Array([42]))
 *   yield* store.wait("answer", "1 minute") // Uint8Array [42], on every rank
 *   yield* store.barrier({ name: "loaded", rank: 0, ranks: 1, deadline: "1 minute" })
 * }).pipe(Effect.provide(Store.memory()))
 * ```
 */
import { Context, Duration, Effect, Exit, FileSystem, Layer, Path, type PlatformError } from "effect"
import {
  makeFolder,
  mostBytes,
  namesIn,
  type PlatformFailure,
  readBytes,
  systemMessage,
} from "../../base/files/files.ts"
import { Sha256 } from "../../base/text/sha256.ts"
import { utf8 } from "../../base/text/utf8.ts"
import { TrainerError } from "../TrainerError.ts"

/** A point at which all ranks wait for each other. */
interface Meeting {
  /** The name of the meeting. It can be used only once: the values of the ranks stay in the store until they are removed. */
  readonly name: string
  /** The number of this rank, from 0. */
  readonly rank: number
  /** The number of ranks. */
  readonly ranks: number
  /** The time after which a missing rank is an error. */
  readonly deadline: Duration.Input
}

/** The operations that each kind of store implements. */
export interface Primitives {
  readonly set: (key: string, value: Uint8Array) => Effect.Effect<void, TrainerError>
  /** Returns a value; undefined if it was not set. */
  readonly get: (key: string) => Effect.Effect<Uint8Array | undefined, TrainerError>
  /** Waits for a value, without a deadline. */
  readonly await: (key: string) => Effect.Effect<Uint8Array, TrainerError>
  /** Adds a whole number to the counter of a key, which starts at 0, and returns the sum. Counters are not values. */
  readonly add: (key: string, amount: number) => Effect.Effect<number, TrainerError>
  /** Removes a value. Succeeds if it is missing. */
  readonly remove: (key: string) => Effect.Effect<void, TrainerError>
}

export class Store extends Context.Service<
  Store,
  Omit<Primitives, "await"> & {
    /** Waits until a value is set. */
    readonly wait: (key: string, deadline: Duration.Input) => Effect.Effect<Uint8Array, TrainerError>
    /** Waits for a value of each rank, and returns all values in the order of the ranks. */
    readonly gather: (meeting: Meeting, value: Uint8Array) => Effect.Effect<ReadonlyArray<Uint8Array>, TrainerError>
    /** Waits until all ranks have arrived. The error names the missing ranks. */
    readonly barrier: (meeting: Meeting) => Effect.Effect<void, TrainerError>
    /** Removes the values of a meeting. All ranks must have left the meeting. */
    readonly forget: (meeting: Pick<Meeting, "name" | "ranks">) => Effect.Effect<void, TrainerError>
  }
>()("effect-rl/multirun/Store") {
  /** Connects ranks in one process. All ranks must get the same Layer, so call this function once. */
  static readonly memory = (): Layer.Layer<Store> => {
    const store = storeOf(inMemory())
    return Layer.succeed(Store, store)
  }

  /** Connects processes through files in a folder, which must be empty at the start. The files are not flushed to disk. */
  static readonly layerFileSystem = (
    options: FileStoreOptions,
  ): Layer.Layer<Store, TrainerError, FileSystem.FileSystem | Path.Path> =>
    Layer.effect(Store, Effect.map(onFiles(options), storeOf))
}

interface FileStoreOptions {
  readonly directory: string
  /** The longest time between two attempts to read a value that another rank will set. @default "10 millis" */
  readonly pollInterval?: Duration.Input
}

/** Makes the error of a failed operation. */
export const storeError = (operation: string, key: string, problem: string): TrainerError =>
  new TrainerError({ message: `cannot ${operation} "${key}" in the ranks' store: ${problem}` })

const rankKey = (name: string, rank: number): string => `${name}/${rank}`

/** Formats ranks for messages: "rank 1", "ranks 1, 2 and 5". */
const shownRanks = (ranks: ReadonlyArray<number>): string =>
  ranks.length === 1 ? `rank ${ranks[0]}` : `ranks ${ranks.slice(0, -1).join(", ")} and ${ranks.at(-1)}`

/** Makes the error that names the ranks which did not arrive in time. */
export const ranksMissing = (
  { name, ranks, deadline }: Omit<Meeting, "rank">,
  missing: ReadonlyArray<number>,
): TrainerError => {
  const time = Duration.format(Duration.fromInputUnsafe(deadline))
  return new TrainerError({
    reason: "absent",
    message: `${name}: ${shownRanks(missing)} of ${ranks} did not arrive within ${time}; the process may have ended, or its step takes longer than trainer.rank_deadline: start all ranks again from their last checkpoints`,
  })
}

/** Checks that a key can be used in every store, and that an amount is an integer without rounding. */
const checked = (operation: string, key: string, amount = 0): Effect.Effect<void, TrainerError> => {
  const size = utf8.encode(key).length
  if (size === 0 || size > 200)
    return Effect.fail(storeError(operation, key, `expected a key of 1 to 200 bytes, found ${size}`))
  if (Number.isSafeInteger(amount)) return Effect.void
  return Effect.fail(storeError(operation, key, `expected a whole number, found ${amount}`))
}

/** Makes a store from its primitive operations. Use it to implement another store. */
export const storeOf = (primitives: Primitives): Store["Service"] => {
  const set: Primitives["set"] = (key, value) => Effect.andThen(checked("set", key), primitives.set(key, value))
  const gather = (meeting: Meeting, value: Uint8Array) => {
    const { name, rank, ranks, deadline } = meeting
    const keys = Array.from({ length: ranks }, (_, other) => rankKey(name, other))
    const values = keys.map((key, other) => (other === rank ? Effect.succeed(value) : primitives.await(key)))
    const all = Effect.all(values, { concurrency: "unbounded" })
    const late = Effect.flatMap(Effect.forEach(keys, primitives.get), (values) => {
      const missing = values.flatMap((one, other) => (one === undefined ? [other] : []))
      // Read once more: the last rank may have arrived just after the deadline.
      return missing.length === 0
        ? Effect.succeed(values.flatMap((one) => one ?? []))
        : Effect.fail(ranksMissing(meeting, missing))
    })
    return Effect.andThen(
      set(rankKey(name, rank), value),
      Effect.timeoutOrElse(all, { duration: deadline, orElse: () => late }),
    )
  }
  return {
    ...primitives,
    set,
    get: (key) => Effect.andThen(checked("get", key), primitives.get(key)),
    add: (key, amount) => Effect.andThen(checked("add", key, amount), primitives.add(key, amount)),
    remove: (key) => Effect.andThen(checked("remove", key), primitives.remove(key)),
    wait: (key, deadline) =>
      Effect.andThen(
        checked("wait", key),
        Effect.timeoutOrElse(primitives.await(key), {
          duration: deadline,
          orElse: () => {
            const time = Duration.format(Duration.fromInputUnsafe(deadline))
            const { message } = storeError("wait for", key, `no rank has set it within ${time}`)
            return Effect.fail(new TrainerError({ reason: "late", message }))
          },
        }),
      ),
    gather,
    barrier: (meeting) => Effect.asVoid(gather(meeting, new Uint8Array(0))),
    forget: ({ name, ranks }) =>
      Effect.forEach(
        Array.from({ length: ranks }, (_, rank) => rankKey(name, rank)),
        primitives.remove,
        { discard: true },
      ),
  }
}

const inMemory = (): Primitives => {
  const values = new Map<string, Uint8Array>()
  const counters = new Map<string, number>()
  const waiting = new Map<string, Set<(value: Uint8Array) => void>>()
  const get: Primitives["get"] = (key) => Effect.sync(() => values.get(key)?.slice())
  return {
    get,
    set: (key, value) =>
      Effect.sync(() => {
        values.set(key, value.slice())
        for (const resume of waiting.get(key) ?? []) resume(value.slice())
        waiting.delete(key)
      }),
    await: (key) =>
      Effect.callback((resume) => {
        const value = values.get(key)
        if (value !== undefined) return resume(Effect.succeed(value.slice()))
        const listeners = waiting.get(key) ?? new Set()
        const listener = (set: Uint8Array) => resume(Effect.succeed(set))
        waiting.set(key, listeners.add(listener))
        return Effect.sync(() => {
          listeners.delete(listener)
          if (listeners.size === 0 && waiting.get(key) === listeners) waiting.delete(key)
        })
      }),
    add: (key, amount) =>
      Effect.sync(() => {
        const sum = (counters.get(key) ?? 0) + amount
        counters.set(key, sum)
        return sum
      }),
    remove: (key) => Effect.sync(() => void values.delete(key)),
  }
}

/**
 * Reads a value repeatedly until it exists. The pauses grow: ranks with the same work usually arrive together, so the first
 * pauses are short.
 */
export const polling =
  (get: Primitives["get"], longest: Duration.Input): Primitives["await"] =>
  (key) =>
    Effect.gen(function* () {
      const most = Duration.toMillis(longest)
      for (let millis = most / 16; ; millis = Math.min(most, 1.5 * millis)) {
        const value = yield* get(key)
        if (value !== undefined) return value
        yield* Effect.sleep(millis)
      }
    })

/** The longest file name that is made of a key without cutting it. File systems allow 255 bytes. */
const longestName = 200

/**
 * Converts a key to a file name that is valid on every file system and unique. A long name is cut, and ends with the digest
 * of the key.
 */
const fileName = (key: string): string => {
  const bytes = utf8.encode(key)
  const name = [...bytes]
    .map((byte) => {
      const letter = String.fromCharCode(byte)
      return /[a-z0-9_-]/.test(letter) ? letter : `%${byte.toString(16).padStart(2, "0")}`
    })
    .join("")
  if (name.length <= longestName) return name
  const digest = new Sha256()
  digest.update(bytes)
  return `${name.slice(0, 100)}~${digest.hex()}`
}

const onFiles = Effect.fnUntraced(function* ({ directory, pollInterval = "10 millis" }: FileStoreOptions) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const context = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
  const [values, counters] = [path.join(directory, "values"), path.join(directory, "counters")]
  const failing = (operation: string, key: string) =>
    Effect.mapError((error: PlatformFailure) => storeError(operation, key, systemMessage(error)))
  for (const folder of [values, counters]) yield* failing("open", directory)(makeFolder(folder))
  /** The folder in which this process writes files before they are renamed into place. */
  const prepared = yield* failing("open", directory)(fs.makeTempDirectoryScoped({ directory, prefix: "prepared-" }))
  let preparedCount = 0
  const preparedPath = (): string => path.join(prepared, String(preparedCount++))

  const read = (file: string): Effect.Effect<Uint8Array | undefined, PlatformFailure> =>
    readBytes(file, mostBytes.binary).pipe(
      Effect.catchIf(
        ({ missing }) => missing,
        () => Effect.succeed(undefined),
      ),
      Effect.provideContext(context),
    )
  const get: Primitives["get"] = (key) => failing("get", key)(read(path.join(values, fileName(key))))

  /**
   * Renames a folder that holds the sum to `at`. Returns false if `at` exists: a rename never replaces a folder with content.
   */
  const claim = Effect.fnUntraced(function* (at: string, sum: number) {
    const folder = preparedPath()
    yield* fs.makeDirectory(folder)
    yield* fs.writeFile(path.join(folder, "sum"), utf8.encode(String(sum)))
    const renamed = yield* Effect.exit(fs.rename(folder, at))
    if (Exit.isSuccess(renamed)) return true
    yield* fs.remove(folder, { recursive: true })
    return (yield* fs.exists(at)) ? false : yield* renamed
  })

  /**
   * Adds to a counter: each addition claims the next number in the counter's folder. It needs no lock that a killed process
   * would leave behind.
   */
  const add = Effect.fnUntraced(function* (
    key: string,
    amount: number,
  ): Effect.fn.Return<number, PlatformFailure | PlatformError.PlatformError> {
    const folder = path.join(counters, fileName(key))
    // Not recursively: the folder of a store that was removed must not be created again.
    if (!(yield* fs.exists(folder))) yield* Effect.ignore(fs.makeDirectory(folder))
    for (;;) {
      const additions = yield* Effect.provideContext(namesIn(folder), context)
      const last = Math.max(0, ...additions.map(Number))
      const before = last === 0 ? undefined : yield* read(path.join(folder, String(last), "sum"))
      const sum = Number(utf8.decode(before)) + amount
      if (yield* claim(path.join(folder, String(last + 1)), sum)) return sum
    }
  })

  return {
    get,
    await: polling(get, pollInterval),
    set: (key, value) => {
      const file = preparedPath()
      return fs
        .writeFile(file, value)
        .pipe(
          Effect.andThen(fs.rename(file, path.join(values, fileName(key)))),
          Effect.uninterruptible,
          failing("set", key),
        )
    },
    add: (key, amount) => add(key, amount).pipe(Effect.uninterruptible, failing("add", key)),
    remove: (key) => failing("remove", key)(fs.remove(path.join(values, fileName(key)), { force: true })),
  } satisfies Primitives
})
