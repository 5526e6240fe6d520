/**
 * Leases by which a trainer keeps parts of it at work on other machines. The trainer holds a lease as long as it needs the
 * part, and renews it every second; the machine works only while the lease is held. So the part ends with the trainer,
 * also if that was killed or cut off, and a part that is placed too late finds no lease and does nothing.
 *
 * @example
 * ```ts
 * yield* holdLease(store, "lease/1") // on the trainer, until the scope closes
 * yield* whileHeld({ store, key: "lease/1", deadline: "2 minutes" }, training) // on the other machine
 * ```
 */
import { Clock, Duration, Effect, type Scope } from "effect"
import { utf8 } from "../../base/config/utf8.ts"
import type { Store, StoreError } from "../store/Store.ts"

/** The time in milliseconds between two renewals, and between two looks for them. */
const renewMillis = 1000

/** Holds a lease until the scope closes. Fails if it cannot be taken; a renewal that fails is tried again. */
export const holdLease = Effect.fnUntraced(function* (
  store: Store["Service"],
  key: string,
): Effect.fn.Return<void, StoreError, Scope.Scope> {
  let renewals = 0
  const renew = Effect.suspend(() => store.set(key, utf8.encode(String(renewals++))))
  yield* Effect.acquireRelease(renew, () => Effect.ignore(store.remove(key)))
  yield* Effect.sleep(renewMillis).pipe(Effect.andThen(Effect.ignore(renew)), Effect.forever, Effect.forkScoped)
})

/** A lease that another process holds. */
interface Held {
  readonly store: Store["Service"]
  readonly key: string
  /** The time without a renewal after which the process that holds the lease counts as gone. */
  readonly deadline: Duration.Input
}

/** Does the work while the lease is held. Returns undefined, and interrupts the work, when it is not. */
export const whileHeld = <A, E, R>(
  held: Held,
  work: Effect.Effect<A, E, R>,
): Effect.Effect<A | undefined, E | StoreError, R> =>
  Effect.flatMap(held.store.get(held.key), (first) =>
    first === undefined ? Effect.succeed(undefined) : Effect.raceFirst(work, untilReleased(held, utf8.decode(first))),
  )

/** Waits until the lease is given back, or is not renewed in time. */
const untilReleased = Effect.fnUntraced(function* ({ store, key, deadline }: Held, first: string) {
  const most = Duration.toMillis(Duration.fromInputUnsafe(deadline))
  let last = first
  let renewedAt = yield* Clock.currentTimeMillis
  for (;;) {
    yield* Effect.sleep(Math.min(renewMillis, most / 2))
    const value = yield* store.get(key)
    if (value === undefined) return undefined
    const now = yield* Clock.currentTimeMillis
    const text = utf8.decode(value)
    if (text !== last) renewedAt = now
    else if (now - renewedAt >= most) return undefined
    last = text
  }
})
