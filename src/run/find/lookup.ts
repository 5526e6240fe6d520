import { Effect } from "effect"
import { snakeCase } from "../../config/Config.ts"
import { closest } from "../../config/closest.ts"
import { RunResult, ValidationSummary } from "../RunResult.ts"
import { RuntimeResult } from "../RuntimeResult.ts"
import { leaves } from "./diff.ts"
import type { RunEntry } from "./RunEntry.ts"
import type { RunFacts } from "./RunFacts.ts"
import { dataAt, type Value, valueOfData, valueOfText } from "./Value.ts"

/**
 * What a key means, in this order: what a run is (`name`, `seed` …); a variable of its population; a key of its
 * metrics.json that this library writes; one of its config.yaml; any other one of its metrics.json. `population.KEY`,
 * `config.KEY` and `metrics.KEY` look in one place alone.
 */
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
] as const

/** The settings of validations are the config's. */
const ambiguous = new Set(["validation.episodes"])

const metricKeys = new Set(
  [
    ...Object.keys(RunResult.fields),
    ...Object.keys(RuntimeResult.fields),
    ...Object.keys(ValidationSummary.fields).map((key) => `validation.${snakeCase(key)}`),
  ]
    .map(snakeCase)
    .filter((key) => !ambiguous.has(key)),
)

const isOwn = (key: string): boolean => ownKeys.some((own) => own === key)

/** What the path alone says. */
export const valueOfEntry = (entry: RunEntry, key: string): Value | undefined => {
  switch (key) {
    case "time":
      return entry.time
    case "name":
      return entry.name
    case "commit":
      return entry.commit
    case "seed":
      return entry.seed
    case "path":
      return entry.path
  }
  if (isOwn(key)) return undefined
  const variable = key.startsWith("population.") ? key.slice("population.".length) : key
  return Object.hasOwn(entry.population, variable) ? valueOfText(entry.population[variable]) : undefined
}

/** The value of a key in a run; undefined where the run doesn't have it. */
export const valueOf = (facts: RunFacts, key: string): Effect.Effect<Value | undefined> => {
  const known = valueOfEntry(facts.entry, key)
  if (known !== undefined) return Effect.succeed(known)
  switch (key) {
    case "time":
    case "commit":
    case "path":
      return Effect.succeed(undefined)
    case "state":
      return facts.state
    case "steps":
      return facts.steps
    case "validation":
      return facts.validation
    case "best_validation":
      return facts.bestValidation
  }
  const [place, ...rest] = key.split(".").map(snakeCase)
  if (rest.length > 0 && place === "population") return Effect.succeed(undefined)
  if (rest.length > 0 && place === "config") return inConfig(facts, rest)
  if (rest.length > 0 && place === "metrics") return inMetrics(facts, rest)
  const path = [place, ...rest]
  const possible = places.get(path.join("."))
  if (possible !== undefined) {
    return firstOf(possible.map(([file, at]) => (file === "config" ? inConfig(facts, [at]) : inMetrics(facts, [at]))))
  }
  if (metricKeys.has(path.join("."))) return inMetrics(facts, path)
  return Effect.flatMap(inConfig(facts, path), (found) =>
    found === undefined ? inMetrics(facts, path) : Effect.succeed(found),
  )
}

/** Where else a key's value may be: what a runtime's files and an evaluation's call otherwise. The first that there is counts. */
const places: ReadonlyMap<string, ReadonlyArray<readonly ["config" | "metrics", string]>> = new Map([
  [
    "environment",
    [
      ["config", "environment"],
      ["config", "env"],
      ["config", "train_dataset"],
      ["config", "validation_dataset"],
      ["config", "dataset"],
    ],
  ],
  [
    "algorithm",
    [
      ["config", "algorithm"],
      ["config", "agent"],
    ],
  ],
  [
    "episodes",
    [
      ["metrics", "train_episodes"],
      ["metrics", "episodes"],
    ],
  ],
])

const firstOf = Effect.fnUntraced(function* (
  reads: ReadonlyArray<Effect.Effect<Value | undefined>>,
): Effect.fn.Return<Value | undefined> {
  for (const read of reads) {
    const found = yield* read
    if (found !== undefined && found !== null) return found
  }
  return undefined
})

const inConfig = (facts: RunFacts, path: ReadonlyArray<string>): Effect.Effect<Value | undefined> =>
  Effect.map(facts.configAt(path), valueOfData)

const inMetrics = (facts: RunFacts, path: ReadonlyArray<string>): Effect.Effect<Value | undefined> =>
  Effect.map(facts.metrics, (metrics) => valueOfData(dataAt(metrics, path)))

/** Whether a key needs no run that has it to be one: it isn't a mistake that all runs lack it. */
export const isKnownKey = (key: string, entries: ReadonlyArray<RunEntry>): boolean => {
  const plain = key.split(".").map(snakeCase).join(".")
  return isOwn(key) || metricKeys.has(plain) || entries.some(({ population }) => Object.hasOwn(population, key))
}

/** Of so many runs the configs are read whole, to find a key like the one that was asked for. */
const enough = 100

/**
 * What is wrong with a key that none of the runs has, with the one that was probably meant. Nothing, where not one of
 * their configs could be read: one of them might have had it.
 */
export const unknownKey = Effect.fnUntraced(function* (
  key: string,
  runs: ReadonlyArray<RunFacts>,
): Effect.fn.Return<string | undefined> {
  const keys = new Set<string>()
  let [written, readable] = [false, false]
  for (const run of runs.slice(0, enough)) {
    written ||= (yield* run.configText) !== undefined
    const config = yield* run.config
    readable ||= config !== undefined
    for (const tree of [config, yield* run.metrics]) for (const leaf of leaves(tree).keys()) keys.add(leaf)
  }
  if (written && !readable) return undefined
  const known = new Set([...ownKeys, ...runs.flatMap(({ entry }) => Object.keys(entry.population)), ...keys])
  const meant = closest(key, [...known])
  const hint = meant === undefined ? "" : `; did you mean ${meant}?`
  return `no run has the key ${key}${hint}`
})
