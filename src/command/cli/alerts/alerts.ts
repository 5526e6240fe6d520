/**
 * Watches a run, or a command with several runs, for the alerts of `--alert`. A threshold on a metric that is never recorded is a
 * warning: at once if the run's config already shows it, else at the end.
 */
import { Cause, Effect, Exit, Fiber, Semaphore } from "effect"
import { choiceHint } from "../../../base/text/closest.ts"
import { harmless, shortened } from "../../../base/text/text.ts"
import { type RunEnded, type RunEvent, validationOfTrainer } from "../../../run/record/RunEvent.ts"
import type { Sink } from "../../../run/record/Recorder.ts"
import { scalarsOf } from "../../../run/record/scalars.ts"
import { warningLabel } from "../output/colors.ts"
import { usageError, writeError } from "../output/output.ts"
import { type Alert, type Moment, most, parseAlert, type Threshold } from "./alert.ts"
import { type AlertFacts, deliver } from "./deliver.ts"
import { MetricAlerts, type MetricsOfStep } from "./MetricAlerts.ts"
import { neverRecorded } from "./neverRecorded.ts"

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

/** The state of the alerts of one run, or of a command with several runs. */
interface Watched {
  readonly alerts: ReadonlyArray<Alert>
  /** The facts of the next alert, except for its event. */
  facts: Omit<AlertFacts, "event">
  /** The thresholds that have not been passed yet. */
  readonly open: Set<Threshold>
  /** The names of the metrics that were recorded so far. */
  readonly recorded: Set<string>
}

const watch = (alerts: ReadonlyArray<Alert>, recorded: Set<string>, facts: Omit<AlertFacts, "event">): Watched => ({
  alerts,
  facts,
  open: new Set(alerts.flatMap(({ thresholds }) => thresholds)),
  recorded,
})

const scoreKey = "validation/score"

/** Takes the metrics of a step. Returns the alerts whose thresholds they pass for the first time, with their facts. */
const take = (watched: Watched, step: number, values: Readonly<Record<string, number>>) => {
  for (const name of Object.keys(values)) watched.recorded.add(name)
  const validation = values[scoreKey]
  watched.facts = { ...watched.facts, step, ...(validation === undefined ? {} : { validation }) }
  return watched.alerts.flatMap(({ thresholds, target }) =>
    thresholds.flatMap((threshold) => {
      const value = Object.hasOwn(values, threshold.key) ? values[threshold.key] : undefined
      if (value === undefined || !watched.open.has(threshold) || !threshold.isPassed(value)) return []
      watched.open.delete(threshold)
      const facts: AlertFacts = { ...watched.facts, event: "threshold", condition: threshold.text, value }
      return [{ target, facts }]
    }),
  )
}

/** Takes an event of a run, as `take` does. */
const takeEvent = (watched: Watched, event: RunEvent) => {
  const scalars = scalarsOf(event)
  if (scalars === undefined) return []
  const ofTrainer = scalars.values[validationOfTrainer]
  return take(watched, scalars.step, {
    ...(ofTrainer === undefined ? {} : { [scoreKey]: ofTrainer }),
    ...scalars.values,
  })
}

const warn = (threshold: Threshold, problem: string) =>
  writeError(`${warningLabel()} --alert ${harmless(threshold.text)}: ${harmless(problem)}\n`)

/** The largest number of characters of the hint in a warning, which may list all metrics. */
const mostOfHint = 400

/** Warns about thresholds on metrics that were never recorded: a misspelt name would go unnoticed. */
const warnOfUnrecorded = (thresholds: Iterable<Threshold>, recorded: ReadonlySet<string>) =>
  Effect.forEach(
    [...thresholds].filter(({ key }) => !recorded.has(key)),
    (threshold) => {
      const names = [...recorded].sort()
      const hint = names.length === 0 ? "no metric was recorded" : choiceHint(threshold.key, names)
      return warn(threshold, `the metric ${threshold.key} was never recorded; ${shortened(hint, mostOfHint)}`)
    },
    { discard: true },
  )

/** What all runs of a command have recorded: a multi-run trainer is a run, and has runs. */
interface AllRuns {
  /** The number of runs that have not ended. */
  running: number
  readonly recorded: Set<string>
  /** The thresholds whose metric may still be recorded. */
  readonly possible: Set<Threshold>
}

/**
 * Makes the sink (a receiver of a run's events) that delivers alerts. A threshold alerts once in each process of a run, while the
 * run goes on. Alerts of its end are delivered when its files are written. `shown` returns the address of the run's folder.
 */
export const alertSink = (alerts: ReadonlyArray<Alert>, shown: (directory: string) => string): Sink => {
  const all: AllRuns = {
    running: 0,
    recorded: new Set(),
    possible: new Set(alerts.flatMap(({ thresholds }) => thresholds)),
  }
  return ({ directory }, about) =>
    Effect.gen(function* () {
      const inTurn = (yield* Semaphore.make(concurrency)).withPermits(1)
      const watched = watch(alerts, all.recorded, {
        run: shown(directory),
        name: about.name,
        environment: about.env,
        algorithm: about.algorithm,
        seed: about.seed,
        step: about.resumedFromStep ?? 0,
        total_steps: about.totalSteps,
      })
      all.running++
      for (const threshold of all.possible) {
        const reason = neverRecorded(about.config, threshold.key)
        if (reason === undefined) continue
        all.possible.delete(threshold)
        yield* warn(threshold, reason)
      }
      let ended: RunEnded | undefined
      const delivering: Array<Fiber.Fiber<void>> = []
      yield* Effect.addFinalizer(() =>
        Effect.gen(function* () {
          yield* Fiber.joinAll(delivering)
          all.running--
          if (ended === undefined) return
          const { reason, message, step } = ended
          // A run that was cut off may still record the metric after it is resumed.
          const isOver = reason === "finished" || reason === "stopped"
          if (isOver && all.running === 0) yield* warnOfUnrecorded(all.possible, all.recorded)
          const told = message === null ? {} : { message }
          yield* atEnd(alerts, { ...watched.facts, step, event: momentOf[reason], ...told })
        }),
      )
      return {
        emit: Effect.fnUntraced(function* (events) {
          for (const event of events) {
            if (event._tag === "RunEnded") ended = event
            for (const { target, facts } of takeEvent(watched, event))
              delivering.push(yield* Effect.forkDetach(inTurn(deliver(target, facts))))
          }
        }),
        flush: Effect.void,
      }
    })
}

/** Refuses thresholds on other metrics than scores of validations, for commands that see nothing else of their runs. */
const refuseOtherMetrics = Effect.fnUntraced(function* (alerts: ReadonlyArray<Alert>, what: string) {
  const other = alerts.flatMap(({ thresholds }) => thresholds).find(({ key }) => key !== scoreKey)
  if (other === undefined) return
  return yield* usageError(
    `--alert ${other.text}: ${what} only compares the scores of validations; expected a threshold such as validation>=475`,
  )
})

/** What a command with alerts does. */
interface AlertingCommand {
  readonly flags: ReadonlyArray<string>
  readonly about: Pick<AlertFacts, "run" | "name">
  /** What the command is, for messages. */
  readonly what: string
}

/**
 * Runs a command with several runs, or with none of its own, and delivers its alerts: those of its end once, and a threshold when
 * the first of its runs passes it. `MetricAlerts` receives the metrics.
 */
export const alerting = Effect.fnUntraced(function* <A, E, R>(
  { flags, about, what }: AlertingCommand,
  body: Effect.Effect<A, E, R>,
) {
  const alerts = yield* alertsOf(flags)
  yield* refuseOtherMetrics(alerts, what)
  const watched = watch(alerts, new Set(), about)
  /** Whether a run has ended: if a resumed sweep has nothing left to do, no run can have recorded a metric. */
  let hasRun = false
  const passOn = (metrics: ReadonlyArray<MetricsOfStep>) => {
    hasRun = true
    const passed = metrics.flatMap(({ facts, step, values }) =>
      take(watched, step, values).map((alert) => ({ ...alert, facts: { ...alert.facts, ...facts } })),
    )
    return Effect.forEach(passed, ({ target, facts }) => deliver(target, facts), { concurrency, discard: true })
  }
  return yield* Effect.provideService(body, MetricAlerts, passOn).pipe(
    Effect.onExit((exit) => {
      if (Exit.isSuccess(exit))
        return Effect.andThen(
          warnOfUnrecorded(hasRun ? watched.open : [], watched.recorded),
          atEnd(alerts, { ...about, event: "finished" }),
        )
      if (Cause.hasInterruptsOnly(exit.cause)) return atEnd(alerts, { ...about, event: "stopped" })
      return atEnd(alerts, { ...about, event: "failed", message: Cause.pretty(exit.cause) })
    }),
  )
})
