import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { toCamelCase } from "../config/Config.ts"
import { statOf } from "../config/files.ts"
import { best } from "../run/find/best.ts"
import { diff } from "../run/find/diff.ts"
import { overview, overviewText } from "../run/find/overview.ts"
import {
  eachRun,
  extraKeys,
  type Query,
  query,
  readFilter,
  runLine,
  type RunLine,
  valuesOf,
} from "../run/find/query.ts"
import type { RunEntry } from "../run/find/RunEntry.ts"
import { over } from "../run/RunReader.ts"
import { RunsError } from "../run/find/RunsError.ts"
import { parseSort } from "../run/find/sort.ts"
import { findRuns } from "../run/find/find-node.ts"
import { diskSource } from "../run/read/disk-node.ts"
import { type Column, fitted } from "../run/find/fitted.ts"
import { type Cell, cell, table } from "../run/find/text.ts"
import { type Value, valueOfData } from "../run/find/Value.ts"
import { colored, coloredState, warningLabel } from "./output/colors.ts"
import { findRun, lookupDir as resultsDir, runArgument } from "./findRun.ts"
import { writeError, writeOut } from "./output/output.ts"
import { UsageError } from "./output/errors.ts"

/** `effect runs`: lists, shows and compares the runs in a results folder. */

const dir = Argument.String("dir").pipe(
  Argument.withDefault("results"),
  Argument.withDescription("A results folder, or a folder inside one (default: results)"),
)
const aRun = (name: string) => Argument.String(name).pipe(Argument.withDescription(runArgument))
const json = (what: string) => Flag.Boolean("json").pipe(Flag.withDefault(false), Flag.withDescription(what))

const selection = {
  where: Flag.String("where").pipe(
    Flag.withMetavar("key=value"),
    Flag.atLeast(0),
    Flag.withDescription(
      "Only runs for which this holds, with = != < > <= or >=; can be repeated. Keys: time, name, commit, seed, state, " +
        "steps, validation, best_validation, a setting of the sweep, a key of metrics.json or, with dots, of config.yaml",
    ),
  ),
  finished: Flag.Boolean("finished").pipe(Flag.withDefault(false), Flag.withDescription("Only finished runs")),
  unfinished: Flag.Boolean("unfinished").pipe(
    Flag.withDefault(false),
    Flag.withDescription("Only runs that are running or were stopped"),
  ),
}

const limit = Flag.Int("limit").pipe(Flag.optional, Flag.withDescription("At most this many"))

const show = Command.make("show", { run: aRun("run"), resultsDir, json: json("Print one JSON object") }, (given) =>
  Effect.gen(function* () {
    const facts = factsOf(yield* runAt(given.run, given.resultsDir))
    const about = yield* overview(facts, source)
    const { config, metrics } = about
    yield* given.json
      ? printJson([{ ...about, config: toCamelCase(config), metrics: toCamelCase(metrics) }])
      : writeOut(overviewText(about, yield* facts.configText, coloredState))
  }),
).pipe(
  Command.withDescription("Show a run: its identifier, config, metrics, learning curve, checkpoints and files."),
  Command.withShortDescription("Show everything about a run"),
  Command.withExamples([
    { command: "effect runs show latest", description: "Show the newest run" },
    { command: "effect runs show ppo/0003", description: "Show the one run with this in its path" },
    { command: "effect runs show latest --json | jq .validations", description: "Print its learning curve" },
  ]),
)

const compare = Command.make(
  "diff",
  { left: aRun("run"), right: aRun("other-run"), resultsDir, json: json("Print one JSON object") },
  (given) =>
    Effect.gen(function* () {
      const left = yield* configOf(yield* runAt(given.left, given.resultsDir))
      const right = yield* configOf(yield* runAt(given.right, given.resultsDir))
      const differences = diff(left.config, right.config)
      if (given.json) {
        return yield* printJson([{ left: left.path, right: right.path, differences: toCamelCase(differences) }])
      }
      const rows = differences.map((one) => [
        one.key,
        "left" in one ? text(one.left) : undefined,
        "right" in one ? text(one.right) : undefined,
      ])
      yield* writeOut(`left   ${cell(left.path)}\nright  ${cell(right.path)}\n\n`)
      yield* writeOut(rows.length === 0 ? "their configs are equal\n" : table(["key", "left", "right"], rows))
    }),
).pipe(
  Command.withDescription("Compare the configs of two runs, key by key. A - means that a run has no such key."),
  Command.withShortDescription("Compare the configs of two runs"),
  Command.withExamples([
    { command: "effect runs diff ppo/0001 a2c/0001", description: "Compare two runs by parts of their paths" },
    {
      command: "effect runs diff latest results/…/0001 --json | jq '.differences[].key'",
      description: "List the keys that differ",
    },
  ]),
)

const findBest = Command.make(
  "best",
  {
    dir,
    ...selection,
    by: Flag.String("by").pipe(
      Flag.withMetavar("key"),
      Flag.withDefault("validation"),
      Flag.withDescription(
        "The metric: validation (mean of the last one), best_validation, or a key of metrics.json such as mean_return " +
          "(default: validation)",
      ),
    ),
    lowest: Flag.Boolean("lowest").pipe(Flag.withDefault(false), Flag.withDescription("The lowest value is the best")),
    group: Flag.String("group").pipe(
      Flag.withMetavar("key"),
      Flag.atLeast(0),
      Flag.withDescription(
        "Find the best run for each value of this key (a setting of the sweep, or any other key); can be repeated",
      ),
    ),
    limit,
    json: json("Print one line of JSON per run"),
  },
  (given) =>
    Effect.gen(function* () {
      const { runs, entries } = yield* select({ ...given, sort: Option.none(), limit: Option.none() })
      const values = yield* usage(valuesOf(runs, given.by, { entries, asked: `--by ${given.by}` }))
      const groups = yield* Effect.forEach(given.group, (key) =>
        usage(valuesOf(runs, key, { entries, asked: `--group ${key}` })),
      )
      const candidates = runs.map((run, index) => ({
        run,
        value: values[index],
        group: groups.map((group) => group[index]),
      }))
      const found = best(candidates, given.lowest)
      if (found.length === 0) {
        return yield* new RunsError({ message: `no run in ${given.dir} has a number for ${given.by}` })
      }
      const most = yield* limitOf(given.limit)
      const lines = yield* eachRun(found.slice(0, most), (one) =>
        Effect.map(runLine(one.run), (line) => ({ ...one, line })),
      )
      if (given.json) {
        return yield* printJson(
          lines.map(({ line, value, group, runs, mean }) => ({
            group: Object.fromEntries(given.group.map((key, index) => [key, group[index] ?? null])),
            by: given.by,
            value,
            runs,
            mean,
            run: line,
          })),
        )
      }
      const columns: ReadonlyArray<Column> = [
        ...given.group.map((heading, index): Column => ({ heading, role: "name", cells: lines.map(({ group }) => group[index]) })), // prettier-ignore
        { heading: given.by, role: "figure", cells: lines.map(({ value }) => value) },
        { heading: "runs", role: "figure", cells: lines.map(({ runs }) => runs) },
        { heading: "mean", role: "figure", cells: lines.map(({ mean }) => mean) },
        { heading: "seed", role: "figure", cells: lines.map(({ line }) => line.seed) },
        { heading: "state", role: "figure", cells: lines.map(({ line }) => line.state) },
        { heading: "steps", role: "detail", cells: lines.map(({ line }) => line.steps) },
        { heading: "path", role: "path", cells: lines.map(({ line }) => line.path) },
      ]
      yield* writeOut(shownTable(columns))
    }),
).pipe(
  Command.withDescription("Find the best run by a metric, or the best of each group, with the group's size and mean."),
  Command.withShortDescription("Find the best run, or the best of each group"),
  Command.withExamples([
    { command: "effect runs best", description: "The best by the mean of its last validation" },
    {
      command: "effect runs best --by best_validation --group environment --group algorithm",
      description: "The best for each env and algorithm, by its best validation",
    },
    {
      command: "effect runs best --by wall_seconds --lowest --where 'validation>=475' --json | jq -r .run.path",
      description: "The fastest run that solved the task",
    },
  ]),
)

export const runs = Command.make(
  "runs",
  {
    dir,
    ...selection,
    sort: Flag.String("sort").pipe(
      Flag.withMetavar("key[:desc]"),
      Flag.optional,
      Flag.withDescription("Sort by a key; runs without it come last (default: the newest first)"),
    ),
    limit,
    json: json("Print one line of JSON per run"),
  },
  (given) =>
    Effect.gen(function* () {
      const { runs, asked, entries } = yield* select(given)
      const keys = extraKeys(asked, entries)
      const lines = yield* eachRun(runs, (run) => runLine(run, keys))
      if (given.json) return yield* printJson(lines)
      if (lines.length > 0) return yield* writeOut(listing(lines, keys))
      const none = entries.length === 0 ? `no runs in ${given.dir}` : `none of the ${entries.length} runs matches`
      yield* writeError(`${none}\n`)
    }),
).pipe(
  Command.withDescription(
    "List runs, the newest first, with the settings that vary between them, their steps and their last validation.",
  ),
  Command.withShortDescription("List, show and compare runs"),
  Command.withExamples([
    { command: "effect runs", description: "List all runs in ./results" },
    {
      command: "effect runs --where algorithm=ppo --where 'algorithm.learning_rate<1e-3' --sort validation:desc",
      description: "Filter and sort by any setting",
    },
    {
      command: "effect runs sweeps --unfinished --limit 10",
      description: "The newest ten unfinished runs in ./sweeps",
    },
    {
      command: "effect runs --where env=CartPole-v1 --json | jq -r 'select(.validation > 400) | .path'",
      description: "One line of JSON per run, for other programs",
    },
  ]),
  Command.withSubcommands([show, compare, findBest]),
)

const source = diskSource((message) => writeError(`${warningLabel()} ${message}\n`))
const factsOf = over(source)

/**
 * Turns the errors of `run/find/` about flags and arguments into usage errors, because `run/find/` doesn't use
 * `UsageError`.
 */
const usage = <A>(effect: Effect.Effect<A, RunsError>): Effect.Effect<A, UsageError> =>
  Effect.mapError(effect, ({ message }) => new UsageError({ message }))

interface Selection {
  readonly dir: string
  readonly where: ReadonlyArray<string>
  readonly finished: boolean
  readonly unfinished: boolean
  readonly sort: Option.Option<string>
  readonly limit: Option.Option<number>
}

const select = Effect.fnUntraced(function* (given: Selection) {
  if (given.finished && given.unfinished) {
    return yield* new UsageError({ message: "--finished and --unfinished exclude each other; use one of them" })
  }
  const sort = Option.isNone(given.sort) ? undefined : yield* usage(prefixed("--sort", parseSort(given.sort.value)))
  const most = yield* limitOf(given.limit)
  const asked: Query = {
    where: yield* usage(prefixed("--where", Effect.forEach(given.where, readFilter))),
    ...(given.finished || given.unfinished ? { finished: given.finished } : {}),
    ...(sort === undefined ? {} : { sort }),
    ...(most === undefined ? {} : { limit: most }),
  }
  if ((yield* statOf(given.dir))?.type !== "Directory") {
    // The argument may be a mistyped subcommand.
    const hint = /^[a-z]+$/.test(given.dir) ? "; the subcommands are show, diff and best" : ""
    return yield* new UsageError({ message: `${given.dir}: there is no such folder${hint}` })
  }
  const entries = yield* findRuns(given.dir, source)
  return { asked, entries, runs: yield* usage(query(entries, asked, factsOf)) }
})

const prefixed = <A>(flag: string, effect: Effect.Effect<A, RunsError>): Effect.Effect<A, RunsError> =>
  Effect.mapError(effect, ({ message }) => new RunsError({ message: `${flag} ${message}` }))

const limitOf = (limit: Option.Option<number>): Effect.Effect<number | undefined, UsageError> =>
  Option.isSome(limit) && limit.value < 1
    ? Effect.fail(new UsageError({ message: `--limit ${limit.value}: expected at least 1` }))
    : Effect.succeed(Option.getOrUndefined(limit))

const runAt = (wanted: string, resultsDir: string) => findRun(wanted, { folders: [resultsDir], source })

const configOf = Effect.fnUntraced(function* (entry: RunEntry) {
  const config = yield* factsOf(entry).config
  if (config !== undefined) return { path: entry.path, config }
  return yield* new RunsError({ message: `${entry.path} has no config.yaml to compare` })
})

/** Returns a value of a config as text that `--set` accepts. */
const text = (value: unknown): Value | undefined => (value === null ? "null" : valueOfData(value))

const listing = (lines: ReadonlyArray<RunLine>, keys: ReadonlyArray<string>): string => {
  const variables = [...new Set(lines.flatMap(({ population }) => Object.keys(population)))]
  const column = (heading: string, role: Column["role"], value: (line: RunLine) => Cell | undefined): Column => ({
    heading,
    role,
    cells: lines.map(value),
  })
  return shownTable([
    column("time", "detail", ({ time }) => time),
    column("name", "name", ({ name }) => name),
    ...variables.map((variable) =>
      column(variable, "name", ({ population }) =>
        Object.hasOwn(population, variable) ? population[variable] : undefined,
      ),
    ),
    column("seed", "figure", ({ seed }) => seed),
    column("state", "figure", ({ state }) => state),
    column("steps", "detail", ({ steps }) => steps),
    column("validation", "figure", ({ validation }) => validation),
    ...keys.map((key) => column(key, "name", ({ values }) => values?.[key])),
    column("path", "path", ({ path }) => path),
  ])
}

/** Formats a table that fits the terminal; if stdout is not a terminal, the table has its full width. */
const shownTable = (columns: ReadonlyArray<Column>): string =>
  fitted(columns, {
    width: process.stdout.isTTY ? process.stdout.columns : undefined,
    paint: (text, heading, row) =>
      row === undefined ? colored("bold", text) : heading === "state" ? coloredState(text) : text,
  })

const printJson = (values: ReadonlyArray<unknown>): Effect.Effect<void> =>
  writeOut(values.map((value) => `${JSON.stringify(value)}\n`).join(""))
