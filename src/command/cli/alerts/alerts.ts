/** Watches a run or a sweep for the alerts of `--alert`. */
import { Cause, Effect, Exit, Fiber, Semaphore } from "effect"
import { type RunEnded, type RunEvent, type RunStarted, validationOfTrainer } from "../../../run/record/RunEvent.ts"
import type { Sink } from "../../../run/record/Recorder.ts"
import { scalarsOf } from "../../../run/record/scalars.ts"
import { usageError } from "../output/output.ts"
import { type Alert, type Moment, most, parseAlert, type Threshold } from "./alert.ts"
import { type AlertFacts, deliver } from "./deliver.ts"

/** The number of alerts of one run that are delivered at the same time. */
const concurrency = 4

/** Parses the flags `--alert`. */
export const alertsOf = Effect.fnUntraced(function* (flags: ReadonlyArray<string>) {
  if (flags.length > most.alerts)
    return yield* usageError(`--alert: expected at most ${most.alerts} of them, found ${flags.length}`)
  const alerts: Array<Alert> = []
  for (const flag of flags) {
    const parsed = parseAlert(flag)
    if ("problem" in parsed) return yield* usageError(`--alert: ${parsed.problem}`)
    alerts.push(parsed.alert)
  }
  return alerts
})

const momentOf: Readonly<Record<RunEnded["reason"], Moment>> = {
  finished: "finished",
  failed: "failed",
  interrupted: "stopped",
  stopped: "stopped",
}

const atEnd = (alerts: ReadonlyArray<Alert>, facts: AlertFacts): Effect.Effect<void> =>
  Effect.forEach(
    alerts.filter(({ moments }) => moments.some((moment) => moment === facts.event)),
    ({ target }) => deliver(target, facts),
    { concurrency, discard: true },
  )

/** The state of the alerts of one run. */
interface Watched {
  readonly alerts: ReadonlyArray<Alert>
  readonly about: RunStarted
  readonly run: string
  /** The thresholds that have not been passed yet. */
  readonly open: Set<Threshold>
  step: number
  validation: number | undefined
  ended: RunEnded | undefined
}

const factsOf = ({ about, run, step, validation }: Watched): Omit<AlertFacts, "event"> => ({
  run,
  name: about.name,
  environment: about.env,
  algorithm: about.algorithm,
  seed: about.seed,
  step,
  total_steps: about.totalSteps,
  ...(validation === undefined ? {} : { validation }),
})

/** Takes an event into the state. Returns the alerts whose thresholds it passes for the first time, with their facts. */
const take = (watched: Watched, event: RunEvent) => {
  if (event._tag === "RunEnded") {
    watched.ended = event
    watched.step = event.step
    return []
  }
  const scalars = scalarsOf(event)
  if (scalars === undefined) return []
  watched.step = scalars.step
  const ofTrainer = scalars.values[validationOfTrainer]
  const values: Readonly<Record<string, number>> = {
    ...(ofTrainer === undefined ? {} : { "validation/score": ofTrainer }),
    ...scalars.values,
  }
  watched.validation = values["validation/score"] ?? watched.validation
  return watched.alerts.flatMap(({ thresholds, target }) =>
    thresholds.flatMap((threshold) => {
      const value = Object.hasOwn(values, threshold.key) ? values[threshold.key] : undefined
      if (value === undefined || !watched.open.has(threshold) || !threshold.isPassed(value)) return []
      watched.open.delete(threshold)
      const facts: AlertFacts = { ...factsOf(watched), event: "threshold", condition: threshold.text, value }
      return [{ target, facts }]
    }),
  )
}

/**
 * Makes the sink (a receiver of a run's events) that delivers alerts. A threshold alerts once in each process of a run, while the
 * run goes on. Alerts of its end are delivered when its files are written. `shown` returns the address of the run's folder.
 */
export const alertSink =
  (alerts: ReadonlyArray<Alert>, shown: (directory: string) => string): Sink =>
  ({ directory }, about) =>
    Effect.gen(function* () {
      const inTurn = (yield* Semaphore.make(concurrency)).withPermits(1)
      const watched: Watched = {
        alerts,
        about,
        run: shown(directory),
        open: new Set(alerts.flatMap(({ thresholds }) => thresholds)),
        step: about.resumedFromStep ?? 0,
        validation: undefined,
        ended: undefined,
      }
      const delivering: Array<Fiber.Fiber<void>> = []
      yield* Effect.addFinalizer(() =>
        Effect.gen(function* () {
          yield* Fiber.joinAll(delivering)
          if (watched.ended === undefined) return
          const { reason, message } = watched.ended
          const told = message === null ? {} : { message }
          yield* atEnd(alerts, { ...factsOf(watched), event: momentOf[reason], ...told })
        }),
      )
      return {
        emit: Effect.fnUntraced(function* (events) {
          for (const event of events)
            for (const { target, facts } of take(watched, event))
              delivering.push(yield* Effect.forkDetach(inTurn(deliver(target, facts))))
        }),
        flush: Effect.void,
      }
    })

/** Runs a sweep, and delivers the alerts of its end, once for all of its runs. */
export const alertingAtEnd = <A, E extends { readonly message: string }, R>(
  alerts: ReadonlyArray<Alert>,
  about: Pick<AlertFacts, "run" | "name">,
  sweep: Effect.Effect<A, E, R>,
): Effect.Effect<A, E, R> =>
  Effect.onExit(sweep, (exit) => {
    if (Exit.isSuccess(exit)) return atEnd(alerts, { ...about, event: "finished" })
    if (Cause.hasInterruptsOnly(exit.cause)) return atEnd(alerts, { ...about, event: "stopped" })
    return atEnd(alerts, { ...about, event: "failed", message: Cause.pretty(exit.cause) })
  })
