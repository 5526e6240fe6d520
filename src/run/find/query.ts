/** Filters and sorts runs, for `effect runs`: first by facts in their paths, then by keys that need their files. */
import { Effect } from "effect"
import { FormatError } from "../../base/formats/FormatError.ts"
import { type RunFilter, formatFilter, parseFilter, passes } from "./filter.ts"
import { isKnownKey, knownKeys, type KeyPlace, placesOf, unknownKey, valueInEntry } from "./keys.ts"
import { newestFirst, type RunEntry } from "./RunEntry.ts"
import type { RunLabels } from "../manage/labels.ts"
import type { RunReader } from "../RunReader.ts"
import { compareValues, dataAt, type RunValue, valueOfData } from "./Value.ts"

/** Returns the value of a key that the run's path contains; undefined if a file of the run must be read. */
const valueOfEntry = (entry: RunEntry, key: string): RunValue | undefined => valueInEntry(entry, placesOf(key)[0])

/** Returns the value of a key of labels; tags are divided by spaces, which no tag has. */
const labelValue =
  (key: "title" | "tag" | "archived") =>
  ({ title, tags, archived = false }: RunLabels): RunValue | undefined => {
    if (key === "archived") return archived
    return key === "title" ? title : tags?.join(" ")
  }

const readAt = (run: RunReader, place: KeyPlace): Effect.Effect<RunValue | undefined> => {
  if (place.in === "config") return Effect.map(run.configAt(place.path), valueOfData)
  if (place.in === "metrics") return Effect.map(run.metrics, (metrics) => valueOfData(dataAt(metrics, place.path)))
  if (place.in === "facts" && place.key === "best_validation") return run.bestValidation
  if (place.in === "facts") {
    const { key } = place
    if (key === "title" || key === "tag" || key === "archived") return Effect.map(run.labels, labelValue(key))
    if (key === "seed" || key === "state" || key === "steps" || key === "validation") return run[key]
  }
  return Effect.succeed(valueInEntry(run.entry, place))
}

/** Reads the value of a key, opening as few files as possible; undefined if the run lacks the key. */
export const valueOf = Effect.fnUntraced(function* (run: RunReader, key: string) {
  let value: RunValue | undefined
  for (const place of placesOf(key)) {
    const here = yield* readAt(run, place)
    if (here !== undefined && here !== null) return here
    value = here === undefined ? value : here
  }
  return value
})

/** The number of runs whose configs are read to find a similar key to suggest. */
const searchedRuns = 100

/** Returns the error message for a key that no run has; undefined if it is a known key, or if no config can be read. */
const keyProblem = Effect.fnUntraced(function* (
  key: string,
  runs: ReadonlyArray<RunReader>,
  entries: ReadonlyArray<RunEntry>,
): Effect.fn.Return<string | undefined> {
  if (runs.length === 0 || isKnownKey(key, entries)) return undefined
  let [hasConfig, isReadable] = [false, false]
  const read = []
  for (const run of runs.slice(0, searchedRuns)) {
    hasConfig ||= (yield* run.configText) !== undefined
    const config = yield* run.config
    isReadable ||= config !== undefined
    read.push({ entry: run.entry, config, metrics: yield* run.metrics })
  }
  if (hasConfig && !isReadable) return undefined
  return unknownKey(key, knownKeys([...read, ...runs.map(({ entry }) => ({ entry, config: null, metrics: null }))]))
})

export interface Query {
  readonly where: ReadonlyArray<RunFilter>
  /** True keeps only finished runs, false only unfinished ones; if left out, all are kept. */
  readonly finished?: boolean
  /** The order of the runs; newest first if left out. */
  readonly sort?: { readonly key: string; readonly descending: boolean }
  readonly limit?: number
  /** Whether archived runs are kept, too; true if left out. */
  readonly archived?: boolean
}

/** The number of runs whose files are read at the same time. */
const concurrency = 32

/** Runs the Effect `body` for each item, such as a run, many of them concurrently. Returns the results in order. */
export const eachRun = <A, B, E>(
  items: ReadonlyArray<A>,
  body: (item: A) => Effect.Effect<B, E>,
): Effect.Effect<ReadonlyArray<B>, E> => Effect.forEach(items, body, { concurrency })

/**
 * Returns the value of a key for each run. Fails if no run has the key, unless runs may lack it, as `validation`. `asked` is
 * the option of the command that names the key, for the message.
 */
export const valuesOf = Effect.fnUntraced(function* (
  runs: ReadonlyArray<RunReader>,
  key: string,
  { entries, asked }: { readonly entries: ReadonlyArray<RunEntry>; readonly asked: string },
): Effect.fn.Return<ReadonlyArray<RunValue | undefined>, FormatError> {
  const values = yield* eachRun(runs, (run) => valueOf(run, key))
  if (values.every((value) => value === undefined)) {
    const problem = yield* keyProblem(key, runs, entries)
    if (problem !== undefined) return yield* new FormatError({ message: `${asked}: ${problem}` })
  }
  return values
})

/** Parses a condition of the command line such as `seed=7`; see `filter.ts`. */
export const readFilter = (text: string): Effect.Effect<RunFilter, FormatError> => {
  const parsed = parseFilter(text)
  return "filter" in parsed ? Effect.succeed(parsed.filter) : Effect.fail(new FormatError({ message: parsed.problem }))
}

/** Parses a sort order: `KEY`, `KEY:asc` or `KEY:desc`. */
export const parseSort = (text: string): Effect.Effect<NonNullable<Query["sort"]>, FormatError> => {
  const [, key = "", order = "asc"] = /^([^:].*?)(?::([^:]*))?$/.exec(text.trim()) ?? []
  return key !== "" && (order === "asc" || order === "desc")
    ? Effect.succeed({ key, descending: order === "desc" })
    : Effect.fail(new FormatError({ message: `${text}: expected KEY, KEY:asc or KEY:desc` }))
}

/** Sorts items by value. Items with equal values keep their order, and items without a value come last. */
export const sortBy = <A>(
  items: ReadonlyArray<A>,
  valueOf: (item: A) => RunValue | undefined,
  descending: boolean,
): ReadonlyArray<A> => {
  const hasValue = (value: RunValue | undefined): boolean => value !== undefined && value !== null
  return items
    .map((item) => ({ item, value: valueOf(item) }))
    .sort((a, b) => {
      if (!hasValue(a.value) || !hasValue(b.value)) return Number(hasValue(b.value)) - Number(hasValue(a.value))
      return descending ? compareValues(b.value, a.value) : compareValues(a.value, b.value)
    })
    .map(({ item }) => item)
}

/** Returns the readers of the runs that pass the filters, in the order of the query. */
export const query = Effect.fnUntraced(function* (
  entries: ReadonlyArray<RunEntry>,
  { where, finished, sort, limit, archived = true }: Query,
  readerOf: (entry: RunEntry) => RunReader,
): Effect.fn.Return<ReadonlyArray<RunReader>, FormatError> {
  const possible = entries.filter((entry) =>
    where.every((filter) => {
      const value = valueOfEntry(entry, filter.key)
      return value === undefined || passes(filter, value)
    }),
  )
  let runs = newestFirst(possible).map((entry) => readerOf(entry))

  const valuesHere = (key: string, asked: string) => valuesOf(runs, key, { entries, asked })
  if (finished !== undefined) {
    const areFinished = yield* eachRun(runs, ({ isFinished }) => isFinished)
    runs = runs.filter((_, index) => areFinished[index] === finished)
  }
  for (const filter of where) {
    const values = yield* valuesHere(filter.key, `--where ${formatFilter(filter)}`)
    runs = runs.filter((_, index) => passes(filter, values[index]))
  }
  if (sort !== undefined) {
    const values = yield* valuesHere(sort.key, `--sort ${sort.key}`)
    const pairs = runs.map((run, index) => ({ run, value: values[index] }))
    runs = sortBy(pairs, ({ value }) => value, sort.descending).map(({ run }) => run)
  }
  return archived ? runs.slice(0, limit) : yield* withoutArchived(runs, limit)
})

/** Returns the first `limit` runs that are not archived. It reads no more runs than it needs. */
const withoutArchived = Effect.fnUntraced(function* (runs: ReadonlyArray<RunReader>, limit = Infinity) {
  const kept: Array<RunReader> = []
  for (let start = 0; start < runs.length && kept.length < limit; start += concurrency) {
    const some = runs.slice(start, start + concurrency)
    const labels = yield* eachRun(some, (run) => run.labels)
    kept.push(...some.filter((_, index) => labels[index].archived !== true))
  }
  return kept.slice(0, limit)
})

/** Reads the facts about a run that `effect runs --json` prints as one line. A fact that the run lacks is null. */
export const runLine = Effect.fnUntraced(function* (run: RunReader, keys: ReadonlyArray<string> = []) {
  const { path, time, commit, population } = run.entry
  const name = yield* valueOf(run, "name")
  const seed = yield* valueOf(run, "seed")
  const agents = yield* run.agents
  const values: Record<string, RunValue> = {}
  for (const key of keys) values[key] = (yield* valueOf(run, key)) ?? null
  return {
    path,
    time: time ?? null,
    commit: commit ?? null,
    name: name === undefined || name === null ? null : String(name),
    population,
    seed: typeof seed === "number" ? seed : null,
    state: yield* run.state,
    steps: (yield* run.steps) ?? null,
    /** The mean return of the last validation. */
    validation: (yield* run.validation) ?? null,
    /** What the run's owner noted about it; each only if it is set. */
    ...(yield* run.labels),
    /** The score of each agent of a game in the last validation, by name. */
    ...(agents.length === 0 ? {} : { agents: Object.fromEntries(agents.map(({ agent, mean }) => [agent, mean])) }),
    /** The values of other keys that the query filters or sorts by. */
    ...(keys.length === 0 ? {} : { values }),
  }
})

export type RunLine = Effect.Success<ReturnType<typeof runLine>>

const inEveryLine = new Set(["path", "time", "commit", "name", "seed", "state", "steps", "validation", "title", "tag"])

/**
 * Returns the keys of a query that need an additional column: keys that are not in `runLine`, and whose values are not the
 * same in all runs of the query.
 */
export const extraKeys = ({ where, sort }: Query, entries: ReadonlyArray<RunEntry>): ReadonlyArray<string> => {
  const keys = [
    ...where.filter(({ operator }) => operator !== "=").map(({ key }) => key),
    ...(sort === undefined ? [] : [sort.key]),
  ]
  const shown = (key: string): boolean =>
    inEveryLine.has(key) || entries.some(({ population }) => Object.hasOwn(population, key))
  return [...new Set(keys)].filter((key) => !shown(key))
}
