/** The sink (a receiver of a run's events) that passes the events to a function, such as one that updates a page. */
import { Effect } from "effect"
import type { Sink } from "./Recorder.ts"
import type { RunEvent, RunStarted } from "./RunEvent.ts"

/**
 * Makes the sink that calls `take` with each batch of events. The run waits until `take` returns; an error that it throws
 * is a bug, and ends the run.
 *
 * @example
 * ```ts
 * const returns: Array<number> = []
 * const recorder = Recorder.layer(
 *   listening((events) => {
 *     for (const event of events) if (event._tag === "EpisodeEnded") returns.push(event.return)
 *   }),
 * )
 * ```
 */
export const listening =
  (take: (events: ReadonlyArray<RunEvent>, about: RunStarted) => void): Sink =>
  (_, about) =>
    Effect.succeed({ emit: (events) => Effect.sync(() => take(events, about)), flush: Effect.void })
