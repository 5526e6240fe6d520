/**
 * Keeps a fiber for each run while it is trained. The fiber is interrupted when the run leaves. If the fiber fails, the run
 * is evicted with the reason, unless the machine is at fault (a full disk, for example).
 */
import { Cause, Effect, Fiber, Scope } from "effect"
import { Runs } from "../runs/Runs.ts"
import type { RunSlot } from "../runs/RunSlot.ts"
import { errorOf, reasonOf } from "./failure.ts"

export const makeRunFibers = Effect.gen(function* () {
  const runs = yield* Runs
  const scope = yield* Scope.Scope
  return {
    /** Starts the fiber of a run. `reasonFor` turns the message of a failure into the reason of the eviction. */
    start: (
      run: RunSlot,
      work: Effect.Effect<void, { readonly message: string }>,
      reasonFor = (message: string): string => message,
    ): Effect.Effect<void> =>
      work.pipe(
        Effect.catchCause((cause) =>
          Cause.hasInterruptsOnly(cause)
            ? Effect.interrupt
            : runs.fail(run.index, errorOf(cause), reasonFor(reasonOf(cause))),
        ),
        Effect.forkIn(scope),
        Effect.map((fiber) => void (run.own.playing = fiber)),
      ),
    stop: ({ own }: RunSlot): Effect.Effect<void> =>
      Effect.suspend(() => (own.playing === undefined ? Effect.void : Fiber.interrupt(own.playing))),
  }
})
