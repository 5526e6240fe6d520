/**
 * Treats failures of the machine (a full disk, too many open files, missing permissions), which are no fault of a run: the
 * work is tried again, and if that does not help, the trainer ends, so that it can be resumed. No run is evicted for them.
 *
 * @example
 * ```ts
 * yield* retried("run_a: its checkpoint", saveCheckpoint(folder, checkpoint))
 * ```
 */
import { Context, Effect, Schema } from "effect"
import { codeOf, isMachineFault, lostLease } from "../base/config/files.ts"

type Problem = { readonly message: string }

/** The delays in seconds before work is tried again. */
export const RetryDelays = Context.Reference<ReadonlyArray<number>>("effect-rl/multirun/RetryDelays", {
  defaultValue: () => [1, 2, 4, 8],
})

/** Tries work again that fails for the condition of the machine, and logs each failure. `what` names the work in the log. */
export const retried = Effect.fnUntraced(function* <A, E extends Problem, R>(
  what: string,
  work: Effect.Effect<A, E, R>,
): Effect.fn.Return<A, E, R> {
  const delays = yield* RetryDelays
  const attempt = (number: number): Effect.Effect<A, E, R> =>
    Effect.catchIf(
      work,
      (error) => number < delays.length && isMachineFault(error) && codeOf(error) !== lostLease,
      Effect.fnUntraced(function* ({ message }) {
        yield* Effect.logError(`${what}: ${message}; trying again in ${delays[number]} s`)
        yield* Effect.sleep(`${delays[number]} seconds`)
        return yield* attempt(number + 1)
      }),
    )
  return yield* attempt(0)
})

/** The trainer ends, because the machine keeps it from working. Nothing is lost: it goes on from the last checkpoints. */
export class MachineFault extends Schema.TaggedError<MachineFault>()("MachineFault", { message: Schema.String }) {
  static of(what: string, { message }: Problem): MachineFault {
    return new MachineFault({
      message: `${what}: ${message}; this is no fault of the run, which was not evicted: repair it and resume the trainer`,
    })
  }
}
