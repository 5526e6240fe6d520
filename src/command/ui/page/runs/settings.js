/**
 * Holds the settings and results of runs, under the keys of `effect runs --where`, such as `algorithm.learning_rate` or
 * `validation`. They are read when a filter, a column or a comparison first needs them.
 */
import { knownKeys, ownKeys, valueIn } from "../../../../run/find/keys.ts"
import { fetchSettings } from "../data.js"

/** The server's answer (see `src/command/ui/settings.ts`); `rows` caches the results of `valuesOf`. */
let table
let rows = new WeakMap()
let reading
let isStale = false

/** Reads the settings of all runs, unless they are already read and up to date. */
export const readSettings = () => {
  if (table !== undefined && !isStale) return Promise.resolve()
  reading ??= fetchSettings()
    .then((fetched) => {
      table = fetched
      rows = new WeakMap()
      isStale = false
    })
    .finally(() => (reading = undefined))
  return reading
}

export const hasSettings = () => table !== undefined

/**
 * Records that runs have changed. The settings must be read again if a run is new or has ended, because it then has new
 * results.
 */
export const changeSettings = (runs) => {
  if (table === undefined) return
  isStale ||= runs.some(({ path, state }) => table.runs[path] === undefined || state !== "running")
}

export const settingsAreStale = () => isStale

const treeOf = (parts) =>
  Object.fromEntries(Object.entries(parts ?? {}).map(([key, index]) => [key, table.parts[index]]))

/**
 * Returns a run in the form in which `run/find/keys.ts` looks up keys. While settings have not been read, it contains only
 * the summary.
 */
export const valuesOf = (run) => {
  const before = rows.get(run)
  if (before !== undefined) return before
  const { path, time, commit, name, seed, population, state, steps, score, best } = run
  const { title, tags = [], archived = false } = run
  const parts = table?.runs[path]
  const values = {
    entry: { path, time: time || undefined, commit: commit || undefined, name, seed: seed ?? undefined, population },
    facts: {
      state,
      steps,
      validation: score,
      best_validation: best,
      title: title ?? undefined,
      tag: tags.length === 0 ? undefined : tags.join(" "),
      archived,
    },
    config: treeOf(parts?.config),
    metrics: treeOf(parts?.metrics),
  }
  rows.set(run, values)
  return values
}

/** Returns the value of a setting in a run; undefined if the run doesn't have it, or if it has not been read. */
export const settingOf = (run, key) => valueIn(valuesOf(run), key)

/** Returns all keys of these runs: first the keys whose values differ, then the others. */
export const settingKeys = (runs) => {
  if (table === undefined) return []
  const all = knownKeys(runs.map(valuesOf)).filter((key) => !ownKeys.some((own) => own === key))
  const differs = (key) => new Set(runs.map((run) => JSON.stringify(settingOf(run, key)))).size > 1
  const [some, others] = [[], []]
  for (const key of all) (differs(key) ? some : others).push(key)
  return [...some.sort(), ...others.sort()]
}
