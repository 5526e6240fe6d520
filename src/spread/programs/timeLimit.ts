/**
 * Counts a time limit in parts. A part that lasts over a second more than twice its time does not count: this process was
 * stopped in it, as by Ctrl-Z or by a computer that sleeps, and an answer that came in the meantime is read first.
 */
import { Clock, Effect } from "effect"

export const partsOfLimit = 10

/** Tells whether the process was stopped in a part of a limit, from how long both should have lasted and did, in milliseconds. */
export const wasStopped = (part: number, lasted: number): boolean => lasted > 2 * part + 1000

/** Interrupts an effect that has not ended within a limit, and continues with `late`. */
export const within = <A, E, R, E2>(
  effect: Effect.Effect<A, E, R>,
  seconds: number,
  late: Effect.Effect<never, E2>,
): Effect.Effect<A, E | E2, R> => Effect.raceFirst(effect, Effect.andThen(Effect.interruptible(passes(seconds)), late))

/** Waits until all parts of a limit have passed. */
const passes = (seconds: number): Effect.Effect<void> =>
  Effect.gen(function* () {
    const part = (seconds * 1000) / partsOfLimit
    for (let left = partsOfLimit; left > 0;) {
      const began = yield* Clock.monotonicTimeNanos
      yield* Effect.sleep(part)
      if (!wasStopped(part, Number((yield* Clock.monotonicTimeNanos) - began) / 1e6)) left--
    }
  })
