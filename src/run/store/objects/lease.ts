/**
 * Locks a run in an object store, so that only one process on any machine writes it. The lock is an object with the name of
 * its holder, and the holder renews it. If a lock was not renewed for `seconds` seconds, its holder has died or lost its
 * connection, and another process may take it over. If two processes try, conditional puts let only one succeed. Ages come
 * from the store's own clock, so the clocks of the machines may differ.
 *
 * A holder that was frozen must not write after another process has taken over. So `confirm` is called before each write: it
 * renews a lock that was not renewed lately, and fails if the lock is lost.
 */
import { Clock, Effect, Schedule, type Scope, Semaphore } from "effect"
import { utf8 } from "../../../base/text/utf8.ts"
import type { LeaseOwner } from "../lock.ts"
import { RunStoreError, runStoreError } from "../RunStoreError.ts"
import type { ObjectStore, VersionedObject, Versions } from "./ObjectStore.ts"

interface LeaseOptions {
  readonly store: ObjectStore["Service"] & { readonly versions: Versions }
  /** The key of the lock. */
  readonly key: string
  /** The address of the lock, for messages. */
  readonly address: string
  readonly owner: LeaseOwner
  /** The number of seconds for which a lock holds without a renewal; `leaseSeconds` if left out. */
  readonly seconds?: number
  /** Called with a message before the process waits to see whether the lock is still renewed. */
  readonly onWait?: (message: string) => Effect.Effect<void>
}

export interface Lease {
  /** Fails if another process has taken the lock over. Call it before each write. */
  readonly confirm: Effect.Effect<void, RunStoreError>
}

/** The number of seconds for which a lock holds without a renewal. Its holder renews it three times in this time. */
export const leaseSeconds = 60

/** Parses the content of a lock: the name of its holder, a token that no other process has, and the time that it holds. */
const holderOf = (bytes: Uint8Array): { readonly name: string; readonly token: string; readonly millis: number } => {
  const [name = "", token = "", seconds = ""] = utf8.decode(bytes).split("\n")
  return { name, token, millis: 1000 * (Number(seconds) || leaseSeconds) }
}

/** Returns the name of the process that holds a lock; empty if the lock has expired. */
export const nameOfHolder = ({ bytes, age }: Pick<VersionedObject, "bytes" | "age">): string => {
  const { name, millis } = holderOf(bytes)
  return age < millis ? name : ""
}

/** The state of a lock that this process holds, or waits for. */
interface LeaseState extends Required<LeaseOptions> {
  /** The length of the lease. */
  readonly millis: number
  /** Distinguishes the locks of this process from those of another process with the same name. */
  readonly token: string
  /** Allows one renewal at a time. */
  readonly turn: Semaphore.Semaphore
  /** The number of times that this process has written the lock. */
  writes: number
  /** The version of the lock that this process wrote last. */
  version: string
  renewedAt: number
  /** Whether the store supports conditional puts. */
  isConditional: boolean
  /** The reason why this process has lost the lock; undefined while it holds the lock. */
  loss: string | undefined
}

const refused = ({ address }: LeaseState, message: string) =>
  new RunStoreError({ path: address, operation: "lock", message: `${address}: ${message}` })

const locking = <A>({ address }: LeaseState, effect: Effect.Effect<A, RunStoreError>) =>
  Effect.mapError(effect, (error) => runStoreError("lock", address, error))

/** Makes the next content of the lock. It differs each time, because S3 stores derive the version from the content. */
const content = (state: LeaseState) =>
  utf8.encode(`${state.owner.name}\n${state.token}\n${state.seconds}\n${++state.writes}\n`)

/** Takes the lock if no other process holds it. Otherwise waits for the lock to expire, and fails if its holder renews it. */
const acquire = Effect.fnUntraced(function* (state: LeaseState) {
  let seen: string | undefined
  for (;;) {
    state.renewedAt = yield* Clock.currentTimeMillis
    const held = yield* locking(state, state.store.versions.get(state.key))
    const holder = held === undefined ? undefined : holderOf(held.bytes)
    const isHeld =
      held !== undefined &&
      holder !== undefined &&
      holder.token !== state.token &&
      held.age < holder.millis &&
      !(yield* state.owner.hasEnded(holder.name))
    if (!isHeld) {
      const written = yield* locking(state, state.store.versions.put(state.key, content(state), held?.version))
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

/** Reads the lock. If another process holds it, records the loss. */
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
    // Without conditional puts, check first: this put would take the lock away from its new holder.
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
        Effect.fail(new RunStoreError({ path: state.key, message: `gives no answer in ${state.seconds / 3} s` })),
    }),
    state.turn.withPermit,
  )

/** Removes the lock, unless another process has it. */
const release = Effect.fnUntraced(function* (state: LeaseState) {
  yield* look(state)
  if (state.loss === undefined) yield* state.store.remove(state.key)
})

/**
 * Takes the lock, renews it until the scope closes, and removes it then. If another process holds the lock, waits until the
 * lock has expired, and fails if it is renewed meanwhile.
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
  yield* Effect.acquireRelease(acquire(state), () => Effect.ignore(release(state)), { interruptible: true })
  // Test for conditional puts: the lock exists, so this put must be refused. A store that ignores conditions writes it.
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

/** Returns a store that confirms before each write that this process still holds the lock. */
export const guarded = (store: ObjectStore["Service"], { confirm }: Lease): ObjectStore["Service"] => ({
  get: store.get,
  list: store.list,
  put: (key, bytes) => Effect.andThen(confirm, store.put(key, bytes)),
  remove: (key) => Effect.andThen(confirm, store.remove(key)),
})
