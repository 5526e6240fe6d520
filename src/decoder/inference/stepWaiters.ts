/** Lets callers wait until a model has the weights of a training step. The engine uses it. */
import { Deferred, Effect } from "effect"

/**
 * Makes an empty list of waiting callers. `stepOf` returns the step of a model's weights; undefined for a model that is not
 * loaded.
 *
 * @example
 * ```ts
 * const steps = new Map([["run_a", 1]])
 * const waiters = makeStepWaiters((model) => steps.get(model))
 * const waiting = yield* Effect.forkChild(waiters.await("run_a", 2))
 * steps.set("run_a", 2)
 * waiters.look() // the fiber continues
 * ```
 */
export const makeStepWaiters = (stepOf: (model: string) => number | undefined) => {
  const all = new Set<{ readonly model: string; readonly step: number; readonly reached: Deferred.Deferred<void> }>()
  const has = (model: string, step: number): boolean => (stepOf(model) ?? -1) >= step
  return {
    /** Waits until a model has the weights of a step or of a later one. */
    await: (model: string, step: number): Effect.Effect<void> =>
      Effect.suspend(() => {
        if (has(model, step)) return Effect.void
        const waiter = { model, step, reached: Deferred.makeUnsafe<void>() }
        all.add(waiter)
        return Effect.ensuring(
          Deferred.await(waiter.reached),
          Effect.sync(() => all.delete(waiter)),
        )
      }),
    /** Resumes the callers whose weights are loaded. Call it after each change of the weights. */
    look: (): void => {
      for (const { model, step, reached } of all) if (has(model, step)) Deferred.doneUnsafe(reached, Effect.void)
    },
  }
}
