/** Remembers the weights of each run that the engine has, so that an orchestrator can wait for those of a step. */
import { Deferred, Effect } from "effect"

/**
 * Makes a register of steps without any run.
 *
 * @example
 * ```ts
 * const published = makePublished()
 * yield* Effect.forkChild(published.await(7, 2)) // run of generation 7, step 2
 * published.reach(7, 2) // the fiber goes on
 * ```
 */
export const makePublished = () => {
  const steps = new Map<number, number>()
  const waiting = new Map<number, Array<{ readonly step: number; readonly reached: Deferred.Deferred<void> }>>()
  return {
    /** Waits until the weights of a run are those of a step or a later one. */
    await: (generation: number, step: number): Effect.Effect<void> =>
      Effect.suspend(() => {
        if ((steps.get(generation) ?? -1) >= step) return Effect.void
        const reached = Deferred.makeUnsafe<void>()
        waiting.set(generation, [...(waiting.get(generation) ?? []), { step, reached }])
        return Deferred.await(reached)
      }),
    /** Says that the engine has the weights of a step. */
    reach: (generation: number, step: number): void => {
      steps.set(generation, step)
      const still = (waiting.get(generation) ?? []).filter(({ step: wanted, reached }) => {
        if (wanted > step) return true
        Deferred.doneUnsafe(reached, Effect.void)
        return false
      })
      waiting.set(generation, still)
    },
    /** Forgets a run that has ended. Nobody may wait for it any more. */
    forget: (generation: number): void => {
      steps.delete(generation)
      waiting.delete(generation)
    },
  }
}
