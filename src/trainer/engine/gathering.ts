/**
 * Starts the generation of several runs together, for an engine that works on another core. A step of the engine costs little
 * more for many answers than for few, so a run that generated alone would waste most of the engine's time.
 *
 * A run waits until the number of waiting runs reaches the number of runs with samples to train on. So half of the runs
 * generate while the others are trained, and both cores have work. No run waits while the trainer has nothing to do. The
 * moment at which a run generates does not change its answers.
 */
import { Deferred, Effect } from "effect"

export interface Gathering {
  /** Waits until this run may begin to generate. */
  readonly enter: Effect.Effect<void>
  /** Lets the waiting runs begin if there are enough of them. Call it after each turn. */
  readonly look: () => void
  /** Lets all waiting runs begin, because the trainer has nothing to train. */
  readonly open: () => void
  /** Sets the function that counts the runs with samples to train on. Until then, no run waits. */
  readonly follow: (ready: () => number) => void
}

/** Makes a gathering without waiting runs. */
export const makeGathering = (): Gathering => {
  const waiting = new Set<Deferred.Deferred<void>>()
  let ready = (): number => 0
  const open = (): void => {
    for (const entered of waiting) Deferred.doneUnsafe(entered, Effect.void)
    waiting.clear()
  }
  const look = (): void => {
    if (waiting.size >= ready()) open()
  }
  return {
    enter: Effect.suspend(() => {
      const entered = Deferred.makeUnsafe<void>()
      waiting.add(entered)
      look()
      return Effect.ensuring(
        Deferred.await(entered),
        Effect.sync(() => waiting.delete(entered)),
      )
    }),
    look,
    open,
    follow: (count) => {
      ready = count
    },
  }
}
