/** Groups, sorts and labels runs for the table and the charts. These are pure functions. */
import { deviationOf, meanOf } from "../../../../base/statistics/resampling.ts"
import { mostRunsInABand } from "../../curves/bands.ts"
import { groupKey } from "../../grouping.ts"
import { number } from "../parts/format.js"
import { columnOf } from "./columns.js"

/** The groupings that are possible in every results folder, with their keys in `grouping.ts`. The first is the default. */
export const plainGroupings = [
  ["config", "config (seeds together)"],
  ["none", "nothing"],
  ["name", "name"],
  ["env", "environment"],
  ["algorithm", "algorithm"],
  ["commit", "commit"],
  ["time", "start"],
]

/** Returns the label of a band, with a note if the band is computed from a sample of the runs. */
export const bandLabel = (label, runs) =>
  runs <= mostRunsInABand
    ? label
    : `${label} (band from a sample of ${number(mostRunsInABand)} of ${number(runs)} runs)`

const compare = (a, b) => {
  if (a === b) return 0
  // Infinity marks a missing value, which `ordered` puts last in either direction.
  if (a === null || a === undefined) return Infinity
  if (b === null || b === undefined) return -Infinity
  return typeof a === "number" && typeof b === "number"
    ? a - b
    : String(a).localeCompare(String(b), "en", { numeric: true })
}

const ordered = (items, of, descending) =>
  items.toSorted((a, b) => {
    const order = compare(of(a), of(b))
    // Items without a value come last in both directions.
    if (!Number.isFinite(order)) return order > 0 ? 1 : -1
    return descending ? -order : order
  })

export const sortRuns = (runs, { by, descending }) => ordered(runs, columnOf(by).of, descending)

/**
 * Groups sorted runs. A group has the mean score of its runs, their largest steps and times, and the texts that they share.
 */
export const groupRuns = (runs, by, sort) => {
  const groups = [...Map.groupBy(runs, (run) => groupKey(run, by))].map(([key, members]) => {
    const scores = members.flatMap((run) => run.score ?? [])
    const valuesOf = (name) => members.flatMap((run) => run[name] ?? [])
    const common = (name) => (members.every((run) => run[name] === members[0][name]) ? members[0][name] : "")
    const most = (name) => (valuesOf(name).length === 0 ? null : valuesOf(name).reduce((a, b) => (a > b ? a : b)))
    return {
      key: `${by}:${key}`,
      label: key === "" ? `no ${by}` : key,
      runs: members,
      kind: members.every((run) => run.kind === members[0].kind) ? members[0].kind : "run",
      // Runs with equal names and variables can still have different configs.
      configsDiffer: by === "config" && members.some((run) => run.configDigest !== members[0].configDigest),
      state: ["running", "failed", "stopped", "finished"].find((state) => members.some((run) => run.state === state)),
      score: scores.length === 0 ? null : meanOf(scores),
      scoreStd: scores.length < 2 ? null : deviationOf(scores),
      ...Object.fromEntries(["best", "steps", "episodes", "seconds", "time"].map((name) => [name, most(name)])),
      seed: null,
      // The name and variables that all runs of the group have in common, which are the label of its line.
      name: by === "config" ? members[0].name : key,
      population: by === "config" ? members[0].population : {},
      ...Object.fromEntries(["env", "algorithm", "commit"].map((name) => [name, common(name)])),
    }
  })
  return ordered(groups, sort.by === "name" ? ({ label }) => label : columnOf(sort.by).of, sort.descending)
}
