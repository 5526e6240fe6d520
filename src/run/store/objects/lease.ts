/**
 * Locks a run in an object store, so that only one process on any machine writes it. The lock is an object with the name of
 * its holder, which renews it; a lock that was not renewed for `lease` seconds belongs to a process that has died or lost
 * its connection, and another process takes it over. Puts with a condition decide which one, if two try. Ages are taken from
 * the store's own clock, so the clocks of the machines may differ.
 *
 * A holder that was frozen must not write after another one took over: `confirm`, which comes before each write, renews a
 * lock that was not renewed lately, and fails if it is lost.
 */
import { Clock, Effect, Schedule, type Scope, Semaphore } from "effect"
import { utf8 } from "../../../base/config/utf8.ts"
import type { LeaseOwner } from "../lock.ts"
import { RunStoreError, runStoreError } from "../RunStoreError.ts"
import { type ObjectStore, ObjectStoreError, type VersionedObject, type Versions } from "./ObjectStore.ts"

interface LeaseOptions {
  readonly store: ObjectStore["Service"] & { readonly versions: Versions }
  /** The key of the lock. */
  readonly key: string
  /** The address of the lock, for messages. */
  readonly address: string
  readonly owner: LeaseOwner
  /** How long a lock holds that is not renewed, in seconds; `leaseSeconds` if left out. */
  readonly seconds?: number
  /** Called before the process waits to see whether the holder of the lock still renews it. */
  readonly onWait?: (message: string) => Effect.Effect<void>
}

export interface Lease {
  /** Fails if another process has taken the lock over. Call it before each write. */
  readonly confirm: Effect.Effect<void, RunStoreError>
}

/** A lock that is not renewed holds for so many seconds. Its holder renews it three times as often. */
export const leaseSeconds = 60

/** The content of a lock: the name of its holder, the token that no other process has, and how long it holds. */
const holderOf = (bytes: Uint8Array): { readonly name: string; readonly token: string; readonly millis: number } => {
  const [name = "", token = "", seconds = ""] = utf8.decode(bytes).split("\n")
  return { name, token, millis: 1000 * (Number(seconds) || leaseSeconds) }
}

/** Returns the name of the process that holds a lock; empty if the lock was not renewed for too long. */
export const nameOfHolder = ({ bytes, age }: Pick<VersionedObject, "bytes" | "age">): string => {
  const { name, millis } = holderOf(bytes)
  return age < millis ? name : ""
}

/**
 * Takes the lock, renews it until the scope closes, and removes it then. If another process holds it, waits until that
 * process has not renewed it for the length of the lease, and fails as soon as it is renewed.
 */
export const holdLease = Effect.fnUntraced(function* ({
  store,
  key,
  address,
  owner,
  seconds = leaseSeconds,
  onWait = () => Effect.void,
}: LeaseOptions): Effect.fn.Return<Lease, RunStoreError, Scope.Scope> {
  const { versions } = store
  const millis = seconds * 1000
  const token = crypto.randomUUID()
  const turn = Semaphore.makeUnsafe(1)
  const locking = Effect.mapError((error: ObjectStoreError) => runStoreError("lock", address, error))
  const refused = (message: string) =>
    new RunStoreError({ path: address, operation: "lock", message: `${address}: ${message}` })

  let writes = 0
  // Each content is another one, because stores of S3 derive the version from it.
  const content = () => utf8.encode(`${owner.name}\n${token}\n${seconds}\n${++writes}\n`)
  let version = ""
  let renewedAt = 0
  let isConditional = true
  let loss: string | undefined

  const acquire = Effect.gen(function* () {
    let seen: string | undefined
    for (;;) {
      renewedAt = yield* Clock.currentTimeMillis
      const held = yield* versions.get(key)
      const holder = held === undefined ? undefined : holderOf(held.bytes)
      const isHeld =
        held !== undefined &&
        holder !== undefined &&
        holder.token !== token &&
        held.age < holder.millis &&
        !(yield* owner.hasEnded(holder.name))
      if (!isHeld) {
        const written = yield* versions.put(key, content(), held?.version)
        if (written === undefined) continue
        version = written
        return
      }
      if (seen !== undefined && seen !== held.version)
        return yield* refused(`${holder.name} is writing this run; wait until it ends, or stop it`)
      if (seen === undefined)
        yield* onWait(
          `${address}: waiting up to ${holder.millis / 1000} s to see whether ${holder.name} is still writing this run`,
        )
      seen = held.version
      yield* Effect.sleep(holder.millis / 12)
    }
  })

  const check = Effect.suspend(() =>
    loss === undefined
      ? Effect.void
      : Effect.fail(refused(`this process lost the lock: ${loss}; what it has not written yet is dropped`)),
  )
  /** Reads the lock, and notes who has it if that is another process. */
  const look = Effect.gen(function* () {
    const held = yield* versions.get(key)
    const holder = held === undefined ? undefined : holderOf(held.bytes)
    if (held !== undefined && holder?.token === token) version = held.version
    else loss = holder === undefined ? "it was removed" : `${holder.name} took it over`
  })

  const renew = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    // Without conditions, this put would take the lock from its new holder.
    if (!isConditional) yield* look
    if (loss !== undefined) return
    const written = yield* versions.put(key, content(), version)
    if (written === undefined) yield* look
    else version = written
    renewedAt = now
  }).pipe(
    Effect.timeoutOrElse({
      duration: millis / 3,
      orElse: () => Effect.fail(new ObjectStoreError({ key, message: `gives no answer in ${seconds / 3} s` })),
    }),
    turn.withPermit,
  )

  const release = Effect.gen(function* () {
    yield* look
    if (loss === undefined) yield* store.remove(key)
  })
  yield* Effect.acquireRelease(
    Effect.mapError(acquire, (error) =>
      error instanceof RunStoreError ? error : runStoreError("lock", address, error),
    ),
    () => Effect.ignore(release),
    { interruptible: true },
  )
  // A store that ignores conditions writes the lock here although it exists.
  const again = yield* locking(versions.put(key, content(), undefined))
  isConditional = again === undefined
  if (!isConditional) {
    yield* locking(look)
    yield* check
    yield* Effect.logWarning(
      `${address}: this store ignores conditions of puts (If-None-Match), so two processes that begin to write a run at the same moment may not notice each other`,
    )
  }
  yield* Effect.forkScoped(Effect.repeat(Effect.ignore(renew), Schedule.spaced(millis / 3)))

  return {
    confirm: Effect.gen(function* () {
      yield* check
      if ((yield* Clock.currentTimeMillis) - renewedAt < millis / 2) return
      yield* locking(renew)
      yield* check
    }),
  }
})

/** Returns the store whose writes first confirm that this process still holds the lock. */
export const guarded = (store: ObjectStore["Service"], lease: Lease): ObjectStore["Service"] => {
  const confirmed = (key: string) =>
    Effect.mapError(lease.confirm, ({ message }) => new ObjectStoreError({ key, message }))
  return {
    get: store.get,
    list: store.list,
    put: (key, bytes) => Effect.andThen(confirmed(key), store.put(key, bytes)),
    remove: (key) => Effect.andThen(confirmed(key), store.remove(key)),
  }
}
