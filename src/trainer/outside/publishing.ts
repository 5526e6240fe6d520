/** Publishes the weights of each step for orchestrators in other processes. */
import { Effect, Result } from "effect"
import type { Broadcasts } from "../weights/Broadcasts.ts"
import type { Runs } from "../runs/Runs.ts"
import type { RunSlot } from "../runs/RunSlot.ts"
import { isGone } from "../TrainerError.ts"

/** The number of times that a failed broadcast is tried again. */
const retries = 3

/**
 * Publishes the weights of the runs that were updated. An orchestrator would wait for missing weights for ever, so a failed
 * broadcast is tried again. If that does not help, the run is evicted with the reason, or the trainer ends if the machine is
 * at fault.
 */
export const publishOrEvict = Effect.fnUntraced(function* (
  updated: ReadonlyArray<RunSlot>,
  { publish, pending }: Pick<Broadcasts["Service"], "publish" | "pending">,
  { fail }: Pick<Runs["Service"], "fail">,
) {
  let outcomes = yield* publish(updated)
  for (let retry = 0; retry < retries && pending().length > 0; retry++) {
    yield* Effect.sleep("1 second")
    outcomes = yield* publish([])
  }
  for (const { run, result } of outcomes)
    // A run whose folder is gone is not failed here: `Runs` notices that by itself.
    if (Result.isFailure(result) && !isGone(result.failure)) yield* fail(run.index, result.failure)
})
