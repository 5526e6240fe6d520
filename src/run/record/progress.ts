/** The sink (a receiver of a run's events) that shows the progress on the terminal. `Node.recorder` adds it. */
import { Clock, Effect } from "effect"
import { harmless, roundedSpeed, shownScore } from "../../base/text/text.ts"
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
/** The shortest time over which the speed is measured, because shorter ones fluctuate. */
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

/** A moment at which the speed is measured. */
interface Measured {
  readonly at: number
  readonly step: number
}

/** The state of the line on the terminal, from the events so far. */
interface Shown {
  readonly about: RunStarted
  readonly startedAt: number
  readonly firstStep: number
  /** The returns of the last episodes, in a ring: each is at the number of its episode modulo the length. */
  readonly returns: Float64Array
  episodes: number
  step: number
  validation: number | undefined
  ended: RunEnded["reason"] | undefined
  earlyEnd: string
  /** The last two measurements; the speed is measured from the older one. */
  older: Measured
  newer: Measured
}

const shownAt = (about: RunStarted, startedAt: number): Shown => {
  const firstStep = about.resumedFromStep ?? 0
  const first = { at: startedAt, step: firstStep }
  return {
    about,
    startedAt,
    firstStep,
    returns: new Float64Array(recentEpisodes),
    episodes: 0,
    step: firstStep,
    validation: undefined,
    ended: undefined,
    earlyEnd: "",
    older: first,
    newer: first,
  }
}

const update = (shown: Shown, event: RunEvent): void => {
  switch (event._tag) {
    case "EpisodeEnded":
      shown.returns[shown.episodes++ % recentEpisodes] = event.return
      if (shown.about.unit === "episodes") shown.step = event.step
      break
    case "UpdateApplied":
      shown.step = event.step
      shown.validation = event.metrics[validationOfTrainer] ?? shown.validation
      break
    case "ValidationEnded":
      shown.validation = event.meanReturn
      break
    case "RunEnded":
      shown.step = event.step
      shown.ended = event.reason
      // The command reports the error of a failed run itself.
      if (event.reason === "finished" && event.message !== null) shown.earlyEnd = `: ${event.message}`
  }
}

/** Returns the recent speed or, once the run has ended, the speed of the whole run. */
const speedAt = (shown: Shown, now: number): number => {
  const { step, startedAt, firstStep } = shown
  if (now - shown.newer.at >= speedMillis) {
    shown.older = shown.newer
    shown.newer = { at: now, step }
  }
  const since = shown.ended === undefined ? shown.older : { at: startedAt, step: firstStep }
  return ((step - since.step) * 1000) / Math.max(1, now - since.at)
}

/** Describes how the run has ended, or when it will end; undefined if that cannot be estimated. */
const endText = ({ about, step, startedAt, ended, earlyEnd }: Shown, speed: number, now: number) => {
  if (ended !== undefined) return `${ended} after ${duration((now - startedAt) / 1000)}${earlyEnd}`
  return speed > 0 && step < about.totalSteps ? `${duration((about.totalSteps - step) / speed)} left` : undefined
}

const lineAt = (shown: Shown, now: number, room: number): string => {
  const { about, step, validation } = shown
  const speed = speedAt(shown, now)
  const recent = shown.returns.subarray(0, Math.min(shown.episodes, recentEpisodes))
  const fields: ReadonlyArray<readonly [Field, string | undefined]> = [
    ["name", `${about.algorithm} on ${about.env}`],
    ["steps", stepsText(step, about)],
    ["speed", `${thousands(roundedSpeed(speed))}/s`],
    ["return", recent.length > 0 ? `return ${shownScore(meanOf(recent))}` : undefined],
    ["validation", validation === undefined ? undefined : `validation ${shownScore(validation)}`],
    ["left", endText(shown, speed, now)],
  ]
  return harmless(fitting(fields, room))
}

/** Returns the warnings among some events as lines, if the run's log level includes warnings. */
const warningsIn = (events: ReadonlyArray<RunEvent>, { logLevel = "INFO" }: RunStarted): string =>
  events
    .flatMap((event) =>
      event._tag === "Warning" && includes(logLevel, levelOf(event)) ? [`${lineOfWarning(event)}\n`] : [],
    )
    .join("")

/** Makes the sink for the terminal. It shows a line with steps, speed, returns and time left, and warnings above it. */
export const progress =
  ({ write, isTerminal, columns }: ProgressOptions): Sink =>
  (_, about) => {
    if (about.quiet === true) return Effect.succeed(silent)
    return Effect.gen(function* () {
      const shown = shownAt(about, yield* Clock.currentTimeMillis)
      let drawnAt = -Infinity
      let isDrawn = false
      const clear = Effect.suspend(() => {
        if (!isDrawn) return Effect.void
        isDrawn = false
        return write(clearLine)
      })
      // Clear the line even if the run fails, so that the next output starts on an empty line.
      yield* Effect.addFinalizer(() => clear)

      const draw = Effect.flatMap(Clock.currentTimeMillis, (now) => {
        if (shown.ended !== undefined) {
          const last = lineAt(shown, now, Infinity)
          shown.ended = undefined
          return Effect.andThen(clear, write(`${last}\n`))
        }
        if (!isTerminal || now - drawnAt < redrawMillis) return Effect.void
        drawnAt = now
        isDrawn = true
        return write(`${clearLine}${lineAt(shown, now, columns - 1)}`)
      })

      return {
        emit: (events) => {
          for (const event of events) update(shown, event)
          const warnings = warningsIn(events, about)
          const warn = warnings === "" ? Effect.void : Effect.andThen(clear, write(harmless(warnings)))
          return Effect.andThen(warn, draw)
        },
        flush: Effect.void,
      }
    })
  }

/** Formats the number of steps. The total is left out if it is exceeded, which happens when runs are added to a trainer. */
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
