/**
 * Provides an object store in a browser's database (IndexedDB), for pages and web workers. The data remain when the page is
 * closed. The browser limits their size, and may ask the user.
 *
 * @example
 * ```ts
 * import * as Web from "effect-rl/web"
 *
 * const stored = RunStore.layerObjects().pipe(Layer.provide(Web.layerIndexedDb("my-runs")))
 * ```
 */
import { Effect, Layer } from "effect"
import { RunStoreError } from "../RunStoreError.ts"
import { ObjectStore, objectStoreError } from "./ObjectStore.ts"

interface Target<Type extends string> {
  readonly addEventListener: (type: Type, listener: () => void) => void
}

interface Request<A, Type extends string = "success" | "error"> extends Target<Type> {
  readonly result: A
  readonly error: unknown
}

interface Objects {
  readonly get: (key: string) => Request<unknown>
  readonly put: (bytes: Uint8Array, key: string) => Request<unknown>
  readonly delete: (key: string) => Request<unknown>
  readonly getAllKeys: (range?: object) => Request<ReadonlyArray<unknown>>
}

interface Transaction extends Target<"complete" | "abort"> {
  readonly objectStore: (name: string) => Objects
  readonly error: unknown
}

interface Database extends Target<"versionchange"> {
  readonly createObjectStore: (name: string) => unknown
  readonly transaction: (
    name: string,
    mode: "readonly" | "readwrite",
    options: { readonly durability: "strict" },
  ) => Transaction
  readonly close: () => void
}

/** Declares the part of IndexedDB that this file uses. TypeScript declares it only in the types for browsers. */
declare const indexedDB: {
  readonly open: (name: string, version: number) => Request<Database, "success" | "error" | "upgradeneeded">
}
declare const IDBKeyRange: { readonly bound: (lower: string, upper: string) => object }

const table = "files"
/** The last character of all, so that a range ends after all keys with a prefix. */
const last = "\uffff"

/** Opens the database, and creates it if it is new. */
const open = (name: string): Effect.Effect<Database, RunStoreError> =>
  Effect.callback((resume) => {
    if (typeof indexedDB === "undefined") {
      const message = "this engine has no IndexedDB; use another store, such as ObjectStore.layerMemory"
      return resume(Effect.fail(new RunStoreError({ path: name, message })))
    }
    const request = indexedDB.open(name, 1)
    request.addEventListener("upgradeneeded", () => request.result.createObjectStore(table))
    request.addEventListener("error", () => resume(Effect.fail(objectStoreError(name)(request.error))))
    request.addEventListener("success", () => {
      const database = request.result
      // Another page wants to delete the database or to open a newer version of it, and waits until this connection is
      // closed.
      database.addEventListener("versionchange", () => database.close())
      resume(Effect.succeed(database))
    })
  })

/** Runs one request in its own transaction, and returns the result when the transaction is on disk. */
const inTransaction = <A>(
  database: Database,
  key: string,
  mode: "readonly" | "readwrite",
  body: (objects: Objects) => Request<A>,
): Effect.Effect<A, RunStoreError> =>
  Effect.callback((resume) => {
    const fail = (cause: unknown) => resume(Effect.fail(objectStoreError(key)(cause)))
    try {
      const transaction = database.transaction(table, mode, { durability: "strict" })
      const request = body(transaction.objectStore(table))
      transaction.addEventListener("complete", () => resume(Effect.succeed(request.result)))
      // A full disk aborts the transaction after its request has succeeded.
      transaction.addEventListener("abort", () =>
        fail(transaction.error ?? request.error ?? "the transaction was aborted"),
      )
    } catch (error) {
      fail(error)
    }
  })

/** Makes the Layer that keeps objects in the database with this name. */
export const layer = (name = "effect-rl"): Layer.Layer<ObjectStore, RunStoreError> =>
  Layer.effect(
    ObjectStore,
    Effect.gen(function* () {
      const database = yield* Effect.acquireRelease(open(name), (opened) => Effect.sync(() => opened.close()))
      return ObjectStore.of({
        get: (key) =>
          Effect.map(
            inTransaction(database, key, "readonly", (objects) => objects.get(key)),
            (bytes) => (bytes instanceof Uint8Array ? bytes : undefined),
          ),
        // Copy views of a larger buffer, because the database would store the whole buffer.
        put: (key, bytes) =>
          Effect.asVoid(inTransaction(database, key, "readwrite", (objects) => objects.put(bytes.slice(), key))),
        list: (prefix) =>
          Effect.map(
            inTransaction(database, prefix, "readonly", (objects) =>
              objects.getAllKeys(IDBKeyRange.bound(prefix, prefix + last)),
            ),
            (keys) => keys.map(String),
          ),
        remove: (key) => Effect.asVoid(inTransaction(database, key, "readwrite", (objects) => objects.delete(key))),
      })
    }),
  )
