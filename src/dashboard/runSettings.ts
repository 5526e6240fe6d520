/** Reads the settings of all runs of a results folder, when the page first requests them. */
import { Effect } from "effect"
import { isPlain } from "../config/plain.ts"
import type { RunIndex } from "./runIndex.ts"
import type { RunSummary } from "./RunSummary.ts"
import { type RunTrees, settingsTable } from "./settings.ts"

/** The files of at most this many runs are open at once. */
const concurrency = 32

/** Makes a reader that keeps the settings of a run in memory while the run's summary is the same object. */
export const makeSettings = ({ read }: Pick<RunIndex, "read">) => {
  const kept = new WeakMap<RunSummary, RunTrees>()

  const treesOf = Effect.fnUntraced(function* (summary: RunSummary): Effect.fn.Return<RunTrees> {
    const before = kept.get(summary)
    if (before !== undefined) return before
    const run = read(summary.path)
    const config = yield* run.config
    const trees = { config: isPlain(config) ? config : {}, metrics: (yield* run.metrics) ?? {} }
    kept.set(summary, trees)
    return trees
  })

  return (runs: ReadonlyArray<RunSummary>) =>
    Effect.map(
      Effect.forEach(runs, (run) => Effect.map(treesOf(run), (trees) => [run.path, trees] as const), { concurrency }),
      settingsTable,
    )
}
