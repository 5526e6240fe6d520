import { Clock, Duration, Effect } from "effect"

const immediate = Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)))

/**
 * A clock on which a pause of less than ten seconds is over at once, and only pauses let time pass. So a test of a loop that
 * polls files neither waits nor depends on the speed of the disk. Longer pauses, such as deadlines, never end.
 */
export const quickClock = () => {
  let now = 0
  const clock: Clock.Clock = {
    currentTimeMillisUnsafe: () => now,
    currentTimeMillis: Effect.sync(() => now),
    currentTimeNanosUnsafe: () => BigInt(now) * 1_000_000n,
    currentTimeNanos: Effect.sync(() => BigInt(now) * 1_000_000n),
    monotonicTimeNanosUnsafe: () => BigInt(now) * 1_000_000n,
    monotonicTimeNanos: Effect.sync(() => BigInt(now) * 1_000_000n),
    sleep: (duration) =>
      Duration.toMillis(duration) >= 10_000
        ? Effect.never
        : Effect.andThen(
            Effect.sync(() => {
              now += Duration.toMillis(duration)
            }),
            immediate,
          ),
  }
  /** Runs an effect on this clock. */
  const on = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.provideService(effect, Clock.Clock, clock)
  /** Runs an effect on this clock until it ends, or until so many milliseconds have passed; then returns undefined. */
  const within = <A, E, R>(effect: Effect.Effect<A, E, R>, millis: number): Effect.Effect<A | undefined, E, R> => {
    const end = now + millis
    const late: Effect.Effect<undefined> = Effect.suspend(() =>
      now >= end ? Effect.succeed(undefined) : Effect.andThen(immediate, late),
    )
    return Effect.raceFirst(on(effect), late)
  }
  return { on, within }
}
