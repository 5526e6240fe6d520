/**
 * Looks up the keys of a run, for `effect runs` and the page. A key is looked up in these places, in order: facts of every
 * run (`name`, `seed`, `state` …); the population in the run's path (the settings that vary between runs); keys of
 * metrics.json that this library writes; config.yaml; other keys of metrics.json. `population.KEY`, `config.KEY` and
 * `metrics.KEY` select a place.
 *
 * Like `filter.ts`, this module has only plain functions, so that the page can load it.
 */
import { closest } from "../../base/text/closest.ts"
import { snakeCase } from "../../base/config/plain.ts"
import { leaves } from "./diff.ts"
import type { RunEntry } from "./RunEntry.ts"
import { dataAt, type RunValue, valueOfData, valueOfText } from "./Value.ts"

/** The keys of the facts that every run has, whatever its kind. */
export const ownKeys = [
  "time",
  "name",
  "commit",
  "seed",
  "path",
  "state",
  "steps",
  "validation",
  "best_validation",
  "title",
  "tag",
  "archived",
] as const

/** A key that every run has, whatever its config. */
type OwnKey = (typeof ownKeys)[number]

const isOwn = (key: string): key is OwnKey => ownKeys.some((own) => own === key)

/** The keys of metrics.json that this library writes; a test compares them with the Schemas of results. */
const metricKeys = new Set([
  "run_dir",
  "steps",
  "episodes",
  "mean_score",
  "mean_return",
  "validation",
  "failed_validations",
  "diverged_episodes",
  "digest",
  "wall_seconds",
  "steps_per_second",
  "train_steps",
  "train_episodes",
  "failed_validation_episodes",
  "usage",
  // `validation.episodes` and `validation.agents` are missing here: they are also settings, and the config's value has priority.
  "validation.step",
  "validation.mean_return",
  "validation.std_return",
])

/** A place where a key can have its value: the facts of every run, the population, config.yaml or metrics.json. */
export type KeyPlace =
  | { readonly in: "facts"; readonly key: OwnKey }
  | { readonly in: "population"; readonly variable: string }
  | { readonly in: "config"; readonly path: ReadonlyArray<string> }
  | { readonly in: "metrics"; readonly path: ReadonlyArray<string> }

/** The keys that different kinds of runs store under different names, with the places of their values. */
const synonyms: Readonly<Record<string, ReadonlyArray<KeyPlace>>> = {
  environment: ["environment", "env", "train_dataset", "validation_dataset", "dataset"].map((key): KeyPlace => ({
    in: "config",
    path: [key],
  })),
  algorithm: ["algorithm", "agent"].map((key): KeyPlace => ({ in: "config", path: [key] })),
  episodes: ["train_episodes", "episodes"].map((key): KeyPlace => ({ in: "metrics", path: [key] })),
}

/** Returns the places where a key can have its value, in order; the first place with a value is used. */
export const placesOf = (key: string): ReadonlyArray<KeyPlace> => {
  if (isOwn(key)) {
    const own: KeyPlace = { in: "facts", key }
    // The path of a run in the flat layout contains neither its name nor its seed.
    return key === "name" || key === "seed" ? [own, { in: "config", path: [key] }] : [own]
  }
  const [first, ...rest] = key.split(".")
  const path = [first, ...rest].map(snakeCase)
  if (first === "population" && rest.length > 0) return [{ in: "population", variable: rest.join(".") }]
  if ((path[0] === "config" || path[0] === "metrics") && rest.length > 0) {
    return [path[0] === "config" ? { in: "config", path: path.slice(1) } : { in: "metrics", path: path.slice(1) }]
  }
  const variable: KeyPlace = { in: "population", variable: key }
  const plain = path.join(".")
  if (Object.hasOwn(synonyms, plain)) return [variable, ...synonyms[plain]]
  const inMetrics: KeyPlace = { in: "metrics", path }
  return metricKeys.has(plain) ? [variable, inMetrics] : [variable, { in: "config", path }, inMetrics]
}

/** Returns the run's value at `place` if the path of the run contains it; undefined otherwise. */
export const valueInEntry = (entry: RunEntry, place: KeyPlace): RunValue | undefined => {
  if (place.in === "population") {
    return Object.hasOwn(entry.population, place.variable) ? valueOfText(entry.population[place.variable]) : undefined
  }
  if (place.in !== "facts") return undefined
  const { key } = place
  return key === "time" || key === "name" || key === "commit" || key === "seed" || key === "path"
    ? entry[key]
    : undefined
}

/** A run whose files have been read. A fact that is missing is undefined or null. */
export interface RunValues {
  readonly entry: RunEntry
  readonly facts: Readonly<Partial<Record<OwnKey, RunValue | undefined>>>
  /** The parsed contents of config.yaml. */
  readonly config: unknown
  readonly metrics: unknown
}

/** Returns the value of a run at one place; undefined if there is none. */
const valueAt = ({ entry, facts, config, metrics }: RunValues, place: KeyPlace): RunValue | undefined => {
  if (place.in === "config") return valueOfData(dataAt(config, place.path))
  if (place.in === "metrics") return valueOfData(dataAt(metrics, place.path))
  const value = valueInEntry(entry, place)
  if (value !== undefined || place.in === "population") return value
  return facts[place.key] ?? undefined
}

/** Looks up a key in a run that has been read; undefined if the run lacks it. */
export const valueIn = (run: RunValues, key: string): RunValue | undefined => {
  let value: RunValue | undefined
  for (const place of placesOf(key)) {
    const here = valueAt(run, place)
    if (here !== undefined && here !== null) return here
    value = here === undefined ? value : here
  }
  return value
}

/** Tells whether a key is valid even if none of these runs has a value for it. */
export const isKnownKey = (key: string, entries: ReadonlyArray<RunEntry>): boolean =>
  isOwn(key) ||
  metricKeys.has(key.split(".").map(snakeCase).join(".")) ||
  entries.some(({ population }) => Object.hasOwn(population, key))

/** Returns every key by which these runs can be filtered and sorted. */
export const knownKeys = (
  runs: ReadonlyArray<Pick<RunValues, "entry" | "config" | "metrics">>,
): ReadonlyArray<string> => {
  const keys = new Set<string>([...ownKeys, ...Object.keys(synonyms)])
  for (const { entry } of runs) for (const variable of Object.keys(entry.population)) keys.add(variable)
  for (const { config, metrics } of runs) {
    for (const tree of [config, metrics]) for (const leaf of leaves(tree).keys()) keys.add(leaf)
  }
  return [...keys]
}

/** Makes the error message for a key that no run has; it suggests a similar key. */
export const unknownKey = (key: string, known: ReadonlyArray<string>): string => {
  const meant = closest(key, known)
  return `no run has the key ${key}${meant === undefined ? "" : `; did you mean ${meant}?`}`
}
