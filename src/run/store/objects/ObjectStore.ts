/**
 * The service that stores bytes by key: an object store in the cloud, or a database in a browser. `RunStore.layerObjects`
 * keeps runs in it. The other files of this folder are Layers: `indexedDb.ts` for a page, and `edgeStores.ts` for R2 and
 * Workers KV.
 *
 * @example
 * ```ts
 * import * as Web from "effect-rl/web"
 *
 * const stored = RunStore.layerObjects().pipe(Layer.provide(Web.layerIndexedDb("my-runs")))
 * const saved = training.pipe(Effect.provide(stored)) // the run's files are in the browser's database
 * ```
 */
import { Clock, Context, Effect, Layer } from "effect"
import * as KeyValueStore from "effect/persistence/KeyValueStore"
import { messageOf, oneLine } from "../../../base/text/text.ts"
import * as Layout from "../../Layout.ts"
import type { Part } from "../FileTree.ts"
import { type Folder, joined } from "../Folder.ts"
import { RunStoreError } from "../RunStoreError.ts"

/** Returns a function that turns any thrown value into the error of an operation on this key, or on keys with a prefix. */
export const objectStoreError =
  (key: string) =>
  (cause: unknown): RunStoreError =>
    new RunStoreError({ path: key, message: oneLine(messageOf(cause)) })

/** The description of an object in a listing. */
export interface ObjectInfo {
  readonly key: string
  readonly bytes: number
  /** A text that changes whenever the object is written with other bytes. */
  readonly version: string
  /** The time since the object was written, in milliseconds, by the clock of the store. */
  readonly age: number
}

/** An object with its bytes. */
export interface VersionedObject extends Omit<ObjectInfo, "bytes"> {
  readonly bytes: Uint8Array
}

/** The additional operations of stores that know the version of each object. Copies and locks need them. */
export interface Versions {
  /** Lists the objects whose keys begin with `prefix`, in any order. */
  readonly list: (prefix: string) => Effect.Effect<ReadonlyArray<ObjectInfo>, RunStoreError>
  /** Reads an object, or a part of its bytes; undefined if there is none, or if it ends before that part. */
  readonly get: (key: string, part?: Part) => Effect.Effect<VersionedObject | undefined, RunStoreError>
  /**
   * Writes an object only if its version is `expected`, or, for undefined, only if there is none. Returns the new version;
   * undefined if the object has another version. After an interrupted connection it may return undefined although it has
   * written the object; a caller that must know for certain reads the object again.
   */
  readonly put: (
    key: string,
    bytes: Uint8Array,
    expected: string | undefined,
  ) => Effect.Effect<string | undefined, RunStoreError>
}

/**
 * Keeps bytes by key. Keys are paths with `/`, such as `2026-01-31_12-00-00/…/0001/config.yaml`. The errors say what went
 * wrong; the caller adds the operation and the path.
 */
export class ObjectStore extends Context.Service<
  ObjectStore,
  {
    /** Reads an object; undefined if there is none with this key. */
    readonly get: (key: string) => Effect.Effect<Uint8Array | undefined, RunStoreError>
    /**
     * Writes a new object, or replaces one as a whole. The store copies the array, so the caller may change it afterwards.
     */
    readonly put: (key: string, bytes: Uint8Array) => Effect.Effect<void, RunStoreError>
    /** Lists the keys that begin with `prefix`, in any order. */
    readonly list: (prefix: string) => Effect.Effect<ReadonlyArray<string>, RunStoreError>
    /** Removes an object. Succeeds if there is none with this key. */
    readonly remove: (key: string) => Effect.Effect<void, RunStoreError>
    /** The operations on versions, which only the stores in memory and in S3 have. */
    readonly versions?: Versions
  }
>()("effect-rl/run/ObjectStore") {
  /** Keeps objects in memory. */
  static readonly layerMemory: Layer.Layer<ObjectStore> = Layer.sync(ObjectStore, () => {
    const objects = new Map<string, { readonly bytes: Uint8Array; readonly version: string; readonly at: number }>()
    let writes = 0
    const put = (key: string, bytes: Uint8Array) =>
      Effect.map(Clock.currentTimeMillis, (at) => {
        const version = String(++writes)
        objects.set(key, { bytes: bytes.slice(), version, at })
        return version
      })
    const keys = (prefix: string) => [...objects.keys()].filter((key) => key.startsWith(prefix))
    const versionOf = (key: string): string | undefined => objects.get(key)?.version
    const get: Versions["get"] = (key, { offset, bytes: length } = { offset: 0, bytes: Infinity }) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        const object = objects.get(key)
        if (object === undefined || (offset > 0 && offset >= object.bytes.length)) return undefined
        const { bytes, version, at } = object
        return { key, bytes: bytes.slice(offset, offset + length), version, age: now - at }
      })
    return ObjectStore.of({
      get: (key) => Effect.sync(() => objects.get(key)?.bytes.slice()),
      put: (key, bytes) => Effect.asVoid(put(key, bytes)),
      list: (prefix) => Effect.sync(() => keys(prefix)),
      remove: (key) => Effect.sync(() => void objects.delete(key)),
      versions: {
        list: (prefix) =>
          Effect.map(Clock.currentTimeMillis, (now) =>
            [...objects].flatMap(([key, { bytes, version, at }]) =>
              key.startsWith(prefix) ? [{ key, bytes: bytes.length, version, age: now - at }] : [],
            ),
          ),
        get,
        put: (key, bytes, expected) =>
          Effect.suspend(() => (versionOf(key) === expected ? put(key, bytes) : Effect.undefined)),
      },
    })
  })

  /**
   * Keeps objects in Effect's `KeyValueStore`, which has Layers for SQL databases, Redis, files and a browser's
   * `localStorage`. To list the keys of one run it lists all keys of the store, so give runs a store of their own.
   *
   * @example
   * ```ts
   * import * as KeyValueStore from "effect/persistence/KeyValueStore"
   *
   * const inSql = RunStore.layerObjects().pipe(
   *   Layer.provide(ObjectStore.layerKeyValueStore),
   *   Layer.provide(KeyValueStore.layerSql()),
   * )
   * ```
   */
  static readonly layerKeyValueStore: Layer.Layer<ObjectStore, never, KeyValueStore.KeyValueStore> = Layer.effect(
    ObjectStore,
    Effect.map(KeyValueStore.KeyValueStore, (store) => {
      const failing = (key: string) => Effect.mapError(objectStoreError(key))
      return ObjectStore.of({
        get: (key) => Effect.map(store.getUint8Array(key), (bytes) => bytes?.slice()).pipe(failing(key)),
        put: (key, bytes) => store.set(key, bytes.slice()).pipe(failing(key)),
        list: (prefix) =>
          Effect.map(store.keys, (keys) => keys.filter((key) => key.startsWith(prefix))).pipe(failing(prefix)),
        remove: (key) => store.remove(key).pipe(failing(key)),
      })
    }),
  )
}

const none = new Uint8Array(0)

/**
 * Returns the function that opens the folder of a run in an object store, by the run's path. Objects cannot be appended to,
 * so each append writes the whole file again, from a copy in memory. The file is not read again, because only one process
 * writes a run.
 */
export const foldersIn =
  (store: ObjectStore["Service"]) =>
  (directory: string): Folder => {
    const at = (path: string): string => `${directory}/${path}`
    const appendedTo = new Map<string, Uint8Array>()
    const forget = (path: string) => Effect.sync(() => void appendedTo.delete(path))
    return {
      read: (path) => store.get(at(path)),
      write: (path, bytes) => Effect.andThen(forget(path), store.put(at(path), bytes)),
      append: Effect.fnUntraced(function* (path, bytes) {
        const before = appendedTo.get(path) ?? (yield* store.get(at(path))) ?? none
        const after = joined(before, bytes)
        yield* store.put(at(path), after)
        appendedTo.set(path, after)
      }),
      list: Effect.map(store.list(`${directory}/`), (keys) => keys.map((key) => key.slice(directory.length + 1))),
      remove: (path) => Effect.andThen(forget(path), store.remove(at(path))),
    }
  }

/** Lists the paths of all runs in the store, sorted, so that with paths of new runs the latest is the last. */
export const storedRuns: Effect.Effect<ReadonlyArray<string>, RunStoreError, ObjectStore> = Effect.gen(function* () {
  const keys = yield* (yield* ObjectStore).list("")
  const ending = `/${Layout.config}`
  return keys.flatMap((key) => (key.endsWith(ending) ? [key.slice(0, -ending.length)] : [])).sort()
})
