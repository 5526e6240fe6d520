/**
 * Reads the settings and results of all runs of a results folder, when the page first requests them. In this file, a part is
 * the value of a top-level key of config.yaml or metrics.json. Runs of one sweep share most parts, so the answer contains
 * each different part once, and for each run the indices of its parts.
 */
import { Effect } from "effect"
import { isPlain } from "../../base/config/plain.ts"
import type { RunIndex } from "./runIndex.ts"
import type { RunSummary } from "./RunSummary.ts"

type Tree = Readonly<Record<string, unknown>>

/** The contents of a run's config.yaml and metrics.json. */
interface SettingsTrees {
  readonly config: Tree
  readonly metrics: Tree
}

/** The largest number of runs whose files are open at the same time. */
const concurrency = 32

/**
 * The largest number of characters in a part's JSON. A larger part, such as the episodes of an evaluation, is not a setting
 * and is left out.
 */
const mostText = 4000

/** Makes a function that reads the settings of runs. The settings of a run are read again if the run has a new summary. */
export const makeSettings = ({ read }: Pick<RunIndex, "read">) => {
  const kept = new WeakMap<RunSummary, SettingsTrees>()

  const treesOf = Effect.fnUntraced(function* (summary: RunSummary): Effect.fn.Return<SettingsTrees> {
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

/** Returns the different values of all top-level keys (`parts`), and for each run and key the index of its value. */
const settingsTable = (runs: ReadonlyArray<readonly [path: string, trees: SettingsTrees]>) => {
  const parts = new Map<string, { readonly index: number; readonly value: unknown }>()
  const numbered = (tree: Tree): Record<string, number> =>
    Object.fromEntries(
      Object.entries(tree).flatMap(([key, value]) => {
        const text = JSON.stringify(value)
        if (text === undefined || text.length > mostText) return []
        const part = parts.get(text) ?? { index: parts.size, value }
        parts.set(text, part)
        return [[key, part.index]]
      }),
    )
  const rows = runs.map(([path, { config, metrics }]) => [
    path,
    { config: numbered(config), metrics: numbered(metrics) },
  ])
  return { parts: Array.from(parts.values(), ({ value }) => value), runs: Object.fromEntries(rows) }
}
