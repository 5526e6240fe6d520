/**
 * Provides object stores from the bindings of an edge worker: `layerBucket` for a bucket of R2, and `layerNamespace` for a
 * namespace of Workers KV. Both are plain interfaces: any object with these methods works.
 *
 * Prefer a bucket. A namespace accepts one write per second for each key, and a write is visible elsewhere only after up to a
 * minute; it suits checkpoints, which are written once.
 *
 * @example
 * ```ts
 * import * as Web from "effect-rl/web"
 *
 * const storedIn = (bindings: { readonly RUNS: Web.Bucket }) =>
 *   RunStore.layerObjects().pipe(Layer.provide(Web.layerBucket(bindings.RUNS)))
 * ```
 */
import { Effect, Layer } from "effect"
import type { RunStoreError } from "../RunStoreError.ts"
import { ObjectStore, objectStoreError } from "./ObjectStore.ts"

interface Listing {
  readonly prefix: string
  readonly cursor?: string
}

/** The methods of a bucket that the store calls; an `R2Bucket` has all of them. */
export interface Bucket {
  readonly get: (key: string) => PromiseLike<{ readonly arrayBuffer: () => PromiseLike<ArrayBuffer> } | null>
  readonly put: (key: string, bytes: Uint8Array<ArrayBuffer>) => PromiseLike<unknown>
  readonly delete: (key: string) => PromiseLike<unknown>
  readonly list: (options: Listing) => PromiseLike<{
    readonly objects: ReadonlyArray<{ readonly key: string }>
    readonly truncated: boolean
    readonly cursor?: string
  }>
}

/** The methods of a namespace that the store calls; a `KVNamespace` has all of them. */
export interface Namespace {
  readonly get: (key: string, type: "arrayBuffer") => PromiseLike<ArrayBuffer | null>
  readonly put: (key: string, bytes: Uint8Array<ArrayBuffer>) => PromiseLike<unknown>
  readonly delete: (key: string) => PromiseLike<unknown>
  readonly list: (options: Listing) => PromiseLike<{
    readonly keys: ReadonlyArray<{ readonly name: string }>
    readonly list_complete: boolean
    readonly cursor?: string
  }>
}

const calling = <A>(key: string, body: () => PromiseLike<A>): Effect.Effect<A, RunStoreError> =>
  Effect.tryPromise({ try: body, catch: objectStoreError(key) })

/** One page of a listing, and the cursor of the next page, if there is one. */
interface Page {
  readonly keys: ReadonlyArray<string>
  readonly next: string | undefined
}

/** Reads all pages of a listing. */
const allPages = Effect.fnUntraced(function* (prefix: string, pageAt: (listing: Listing) => PromiseLike<Page>) {
  const keys: Array<string> = []
  let cursor: string | undefined
  do {
    const listing = cursor === undefined ? { prefix } : { prefix, cursor }
    const page = yield* calling(prefix, () => pageAt(listing))
    keys.push(...page.keys)
    cursor = page.next
  } while (cursor !== undefined)
  return keys
})

/** Makes the Layer that keeps objects in a bucket of R2. */
export const layerBucket = (bucket: Bucket): Layer.Layer<ObjectStore> =>
  Layer.succeed(ObjectStore, {
    get: (key) =>
      calling(key, () =>
        bucket.get(key).then((object) => object?.arrayBuffer().then((buffer) => new Uint8Array(buffer))),
      ),
    put: (key, bytes) => Effect.asVoid(calling(key, () => bucket.put(key, bytes.slice()))),
    list: (prefix) =>
      allPages(prefix, (listing) =>
        bucket.list(listing).then(({ objects, truncated, cursor }) => ({
          keys: objects.map(({ key }) => key),
          next: truncated ? cursor : undefined,
        })),
      ),
    remove: (key) => Effect.asVoid(calling(key, () => bucket.delete(key))),
  })

/** Makes the Layer that keeps objects in a namespace of Workers KV. */
export const layerNamespace = (namespace: Namespace): Layer.Layer<ObjectStore> =>
  Layer.succeed(ObjectStore, {
    get: (key) =>
      calling(key, () =>
        namespace.get(key, "arrayBuffer").then((buffer) => (buffer === null ? undefined : new Uint8Array(buffer))),
      ),
    put: (key, bytes) => Effect.asVoid(calling(key, () => namespace.put(key, bytes.slice()))),
    list: (prefix) =>
      allPages(prefix, (listing) =>
        namespace.list(listing).then(({ keys, list_complete: isComplete, cursor }) => ({
          keys: keys.map(({ name }) => name),
          next: isComplete ? undefined : cursor,
        })),
      ),
    remove: (key) => Effect.asVoid(calling(key, () => namespace.delete(key))),
  })
