/**
 * Reads how the best candidate of a run that learns prompts compares with the seed, from the run's `metrics.json`. The command
 * prints it, and the page shows it.
 */
import { Effect, Option, Schema } from "effect"
import { mostBytes, readRunText } from "../base/files/files.ts"
import { parsedJson } from "../base/text/text.ts"
import { table } from "../run/find/table.ts"
import * as Layout from "../run/Layout.ts"

const Interval = Schema.Struct({ mean: Schema.Finite, low: Schema.Finite, high: Schema.Finite })

/** The scores of the seed and of the best candidate on the same tasks. */
const Compared = Schema.Struct({
  tasks: Schema.Int,
  seed: Interval,
  best: Interval,
  difference: Schema.Struct({ difference: Schema.Finite, low: Schema.Finite, high: Schema.Finite }),
})

const decodeMetrics = Schema.decodeUnknownOption(
  Schema.Struct({ validation_scores: Compared, test_scores: Schema.NullOr(Compared) }),
)

/** Returns the comparisons in the metrics of a finished run that learns prompts; none of other runs. */
export const promptsComparisons = (metrics: unknown) => {
  const decoded = Option.getOrUndefined(decodeMetrics(metrics))
  if (decoded === undefined) return []
  const { validation_scores: validation, test_scores: test } = decoded
  return [{ set: "validation", ...validation }, ...(test === null ? [] : [{ set: "test", ...test }])].map(
    ({ set, tasks, seed, best, difference: { difference, low, high } }) => {
      return { set, tasks, seed, best, difference: { mean: difference, low, high } }
    },
  )
}

const interval = ({ mean, low, high }: typeof Interval.Type): string =>
  `${mean.toFixed(3)}  [${low.toFixed(3)}, ${high.toFixed(3)}]`

/** Returns the comparisons of the run in a folder as a table; empty if the run is not finished. */
export const comparisonTableIn = Effect.fnUntraced(function* (run: string) {
  const text = yield* Effect.option(readRunText(`${run}/${Layout.metrics}`, mostBytes.text))
  const comparisons = Option.isNone(text) ? [] : promptsComparisons(parsedJson(text.value))
  if (comparisons.length === 0) return ""
  const rows = comparisons.map(({ set, tasks, seed, best, difference }) => [
    `${tasks} ${set}`,
    interval(seed),
    interval(best),
    `${difference.mean > 0 ? "+" : ""}${interval(difference)}`,
  ])
  return table(["tasks", "seed", "best", "difference"], rows)
})
