/** Reports the first retry of a run, so that a run whose model cannot be reached does not seem to stand still. */
import { Effect } from "effect"
import { RunStoreError } from "../../run/store/RunStoreError.ts"
import { type Retry, RetrySink } from "./middleware/retrying.ts"

/** Runs `body`, and passes a line about the first retry of a call in it to `report`. */
export const reportingFirstRetry = <A, E, R>(
  body: Effect.Effect<A, E, R>,
  report: (message: string) => Effect.Effect<void, RunStoreError>,
): Effect.Effect<A, E | RunStoreError, R> =>
  Effect.suspend(() => {
    let hasReported = false
    const sink = ({ error, seconds, triesLeft }: Retry): Effect.Effect<void> => {
      if (hasReported) return Effect.void
      hasReported = true
      const times = triesLeft === 1 ? "once" : `up to ${triesLeft} times`
      const when = `retrying in ${seconds.toFixed(1)} s, ${times}; later retries are not reported`
      return Effect.orDie(report(`${error.message}; ${when}`))
    }
    return Effect.provideService(body, RetrySink, sink).pipe(
      // The sink cannot fail, so it turns a failed report into a defect. Turn it back into an error.
      Effect.catchDefect((defect): Effect.Effect<never, RunStoreError> =>
        defect instanceof RunStoreError ? Effect.fail(defect) : Effect.die(defect),
      ),
    )
  })
