/** Describes the runs of a results folder as metrics for Prometheus, which the server of `effect ui` gives at `/metrics`. */
import { Effect } from "effect"
import type { PrometheusMetric } from "../../base/formats/prometheus.ts"
import { meanOf } from "../../base/statistics/resampling.ts"
import { utf8 } from "../../base/text/utf8.ts"
import * as Layout from "../../run/Layout.ts"
import { scoreLine } from "../../run/record/scoreLine.ts"
import type { Confined } from "../../run/read/confined-node.ts"
import { fields, finite, parsed } from "./json.ts"
import type { RunIndex } from "./runIndex.ts"
import type { RunSummary } from "./RunSummary.ts"

/** The largest number of runs with metrics of their own: those that are running come first, then the newest. */
const mostRuns = 200

/** The number of bytes that are read from the end of a log; enough for some of its last lines. */
const tailBytes = 4096

const states = ["waiting", "running", "finished", "stopped", "failed"] as const

/** The values of one run. A value that the run lacks is null, and has no sample. */
interface RunFigures {
  readonly isRunning: number
  readonly steps: number | null
  readonly totalSteps: number | null
  readonly stepsPerSecond: number | null
  readonly return: number | null
  readonly validation: number | null
  readonly bestValidation: number | null
}

const lastLines = (files: Confined, path: string): Effect.Effect<ReadonlyArray<string>> =>
  Effect.map(files.part(path, -tailBytes), (part) =>
    part === undefined
      ? []
      : utf8
          .decode(part)
          .split("\n")
          .slice(part.length < tailBytes ? 0 : 1, -1),
  )

/** Reads the speed and the last returns of a run that is running, from the ends of its logs. */
const liveFigures = Effect.fnUntraced(function* (files: Confined, run: string, places: Layout.Places) {
  const system = (yield* lastLines(files, `${run}/${Layout.system}`)).at(-1)
  const scores = yield* lastLines(files, `${run}/${Layout.locate(places, Layout.trainScores)}`)
  const returns = scores.flatMap((line) => {
    const score = scoreLine(line)
    return score === undefined || score.of === "step" || score.total === null ? [] : [score.total]
  })
  return {
    stepsPerSecond: finite(fields(parsed(system)).steps_per_second),
    return: returns.length === 0 ? null : meanOf(returns),
  }
})

const figuresOf = Effect.fnUntraced(function* (files: Confined, index: RunIndex, summary: RunSummary) {
  const isRunning = summary.state === "running"
  const run = index.read(summary.path)
  const live = isRunning ? yield* liveFigures(files, summary.path, yield* run.places) : undefined
  const metrics = fields(yield* run.metrics)
  return {
    isRunning: Number(isRunning),
    steps: summary.steps,
    totalSteps: summary.totalSteps,
    stepsPerSecond: live?.stepsPerSecond ?? summary.stepsPerSecond,
    return: live?.return ?? finite(metrics.mean_return),
    validation: (yield* run.validation) ?? null,
    bestValidation: summary.best,
  } satisfies RunFigures
})

const helps: Readonly<Record<keyof RunFigures, readonly [name: string, help: string]>> = {
  isRunning: ["effect_run_running", "Whether a run is running: 1 if it is, else 0."],
  steps: ["effect_run_steps", "Steps of a run so far."],
  totalSteps: ["effect_run_total_steps", "Steps after which a run ends."],
  stepsPerSecond: [
    "effect_run_steps_per_second",
    "Steps a second: of the last seconds while a run goes on, else of all.",
  ],
  return: ["effect_run_return", "Mean return of the last training episodes."],
  validation: ["effect_run_validation", "Mean return of the last validation."],
  bestValidation: ["effect_run_best_validation", "Mean return of the best validation."],
}

const labelsOf = ({ path, name, env, algorithm, seed }: RunSummary): Readonly<Record<string, string>> => ({
  run: path,
  name,
  environment: env,
  algorithm,
  seed: seed === null ? "" : String(seed),
})

/** Returns the metrics: the numbers of runs in each state, and the figures of at most 200 runs. */
export const runMetricsOf = Effect.fnUntraced(function* (
  files: Confined,
  index: RunIndex,
): Effect.fn.Return<ReadonlyArray<PrometheusMetric>> {
  const all = index.runs()
  const order = ({ state }: RunSummary): number => (state === "running" ? 0 : 1)
  const shown = all
    .toSorted((a, b) => order(a) - order(b) || (a.time < b.time ? 1 : a.time > b.time ? -1 : 0))
    .slice(0, mostRuns)
  const figures = yield* Effect.forEach(
    shown,
    (summary) => Effect.map(figuresOf(files, index, summary), (own) => [labelsOf(summary), own] as const),
    { concurrency: 16 },
  )
  const ofKey = (key: keyof RunFigures): PrometheusMetric => ({
    name: helps[key][0],
    type: "gauge",
    help: helps[key][1],
    samples: figures.flatMap(([labels, own]) => {
      const value = own[key]
      return value === null ? [] : [{ labels, value }]
    }),
  })
  return [
    {
      name: "effect_runs",
      type: "gauge",
      help: "Runs by state.",
      samples: states.map((state) => ({
        labels: { state },
        value: all.filter((run) => run.state === state).length,
      })),
    },
    {
      name: "effect_runs_without_metrics",
      type: "gauge",
      help: "Runs that have no metrics of their own here, because there are too many.",
      samples: [{ labels: {}, value: all.length - shown.length }],
    },
    ...(["isRunning", "steps", "totalSteps", "stepsPerSecond", "return", "validation", "bestValidation"] as const).map(
      ofKey,
    ),
  ]
})
