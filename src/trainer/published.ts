/** Remembers the newest step of a run's published weights, so that an orchestrator can wait for a step. */
import { Deferred, Effect } from "effect"

export interface Published {
  /** Waits until the weights of this step, or of a later one, are published. */
  readonly await: (step: number) => Effect.Effect<void>
  /** Reports that the weights of a step are published. */
  readonly reach: (step: number) => void
}

/**
 * Makes the register of a run that has published nothing yet.
 *
 * @example
 * ```ts
 * const published = makePublished()
 * yield* Effect.forkChild(published.await(2))
 * published.reach(2) // the fiber goes on
 * ```
 */
export const makePublished = (): Published => {
  let reachedStep = -1
  let waiting: ReadonlyArray<{ readonly step: number; readonly reached: Deferred.Deferred<void> }> = []
  return {
    await: (step) =>
      Effect.suspend(() => {
        if (reachedStep >= step) return Effect.void
        const reached = Deferred.makeUnsafe<void>()
        waiting = [...waiting, { step, reached }]
        return Deferred.await(reached)
      }),
    reach: (step) => {
      reachedStep = step
      for (const one of waiting) if (one.step <= step) Deferred.doneUnsafe(one.reached, Effect.void)
      waiting = waiting.filter((one) => one.step > step)
    },
  }
}
