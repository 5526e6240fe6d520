/** Groups runs. The page groups runs itself; the static export needs all groups beforehand. */
import type { RunSummary } from "./RunSummary.ts"

/** The properties by which the page groups runs, in addition to each population variable. By default it groups runs that differ only in the seed. */
export const plainGroupings = ["config", "name", "env", "algorithm", "commit", "time"] as const

export const groupKey = (run: RunSummary, by: string): string => {
  switch (by) {
    case "config":
      return [run.name, ...Object.entries(run.population).map(([variable, value]) => `${variable}=${value}`)].join(" ")
    case "name":
    case "env":
    case "algorithm":
    case "commit":
    case "time":
      return run[by]
    default:
      return run.population[by] ?? ""
  }
}

export const variablesOf = (runs: ReadonlyArray<RunSummary>): ReadonlyArray<string> =>
  [...new Set(runs.flatMap(({ population }) => Object.keys(population)))].sort()

/** Returns every group of runs that the page can show without a filter, each once, as sorted paths. */
export const allGroups = (runs: ReadonlyArray<RunSummary>): ReadonlyArray<ReadonlyArray<string>> => {
  const found = new Map<string, ReadonlyArray<string>>()
  for (const by of [...plainGroupings, ...variablesOf(runs)]) {
    for (const members of Map.groupBy(runs, (run) => groupKey(run, by)).values()) {
      const paths = members.map(({ path }) => path).sort()
      found.set(paths.join("\n"), paths)
    }
  }
  return [...found.values()]
}
