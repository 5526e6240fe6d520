/**
 * Filters the runs of the overview. The text of a filter contains conditions in the form of `effect runs --where`, such as
 * `validation>400` and `algorithm.learning_rate<1e-3`. Its other words must be somewhere in the run's title, tags, name, variables,
 * env, algorithm, commit, time, state or seed.
 */
import { parseSearch, passes } from "../../../../run/find/filter.ts"
import { isKnownKey, knownKeys, placesOf, unknownKey, valueIn } from "../../../../run/find/keys.ts"
import { hasSettings, readSettings, settingsAreStale, valuesOf } from "./settings.js"

const states = ["running", "finished", "stopped", "failed"]

/**
 * Returns the runs that pass a filter, and the problems in its text. If `isWaiting`, settings are being read, and `again` is
 * called after that.
 */
export const filtered = (runs, text, again, failed) => {
  if (text.trim() === "") return { runs, problems: [], isWaiting: false }
  const { words, filters, problems } = parseSearch(text)
  const withWords = runs.filter((run) => words.every((word) => textOf(run).includes(plain(word))))
  const own = filters.map((filter) => ({ ...filter, key: keyIn(runs, filter.key) }))
  const isWaiting = own.some(({ key }) => needsSettings(withWords, key)) && (!hasSettings() || settingsAreStale())
  if (isWaiting) readSettings().then(again, failed)
  if (isWaiting && !hasSettings()) return { runs: withWords, problems, isWaiting }
  const passing = withWords.filter((run) => own.every((filter) => passes(filter, valueIn(valuesOf(run), filter.key))))
  return { runs: passing, problems: [...problems, ...own.flatMap((filter) => problemOf(filter, runs))], isWaiting }
}

/** Returns the key as the runs write it, because the user may write dashes instead of underscores in variables. */
const keyIn = (runs, key) =>
  runs.flatMap(({ population }) => Object.keys(population)).find((variable) => plain(variable) === plain(key)) ?? key

/** Tells whether a key must be looked up in the files of these runs, because it is not in their summaries. */
const needsSettings = (runs, key) => {
  const [first] = placesOf(key)
  if (first.in === "facts") return false
  return runs.some(({ population }) => first.in !== "population" || !Object.hasOwn(population, first.variable))
}

const problemOf = ({ key, operator, value }, runs) => {
  if (key === "state" && ["=", "!="].includes(operator) && !states.includes(value)) {
    return [`“${value}” is no state; the states are ${states.join(", ")}.`]
  }
  const entries = runs.map(({ population }) => ({ population }))
  if (runs.length === 0 || isKnownKey(key, entries)) return []
  if (runs.some((run) => valueIn(valuesOf(run), key) !== undefined)) return []
  return [unknownKey(key, knownKeys(runs.map(valuesOf)))]
}

/** Converts a text to lower case, with dashes instead of underscores, so that words match in either spelling. */
const plain = (text) => text.toLowerCase().replaceAll("_", "-")

const texts = new WeakMap()
const textOf = (run) => {
  const before = texts.get(run)
  if (before !== undefined) return before
  const { name, env, algorithm, commit, time, state, seed, population, title, tags = [] } = run
  const all = [
    title,
    ...tags,
    name,
    env,
    algorithm,
    commit,
    time,
    state,
    `seed ${seed}`,
    ...Object.entries(population).flat(),
  ]
  const text = plain(all.join(" "))
  texts.set(run, text)
  return text
}
