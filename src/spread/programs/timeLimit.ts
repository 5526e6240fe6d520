/**
 * Measures a time limit in parts. A part that takes more than twice its time and a second does not count: this process was
 * stopped meanwhile, for example by Ctrl-Z or because the computer slept, and must first read an answer that may have come in
 * the meantime.
 */
import { Clock, Effect } from "effect"

export const partsOfLimit = 10

/**
 * Tells whether this process was stopped during a part of a limit, from the part's planned and its real duration in
 * milliseconds.
 */
export const wasStopped = (part: number, lasted: number): boolean => lasted > 2 * part + 1000

/** Interrupts an effect that has not ended within a limit, and runs `late` instead. */
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
