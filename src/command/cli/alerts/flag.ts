/**
 * Defines the flag `--alert` of the commands that start runs, and makes the sink of its alerts. The code that delivers alerts is
 * loaded only if there are any.
 */
import { Effect } from "effect"
import type { Sink } from "../../../run/record/Recorder.ts"
import { texts } from "../flags.ts"

/** Makes the flag `--alert`. `what` ends, as in "when the run ends"; `more` says what else its alerts depend on. */
export const alertFlag = (what: string, more = " or passes a threshold (validation>=475)") =>
  texts(
    "alert",
    "when: target",
    `Start a command, or send JSON to a webhook (WHEN: COMMAND or WHEN: URL), when ${what} ends (ended, finished, failed, stopped)${more}, with commas between several; can be repeated`,
  )

/** Makes the sinks of the flags `--alert`: one, or none without flags. `shown` returns the address of the run's folder. */
export const alertSinks = Effect.fnUntraced(function* (
  flags: ReadonlyArray<string>,
  shown: (directory: string) => string = (directory) => directory,
) {
  if (flags.length === 0) return []
  const { alertsOf, alertSink } = yield* Effect.promise(() => import("./alerts.ts"))
  const sinks: ReadonlyArray<Sink> = [alertSink(yield* alertsOf(flags), shown)]
  return sinks
})
