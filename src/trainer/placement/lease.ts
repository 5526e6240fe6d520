/**
 * Keeps the ranks and orchestrators of a trainer at work on other machines, by leases. The trainer renews a lease every
 * second as long as it needs the work; the other machine works only while the lease is held. So the work ends with the
 * trainer, even if the trainer is killed or its network fails. Work that starts too late finds no lease and does nothing.
 *
 * @example
 * ```ts
 * yield* holdLease(store, "lease/1") // on the trainer, until the scope closes
 * yield* whileHeld({ store, key: "lease/1", deadline: "2 minutes" }, training) // on the other machine
 * ```
 */
import { Clock, Duration, Effect, type Scope } from "effect"
import { utf8 } from "../../base/text/utf8.ts"
import type { Store } from "../store/Store.ts"
import type { TrainerError } from "../TrainerError.ts"

/** The time in milliseconds between two renewals, and between two checks of a lease. */
const renewMillis = 1000

/** Holds a lease until the scope closes. Fails if the lease cannot be written at first; a failed renewal is repeated. */
export const holdLease = Effect.fnUntraced(function* (
  store: Store["Service"],
  key: string,
): Effect.fn.Return<void, TrainerError, Scope.Scope> {
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

/** Does the work while the lease is held. If the lease ends, interrupts the work and returns undefined. */
export const whileHeld = <A, E, R>(
  held: Held,
  work: Effect.Effect<A, E, R>,
): Effect.Effect<A | undefined, E | TrainerError, R> =>
  Effect.flatMap(held.store.get(held.key), (first) =>
    first === undefined ? Effect.succeed(undefined) : Effect.raceFirst(work, untilReleased(held, utf8.decode(first))),
  )

/** Waits until the lease is removed, or was not renewed in time. */
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
