/** Reads the metric of a study from a finished run: its validations, its metrics.json, or its logs for TensorBoard. */
import { Effect, type FileSystem, type Path } from "effect"
import { mostBytes, readBytes } from "../../../base/files/files.ts"
import { decode } from "../../../base/formats/tfevents.ts"
import { choiceHint, closest } from "../../../base/text/closest.ts"
import { type ConfigOrigin, snakeCase, sourceOf } from "../../../base/config/Config.ts"
import { dataAt } from "../../../run/find/Value.ts"
import * as Layout from "../../../run/Layout.ts"
import { meanOf } from "../../../base/statistics/resampling.ts"
import { RunResult } from "../../../run/RunResult.ts"
import { RuntimeResult } from "../../../agents/training/RuntimeResult.ts"
import { readRunIn } from "../findRun.ts"
import { usageError } from "../output/output.ts"
import type { Finished } from "../run/finished.ts"
import { scoreOf } from "../../sweep/metrics.ts"
import { CommandError } from "../../CommandError.ts"

const others =
  "other metrics are validation, best_validation, mean_validation, and tags of TensorBoard, such as losses/entropy"

/** The names of numbers that metrics.json can have, and of metrics that are computed from validations. */
const metrics = [
  "validation",
  "best_validation",
  "mean_validation",
  ...Object.keys({ ...RunResult.fields, ...RuntimeResult.fields })
    .filter((key) => !["runDir", "digest", "validation", "usage"].includes(key))
    .map(snakeCase),
]

/**
 * Refuses, before any trial runs, a metric that no run has. Whether a tag of TensorBoard exists is known only when a run has
 * ended.
 */
export const checkMetric = (metric: string, origin: ConfigOrigin): Effect.Effect<void, CommandError> => {
  const [key] = metric.split(".")
  if (metric.includes("/") || [...metrics, "usage"].includes(key)) return Effect.void
  const near = closest(metric, metrics)
  const hint =
    near === undefined
      ? `expected one of ${metrics.join(", ")}, or a tag of TensorBoard, such as losses/entropy`
      : `did you mean "${near}"?`
  return Effect.fail(usageError(`${sourceOf(origin, "metric")}: metric: unknown metric "${metric}"; ${hint}`))
}

/** Tells whether a metric measures time, so that it differs between runs that are otherwise equal. */
export const measuresTime = (metric: string): boolean =>
  ["wall_seconds", "steps_per_second", "charts/SPS"].includes(metric) || metric.endsWith("tokens_per_second")

/** Returns the metric of a finished run; null if it has no score. Fails if the run has no such metric. */
export const valueOf = Effect.fnUntraced(function* (
  metric: string,
  { result, curve }: Finished,
  isMaximised: boolean,
): Effect.fn.Return<number | null, CommandError, FileSystem.FileSystem | Path.Path> {
  if (metric === "validation") return scoreOf(result)
  const values = curve.map(({ value }) => value)
  if (metric === "mean_validation") return values.length === 0 ? null : meanOf(values)
  if (metric === "best_validation") {
    return values.length === 0 ? null : values.reduce((a, b) => (isMaximised === a > b ? a : b))
  }
  if (metric.includes("/")) return yield* lastScalar(result.runDir, metric)
  const metrics = yield* readRunIn(result.runDir).metrics
  const value = dataAt(metrics, metric.split("."))
  if (typeof value === "number" || value === null) return value
  const known = Object.entries(metrics ?? {}).flatMap(([key, one]) => (typeof one === "number" ? [key] : []))
  const message = `metric: ${result.runDir}/${Layout.metrics} has no number ${metric}; it has ${known.join(", ")}; ${others}`
  return yield* CommandError.failed(message)
})

/** Returns the last value of a metric, such as `losses/entropy`, in a run's event file. */
const lastScalar = Effect.fnUntraced(function* (directory: string, tag: string) {
  const file = yield* readRunIn(directory).locate(Layout.tensorBoard)
  const bytes = yield* Effect.mapError(readBytes(file, mostBytes.binary), ({ message }) =>
    CommandError.failed(`metric: ${file}: ${message}`),
  )
  const known = new Set<string>()
  let value: number | undefined
  for (const { scalars } of decode(bytes).events) {
    for (const name of Object.keys(scalars)) known.add(name)
    if (Object.hasOwn(scalars, tag)) value = scalars[tag]
  }
  if (value !== undefined) return Number.isFinite(value) ? value : null
  return yield* CommandError.failed(`metric: ${file} has no ${tag}; ${choiceHint(tag, [...known].sort())}`)
})
