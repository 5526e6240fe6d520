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

/** The state of a lock that this process holds, or waits for. */
interface LeaseState extends Required<LeaseOptions> {
  /** The length of the lease. */
  readonly millis: number
  /** Tells the locks of this process from those of others with its name. */
  readonly token: string
  /** One renewal at a time. */
  readonly turn: Semaphore.Semaphore
  /** The number of contents that were written. */
  writes: number
  /** The version of the lock that this process wrote last. */
  version: string
  renewedAt: number
  /** Whether the store knows conditions of puts. */
  isConditional: boolean
  /** Why this process no longer has the lock; undefined while it has it. */
  loss: string | undefined
}

const refused = ({ address }: LeaseState, message: string) =>
  new RunStoreError({ path: address, operation: "lock", message: `${address}: ${message}` })

const locking = <A>({ address }: LeaseState, effect: Effect.Effect<A, ObjectStoreError>) =>
  Effect.mapError(effect, (error) => runStoreError("lock", address, error))

/** Makes the next content of the lock. Each is another one, because stores of S3 derive the version from it. */
const content = (state: LeaseState) =>
  utf8.encode(`${state.owner.name}\n${state.token}\n${state.seconds}\n${++state.writes}\n`)

/** Takes the lock, when no other process holds it. */
const acquire = Effect.fnUntraced(function* (state: LeaseState) {
  let seen: string | undefined
  for (;;) {
    state.renewedAt = yield* Clock.currentTimeMillis
    const held = yield* state.store.versions.get(state.key)
    const holder = held === undefined ? undefined : holderOf(held.bytes)
    const isHeld =
      held !== undefined &&
      holder !== undefined &&
      holder.token !== state.token &&
      held.age < holder.millis &&
      !(yield* state.owner.hasEnded(holder.name))
    if (!isHeld) {
      const written = yield* state.store.versions.put(state.key, content(state), held?.version)
      if (written === undefined) continue
      state.version = written
      return
    }
    if (seen !== undefined && seen !== held.version)
      return yield* refused(state, `${holder.name} is writing this run; wait until it ends, or stop it`)
    if (seen === undefined)
      yield* state.onWait(
        `${state.address}: waiting up to ${holder.millis / 1000} s to see whether ${holder.name} is still writing this run`,
      )
    seen = held.version
    yield* Effect.sleep(holder.millis / 12)
  }
})

/** Fails if another process has the lock. */
const check = (state: LeaseState) =>
  Effect.suspend(() =>
    state.loss === undefined
      ? Effect.void
      : Effect.fail(
          refused(state, `this process lost the lock: ${state.loss}; what it has not written yet is dropped`),
        ),
  )

/** Reads the lock, and notes who has it if that is another process. */
const look = Effect.fnUntraced(function* (state: LeaseState) {
  const held = yield* state.store.versions.get(state.key)
  const holder = held === undefined ? undefined : holderOf(held.bytes)
  if (held !== undefined && holder?.token === state.token) state.version = held.version
  else state.loss = holder === undefined ? "it was removed" : `${holder.name} took it over`
})

/** Writes the lock again, so that it does not expire. */
const renew = (state: LeaseState) =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    // Without conditions, this put would take the lock from its new holder.
    if (!state.isConditional) yield* look(state)
    if (state.loss !== undefined) return
    const written = yield* state.store.versions.put(state.key, content(state), state.version)
    if (written === undefined) yield* look(state)
    else state.version = written
    state.renewedAt = now
  }).pipe(
    Effect.timeoutOrElse({
      duration: state.millis / 3,
      orElse: () =>
        Effect.fail(new ObjectStoreError({ key: state.key, message: `gives no answer in ${state.seconds / 3} s` })),
    }),
    state.turn.withPermit,
  )

/** Removes the lock, unless another process has it. */
const release = Effect.fnUntraced(function* (state: LeaseState) {
  yield* look(state)
  if (state.loss === undefined) yield* state.store.remove(state.key)
})

/**
 * Takes the lock, renews it until the scope closes, and removes it then. If another process holds it, waits until that
 * process has not renewed it for the length of the lease, and fails as soon as it is renewed.
 */
export const holdLease = Effect.fnUntraced(function* (
  options: LeaseOptions,
): Effect.fn.Return<Lease, RunStoreError, Scope.Scope> {
  const { seconds = leaseSeconds, onWait = () => Effect.void } = options
  const state: LeaseState = {
    ...options,
    seconds,
    onWait,
    millis: seconds * 1000,
    token: crypto.randomUUID(),
    turn: Semaphore.makeUnsafe(1),
    writes: 0,
    version: "",
    renewedAt: 0,
    isConditional: true,
    loss: undefined,
  }
  yield* Effect.acquireRelease(
    Effect.mapError(acquire(state), (error) =>
      error instanceof RunStoreError ? error : runStoreError("lock", state.address, error),
    ),
    () => Effect.ignore(release(state)),
    { interruptible: true },
  )
  // A store that ignores conditions writes the lock here although it exists.
  const again = yield* locking(state, state.store.versions.put(state.key, content(state), undefined))
  state.isConditional = again === undefined
  if (!state.isConditional) {
    yield* locking(state, look(state))
    yield* check(state)
    yield* Effect.logWarning(
      `${state.address}: this store ignores conditions of puts (If-None-Match), so two processes that begin to write a run at the same moment may not notice each other`,
    )
  }
  yield* Effect.forkScoped(Effect.repeat(Effect.ignore(renew(state)), Schedule.spaced(state.millis / 3)))

  return {
    confirm: Effect.gen(function* () {
      yield* check(state)
      if ((yield* Clock.currentTimeMillis) - state.renewedAt < state.millis / 2) return
      yield* locking(state, renew(state))
      yield* check(state)
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
