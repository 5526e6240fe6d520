/** Which runs the table shows, in which order, and which of them belong together. */
import { deviation, mean, number } from "../parts/format.js"
import { columnOf } from "./columns.js"

/** As the server's own grouping for exports has it. */
export const plainGroupings = [
  ["config", "config (seeds together)"],
  ["none", "nothing"],
  ["name", "name"],
  ["env", "environment"],
  ["algorithm", "algorithm"],
  ["commit", "commit"],
  ["time", "start"],
]

const groupKey = (run, by) => {
  if (by === "config")
    return [run.name, ...Object.entries(run.population).map(([variable, value]) => `${variable}=${value}`)].join(" ")
  return ["name", "env", "algorithm", "commit", "time"].includes(by) ? run[by] : (run.population[by] ?? "")
}

export const variablesOf = (runs) => [...new Set(runs.flatMap((run) => Object.keys(run.population)))].sort()

/**
 * What tells these apart, as short as can be: of names, variables and seeds those that differ. One alone goes by its
 * name.
 */
export const shortLabels = (items) => {
  const parts = items.map(({ name, population, seed }) => {
    const seeds = seed === null || seed === undefined ? [] : [["seed", `seed ${seed}`]]
    return [
      ["name", name],
      ...Object.entries(population).map(([key, value]) => [`=${key}`, `${key}=${value}`]),
      ...seeds,
    ]
  })
  const differs = (key) => new Set(parts.map((some) => some.find(([one]) => one === key)?.[1])).size > 1
  return parts.map((some) => {
    const telling = some.filter(([key]) => differs(key))
    return (telling.length === 0 ? some.slice(0, 1) : telling).map(([, text]) => text).join(" ")
  })
}

/** The label of a band: it says so where the band is drawn from a sample of the runs. */
export const bandLabel = (label, runs, most) =>
  runs <= most ? label : `${label} (band from a sample of ${number(most)} of ${number(runs)} runs)`

const compare = (a, b) => {
  if (a === b) return 0
  // What is unknown is last in either direction.
  if (a === null || a === undefined) return Infinity
  if (b === null || b === undefined) return -Infinity
  return typeof a === "number" && typeof b === "number"
    ? a - b
    : String(a).localeCompare(String(b), "en", { numeric: true })
}

const ordered = (items, of, descending) =>
  items.toSorted((a, b) => {
    const found = compare(of(a), of(b))
    return Number.isFinite(found) ? (descending ? -found : found) : found > 0 ? 1 : -1
  })

export const sortRuns = (runs, { by, descending }) => ordered(runs, columnOf(by).of, descending)

/** Groups, each with its runs and what they have in common; the runs are sorted already. */
export const groupRuns = (runs, by, sort) => {
  const groups = [...Map.groupBy(runs, (run) => groupKey(run, by))].map(([key, members]) => {
    const scores = members.flatMap((run) => run.score ?? [])
    const known = (name) => members.flatMap((run) => run[name] ?? [])
    const common = (name) => (members.every((run) => run[name] === members[0][name]) ? members[0][name] : "")
    const most = (name) => (known(name).length === 0 ? null : known(name).reduce((a, b) => (a > b ? a : b)))
    return {
      key: `${by}:${key}`,
      label: key === "" ? `no ${by}` : key,
      runs: members,
      kind: members.every((run) => run.kind === members[0].kind) ? members[0].kind : "run",
      // Which they may in what their names don't say.
      configsDiffer: by === "config" && members.some((run) => run.configDigest !== members[0].configDigest),
      state: ["running", "failed", "stopped", "finished"].find((state) => members.some((run) => run.state === state)),
      score: scores.length === 0 ? null : mean(scores),
      scoreStd: scores.length < 2 ? null : deviation(scores),
      best: most("best"),
      steps: most("steps"),
      episodes: most("episodes"),
      seconds: most("seconds"),
      time: most("time"),
      seed: null,
      // What all of them have alike, to say what a line is.
      name: by === "config" ? members[0].name : key,
      population: by === "config" ? members[0].population : {},
      env: common("env"),
      algorithm: common("algorithm"),
      commit: common("commit"),
    }
  })
  return ordered(groups, sort.by === "name" ? ({ label }) => label : columnOf(sort.by).of, sort.descending)
}
