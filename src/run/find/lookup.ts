import { Effect } from "effect"
import { isKnownKey, knownKeys, type Place, placesOf, unknownKey, valueInEntry } from "./keys.ts"
import type { RunEntry } from "./RunEntry.ts"
import type { RunReader } from "../RunReader.ts"
import { dataAt, type Value, valueOfData } from "./Value.ts"

/** The value of a key that the run's path alone tells; undefined where a file of the run must be read for it. */
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

/** Reads the value of a key in a run, from as few files as it takes; undefined where the run doesn't have it. */
export const valueOf = Effect.fnUntraced(function* (
  facts: RunReader,
  key: string,
): Effect.fn.Return<Value | undefined> {
  let value: Value | undefined
  for (const place of placesOf(key)) {
    const here = yield* readAt(facts, place)
    if (here !== undefined && here !== null) return here
    value = here === undefined ? value : here
  }
  return value
})

/** The configs of so many runs are read whole, to find a key like the one that was asked for. */
const enough = 100

/**
 * The problem with a key that none of the runs has; undefined where the key is one that runs may lack, or where not one of
 * the runs' configs could be read: one of them might have had it.
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
