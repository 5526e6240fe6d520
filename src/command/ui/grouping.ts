/**
 * Groups runs by a property or by a population variable (a value such as `env=CartPole-v1` in the name of a run's folder).
 * The page groups the runs that it shows, and the static export computes the curves of all groups. These are pure functions.
 */
import type { RunSummary } from "./RunSummary.ts"

/** The properties for grouping runs, in addition to each population variable. */
const properties = ["name", "env", "algorithm", "commit", "time"] as const

/**
 * Returns the text by which a run is grouped: runs with equal texts form a group. `by` is one of `properties`, a population
 * variable, or `config`, which groups runs with equal names and variables, so that they usually differ only in their seeds.
 */
export const groupKey = (run: RunSummary, by: string): string => {
  if (by === "config") {
    return [run.name, ...Object.entries(run.population).map(([variable, value]) => `${variable}=${value}`)].join(" ")
  }
  const property = properties.find((one) => one === by)
  return property === undefined ? (run.population[by] ?? "") : run[property]
}

export const variablesOf = (runs: ReadonlyArray<RunSummary>): ReadonlyArray<string> =>
  [...new Set(runs.flatMap(({ population }) => Object.keys(population)))].sort()

/**
 * Returns the env whose charts contain the curve of a run, because returns of different envs have no common scale. It is
 * empty for the runs of a multi-run trainer, which share charts although each run has its own tasks.
 */
export const envOf = ({ env, trainer }: Pick<RunSummary, "env" | "trainer">): string => (trainer === null ? env : "")

/**
 * Returns every group that the page can show without a filter, and the part of each group that has the same env. A group is
 * the sorted paths of its runs; no group occurs twice.
 */
export const allGroups = (runs: ReadonlyArray<RunSummary>): ReadonlyArray<ReadonlyArray<string>> => {
  const groups = new Map<string, ReadonlyArray<string>>()
  for (const by of ["config", ...properties, ...variablesOf(runs)]) {
    for (const members of Map.groupBy(runs, (run) => groupKey(run, by)).values()) {
      for (const some of [members, ...Map.groupBy(members, (run) => envOf(run)).values()]) {
        const paths = some.map(({ path }) => path).sort()
        groups.set(paths.join("\n"), paths)
      }
    }
  }
  return [...groups.values()]
}

/**
 * Returns the folder of the study of `effect tune` to which a run belongs, by the run's path; undefined for other runs. The
 * folder is empty if it is the results folder itself.
 */
export const studyOf = ({ path, population }: Pick<RunSummary, "path" | "population">): string | undefined =>
  /^\d{4,}$/.test(population["trial"] ?? "") ? path.split("/").slice(0, -3).join("/") : undefined
