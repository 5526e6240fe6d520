/**
 * Counts the failed calls of models that write feedback. The episode continues with other feedback, so without this count
 * nobody would notice the failures. A run provides its own counter, and reports it at the end.
 */
import { Context, Effect } from "effect"

interface FailureCounter {
  count: number
  /** The message of the last failure. */
  last: string
}

const FeedbackFailures = Context.Reference<FailureCounter>("effect-rl/task/FeedbackFailures", {
  defaultValue: () => ({ count: 0, last: "" }),
})

/** Counts a failure. */
export const countFailure = (message: string): Effect.Effect<void> =>
  Effect.map(FeedbackFailures, (counter) => {
    counter.count++
    counter.last = message
  })

/** Runs `body` with its own counter. If calls failed, passes a line about them to `report`. */
export const reportingFailures = <A, E, R, E2, R2>(
  body: Effect.Effect<A, E, R>,
  report: (message: string) => Effect.Effect<void, E2, R2>,
): Effect.Effect<A, E | E2, R | R2> =>
  Effect.suspend(() => {
    const counter: FailureCounter = { count: 0, last: "" }
    return Effect.tap(Effect.provideService(body, FeedbackFailures, counter), () => {
      if (counter.count === 0) return Effect.void
      const times = counter.count === 1 ? "once" : `${counter.count} times`
      return report(`the model that writes feedback failed ${times}, and the feedback did without it: ${counter.last}`)
    })
  })
