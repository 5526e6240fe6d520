/** Reads the values of keys such as `algorithm.learning_rate` from the files of runs, for `effect runs`. */
import { Effect } from "effect"
import { isKnownKey, knownKeys, type Place, placesOf, unknownKey, valueInEntry } from "./keys.ts"
import type { RunEntry } from "./RunEntry.ts"
import type { RunReader } from "../RunReader.ts"
import { dataAt, type Value, valueOfData } from "./Value.ts"

/** Returns the value of a key that the run's path contains; undefined if a file of the run must be read. */
export const valueOfEntry = (entry: RunEntry, key: string): Value | undefined => valueInEntry(entry, placesOf(key)[0])

const readAt = (facts: RunReader, place: Place): Effect.Effect<Value | undefined> => {
  if (place.in === "config") return Effect.map(facts.configAt(place.path), valueOfData)
  if (place.in === "metrics") return Effect.map(facts.metrics, (metrics) => valueOfData(dataAt(metrics, place.path)))
  if (place.in === "population") return Effect.succeed(valueInEntry(facts.entry, place))
  switch (place.key) {
    case "state":
      return facts.state
    case "steps":
      return facts.steps
    case "validation":
      return facts.validation
    case "best_validation":
      return facts.bestValidation
    default:
      return Effect.succeed(valueInEntry(facts.entry, place))
  }
}

/** Reads the value of a key, and opens as few files as possible; undefined if the run lacks the key. */
export const valueOf = (facts: RunReader, key: string): Effect.Effect<Value | undefined> => {
  const places = placesOf(key)
  const inPath = valueInEntry(facts.entry, places[0])
  return inPath === undefined ? firstValue(facts, places) : Effect.succeed(inPath)
}

const firstValue = Effect.fnUntraced(function* (facts: RunReader, places: ReadonlyArray<Place>) {
  let value: Value | undefined
  for (const place of places) {
    const here = yield* readAt(facts, place)
    if (here !== undefined && here !== null) return here
    value = here === undefined ? value : here
  }
  return value
})

/** The number of runs whose configs are read to find a similar key to suggest. */
const enough = 100

/**
 * Returns the problem with a key that no run has; undefined if runs may lack the key, or if no config could be read.
 */
export const keyProblem = Effect.fnUntraced(function* (
  key: string,
  runs: ReadonlyArray<RunReader>,
  entries: ReadonlyArray<RunEntry>,
): Effect.fn.Return<string | undefined> {
  if (runs.length === 0 || isKnownKey(key, entries)) return undefined
  let [hasConfig, isReadable] = [false, false]
  const read = []
  for (const facts of runs.slice(0, enough)) {
    hasConfig ||= (yield* facts.configText) !== undefined
    const config = yield* facts.config
    isReadable ||= config !== undefined
    read.push({ entry: facts.entry, config, metrics: yield* facts.metrics })
  }
  if (hasConfig && !isReadable) return undefined
  return unknownKey(key, knownKeys([...read, ...runs.map(({ entry }) => ({ entry, config: null, metrics: null }))]))
})
