/** Reads the settings of all runs of a results folder. The page asks for them when it first needs one. */
import { Effect } from "effect"
import { isPlain } from "../config/plain.ts"
import { attempt } from "../run/read/attempt.ts"
import { configReader } from "../run/read/configText.ts"
import * as Layout from "../run/Layout.ts"
import type { Confined } from "./confined-node.ts"
import { parsed, type RunSummary } from "./RunSummary.ts"
import { type RunTrees, type SettingsTable, settingsTable } from "./settings.ts"

export type SettingsReader = (runs: ReadonlyArray<RunSummary>) => Effect.Effect<SettingsTable>

/** Files of this many runs are open at once. */
const concurrency = 32

/** Makes a reader that keeps what it has read of a run for as long as the run's summary is the same object. */
export const makeSettings = (files: Pick<Confined, "text">): SettingsReader => {
  const configs = configReader()
  const kept = new WeakMap<RunSummary, RunTrees>()

  const treesOf = Effect.fnUntraced(function* (run: RunSummary) {
    const before = kept.get(run)
    if (before !== undefined) return before
    const [config, metrics] = yield* Effect.forEach([Layout.config, Layout.metrics], (file) =>
      Effect.promise(() => files.text(`${run.path}/${file}`)),
    )
    const settings = attempt(() => configs.tree(config ?? ""))
    const results = parsed(metrics)
    const trees = {
      config: "value" in settings && isPlain(settings.value) ? settings.value : {},
      metrics: isPlain(results) ? results : {},
    }
    kept.set(run, trees)
    return trees
  })

  return (runs) =>
    Effect.map(
      Effect.forEach(runs, (run) => Effect.map(treesOf(run), (trees) => [run.path, trees] as const), { concurrency }),
      settingsTable,
    )
}
