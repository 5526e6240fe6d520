/** Reads runs in a bucket of S3, for the commands that only read: they list it once and fetch what they need. */
import { Deferred, Effect, Semaphore } from "effect"
import type { RunStoreError } from "../../../run/store/RunStoreError.ts"
import type { FileSource } from "../../../run/read/FileSource.ts"
import { type ObjectSource, objectSource } from "../../../run/read/objectSource.ts"
import { owner } from "../../../run/store/owner-node.ts"
import { warn } from "../findRun.ts"
import { usageError } from "../output/output.ts"
import { cachedGet } from "./cache.ts"
import { connect, failingAt } from "./connect.ts"
import { type CommandError } from "../../CommandError.ts"

/** The number of requests that wait for their answers at the same time. */
const concurrency = 32

/** A bucket whose objects have been listed. */
interface ReadBucket {
  /** Reads the files that the listing names, by their addresses. */
  readonly source: ObjectSource
  /** The address with which all paths of the source begin. */
  readonly root: string
  /** Reads the whole file at an address; undefined if the file no longer exists. */
  readonly fetch: (path: string) => Effect.Effect<Uint8Array | undefined, CommandError>
}

/**
 * Opens a bucket for reading and lists its objects; `only` names a folder outside of which nothing is listed. `onError` handles
 * the error of a later read.
 */
export const openBucketSource = Effect.fnUntraced(function* (
  address: string,
  warn: FileSource["warn"],
  onError: (error: CommandError) => Effect.Effect<undefined>,
  only = "",
) {
  const connected = yield* connect(address)
  const { store, root } = connected
  const requests = Semaphore.makeUnsafe(concurrency)
  const fetched = cachedGet(connected)
  const get: typeof fetched = (object, part) => requests.withPermit(fetched(object, part))
  const source = objectSource({
    root,
    list: () => store.versions.list(only === "" ? "" : `${only}/`),
    get,
    onError: ({ message }: RunStoreError) => onError(usageError(`${root}: ${message}`)),
    // A machine with the same hostname may hold the lock; a lock that is too old names no holder.
    isAlive: (name) => Effect.map(owner.hasEnded(name), (hasEnded) => !hasEnded),
    warn,
  })
  yield* failingAt(root)(source.refresh)
  const bucket: ReadBucket = {
    source,
    root,
    fetch: (path) => {
      const object = source.infoAt(path)
      return object === undefined ? Effect.undefined : failingAt(root)(get(object))
    },
  }
  return bucket
})

/** Runs `body` with the files of runs in a bucket. It fails as soon as the bucket can't be read. */
export const readingBucket = <A, E, R>(address: string, body: (bucket: ReadBucket) => Effect.Effect<A, E, R>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const failed = yield* Deferred.make<never, CommandError>()
      // A source of runs has no error channel, so a read that fails never returns, and the whole program fails here.
      const bucket = yield* openBucketSource(address, warn, (error) =>
        Effect.andThen(Deferred.fail(failed, error), Effect.never),
      )
      return yield* Effect.raceFirst(body(bucket), Deferred.await(failed))
    }),
  )
