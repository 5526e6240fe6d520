/** The sink (a receiver of a run's events) that shows the progress on the terminal. `Node.recorder` adds it. */
import { Clock, Effect } from "effect"
import { harmless, roundedSpeed, shownScore } from "../../base/config/text.ts"
import { includes } from "./logLevel.ts"
import { silent, type Sink } from "./Recorder.ts"
import { levelOf, lineOfWarning } from "./runLog.ts"
import { type RunEnded, type RunEvent, type RunStarted, validationOfTrainer } from "./RunEvent.ts"
import { meanOf } from "../../base/statistics/resampling.ts"

interface ProgressOptions {
  readonly write: (text: string) => Effect.Effect<void>
  /** Whether the output is a terminal, where one line is redrawn. Other outputs get only warnings and the last line. */
  readonly isTerminal: boolean
  readonly columns: number
}

/** The shortest time between two redraws: at most ten per second. */
const redrawMillis = 100
/** The least time over which the speed is measured, so that it does not jump. */
const speedMillis = 3000
const recentEpisodes = 100

const clearLine = "\r\u001b[2K"

/** The fields in the order in which they are dropped on a narrow terminal. */
const leastFirst = ["left", "speed", "return", "validation", "name"] as const
type Field = (typeof leastFirst)[number] | "steps"

/** Joins as many whole fields as fit into `room` characters. The field `steps` is never dropped. */
const fitting = (fields: ReadonlyArray<readonly [Field, string | undefined]>, room: number): string => {
  const joined = (some: typeof fields): string => some.map(([, text]) => text).join("  ")
  let shown = fields.filter(([, text]) => text !== undefined)
  for (const least of leastFirst) if (joined(shown).length > room) shown = shown.filter(([field]) => field !== least)
  return joined(shown).slice(0, Math.max(0, room))
}

/** Makes the sink for the terminal. It shows a line with steps, speed, returns and time left, and warnings above it. */
export const progress =
  ({ write, isTerminal, columns }: ProgressOptions): Sink =>
  (_, about) => {
    if (about.quiet === true) return Effect.succeed(silent)
    return Effect.gen(function* () {
      const firstStep = about.resumedFromStep ?? 0
      const { logLevel = "INFO" } = about
      const startedAt = yield* Clock.currentTimeMillis
      const returns = new Float64Array(recentEpisodes)
      let episodes = 0
      let step = firstStep
      let validation: number | undefined
      let ended: RunEnded["reason"] | undefined
      let earlyEnd = ""
      let drawnAt = -Infinity
      let isDrawn = false
      // The last two measurements of time and step; the speed is measured from the older one.
      let older = { at: startedAt, step: firstStep }
      let newer = older

      const update = (event: RunEvent): void => {
        switch (event._tag) {
          case "EpisodeEnded":
            returns[episodes++ % recentEpisodes] = event.return
            if (about.unit === "episodes") step = event.step
            break
          case "UpdateApplied":
            step = event.step
            validation = event.metrics[validationOfTrainer] ?? validation
            break
          case "ValidationEnded":
            validation = event.meanReturn
            break
          case "RunEnded":
            step = event.step
            ended = event.reason
            // The command reports the error of a failed run itself.
            if (ended === "finished" && event.message !== null) earlyEnd = `: ${event.message}`
        }
      }

      const speedAt = (now: number): number => {
        if (now - newer.at >= speedMillis) {
          older = newer
          newer = { at: now, step }
        }
        const since = ended === undefined ? older : { at: startedAt, step: firstStep }
        return ((step - since.step) * 1000) / Math.max(1, now - since.at)
      }

      const line = (now: number, room: number): string => {
        const speed = speedAt(now)
        const recent = returns.subarray(0, Math.min(episodes, recentEpisodes))
        const end =
          ended !== undefined
            ? `${ended} after ${duration((now - startedAt) / 1000)}${earlyEnd}`
            : speed > 0 && step < about.totalSteps
              ? `${duration((about.totalSteps - step) / speed)} left`
              : undefined
        const fields: ReadonlyArray<readonly [Field, string | undefined]> = [
          ["name", `${about.algorithm} on ${about.env}`],
          ["steps", stepsText(step, about)],
          ["speed", `${thousands(roundedSpeed(speed))}/s`],
          ["return", recent.length > 0 ? `return ${shownScore(meanOf(recent))}` : undefined],
          ["validation", validation === undefined ? undefined : `validation ${shownScore(validation)}`],
          ["left", end],
        ]
        return harmless(fitting(fields, room))
      }

      const clear = Effect.suspend(() => {
        if (!isDrawn) return Effect.void
        isDrawn = false
        return write(clearLine)
      })
      // Clear the line even if the run fails, so that the next output starts on an empty line.
      yield* Effect.addFinalizer(() => clear)

      return {
        emit: (events) => {
          for (const event of events) update(event)
          const warnings = events.flatMap((event) =>
            event._tag === "Warning" && includes(logLevel, levelOf(event)) ? [`${lineOfWarning(event)}\n`] : [],
          )
          const warn = warnings.length === 0 ? Effect.void : Effect.andThen(clear, write(harmless(warnings.join(""))))
          const draw = Effect.flatMap(Clock.currentTimeMillis, (now) => {
            if (ended !== undefined) {
              const last = line(now, Infinity)
              ended = undefined
              return Effect.andThen(clear, write(`${last}\n`))
            }
            if (!isTerminal || now - drawnAt < redrawMillis) return Effect.void
            drawnAt = now
            isDrawn = true
            return write(`${clearLine}${line(now, columns - 1)}`)
          })
          return Effect.andThen(warn, draw)
        },
        flush: Effect.void,
      }
    })
  }

/** Formats the steps. A trainer to which runs are added can have more than it began with. */
const stepsText = (step: number, { totalSteps, unit = "steps" }: RunStarted): string =>
  step > totalSteps
    ? `${thousands(step)} ${unit}`
    : `${thousands(step)} of ${thousands(totalSteps)} ${unit} (${percent(step, totalSteps)} %)`

const percent = (part: number, whole: number): number =>
  whole > 0 ? Math.min(100, Math.floor((100 * part) / whole)) : 100

const thousands = (value: number): string => String(value).replace(/\B(?=(\d{3})+(?!\d))/g, ",")

const duration = (seconds: number): string => {
  const whole = Math.ceil(seconds)
  if (whole < 60) return `${whole} s`
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`
}
