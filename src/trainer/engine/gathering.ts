/**
 * Lets the runs of a trainer begin to generate in groups, where the engine works on another core. A step of the engine costs
 * little more for many answers than for few, so a run that generated at once, alone, would waste most of the engine's time.
 *
 * A run waits until as many runs wait with it as have samples to train on. So half of the runs generate while the others are
 * trained, and both cores have work. Nobody waits while the trainer has nothing to do. When a run generates does not change
 * what it generates.
 *
 * @example
 * ```ts
 * const gathering = makeGathering()
 * gathering.follow(() => loader.ready())
 * yield* Effect.andThen(gathering.enter, play)
 * ```
 */
import { Deferred, Effect } from "effect"

export interface Gathering {
  /** Waits until it is this run's turn to begin. */
  readonly enter: Effect.Effect<void>
  /** Lets the runs begin that wait, if they are enough. Call it after each turn. */
  readonly look: () => void
  /** Lets all runs begin that wait, because the trainer has nothing to train. */
  readonly open: () => void
  /** Sets the function that counts the runs with samples to train on; until then, nobody waits. */
  readonly follow: (ready: () => number) => void
}

/** Makes a gathering without any run. */
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
