/** Reads the values of keys such as `algorithm.learning_rate` from the files of runs, for `effect runs`. */
import { Effect } from "effect"
import { isKnownKey, knownKeys, type Place, placesOf, unknownKey, valueInEntry } from "./keys.ts"
import type { RunEntry } from "./RunEntry.ts"
import type { RunReader } from "../RunReader.ts"
import { dataAt, type Value, valueOfData } from "./Value.ts"

/** Returns the value of a key that the run's path contains; undefined if a file of the run must be read. */
export const valueOfEntry = (entry: RunEntry, key: string): Value | undefined => valueInEntry(entry, placesOf(key)[0])

const readAt = (run: RunReader, place: Place): Effect.Effect<Value | undefined> => {
  if (place.in === "config") return Effect.map(run.configAt(place.path), valueOfData)
  if (place.in === "metrics") return Effect.map(run.metrics, (metrics) => valueOfData(dataAt(metrics, place.path)))
  if (place.in === "facts" && place.key === "best_validation") return run.bestValidation
  if (place.in === "facts" && (place.key === "state" || place.key === "steps" || place.key === "validation")) {
    return run[place.key]
  }
  return Effect.succeed(valueInEntry(run.entry, place))
}

/** Reads the value of a key, and opens as few files as possible; undefined if the run lacks the key. */
export const valueOf = Effect.fnUntraced(function* (run: RunReader, key: string) {
  let value: Value | undefined
  for (const place of placesOf(key)) {
    const here = yield* readAt(run, place)
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
