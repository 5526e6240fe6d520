/** Remembers how far the weights of a run are made known, so that an orchestrator can wait for those of a step. */
import { Deferred, Effect } from "effect"

export interface Published {
  /** Waits until the weights are those of a step or a later one. */
  readonly await: (step: number) => Effect.Effect<void>
  /** Says that the weights of a step are known. */
  readonly reach: (step: number) => void
}

/**
 * Makes the register of a run without any step.
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
