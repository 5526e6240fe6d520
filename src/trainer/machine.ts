/**
 * Handles failures of the machine, such as a full disk, too many open files or missing permissions. The work is tried again;
 * if that does not help, the trainer ends and can be resumed later. No run is evicted, because the failure is not its fault.
 */
import { Context, Effect } from "effect"
import { codeOf, isMachineFault, lostLease } from "../base/files/files.ts"
import { TrainerError } from "./TrainerError.ts"

type Problem = { readonly message: string }

/** The delays in seconds between the attempts. */
export const RetryDelays = Context.Reference<ReadonlyArray<number>>("effect-rl/multirun/RetryDelays", {
  defaultValue: () => [1, 2, 4, 8],
})

/**
 * Runs work, and tries it again while it fails because of the machine. Logs each failure; `what` names the work in the log.
 */
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

/** Makes the error that ends the trainer, because the machine keeps it from working: resumed, it begins at its last checkpoints. */
export const machineFault = (what: string, { message }: Problem): TrainerError =>
  new TrainerError({
    reason: "stopped",
    message: `${what}: ${message}; this is no fault of the run, which was not evicted: repair it and resume the trainer`,
  })
