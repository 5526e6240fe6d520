/**
 * Defines `effect runs`, which lists runs, and its subcommands show, diff, compare, best and texts. They only read results
 * folders.
 */
import { Effect, Option } from "effect"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import { toCamelCase } from "../../base/config/Config.ts"
import { statOf } from "../../base/files/files.ts"
import { isPlain } from "../../base/config/plain.ts"
import type { FormatError } from "../../base/formats/FormatError.ts"
import * as Multirun from "../../trainer/Layout.ts"
import { best } from "../../run/find/best.ts"
import { diffOfRuns } from "../../run/find/diff.ts"
import { findRuns } from "../../run/find/find-node.ts"
import { type TableColumn, fitted } from "../../run/find/fitted.ts"
import { overview, overviewText } from "../../run/find/overview.ts"
import * as Query from "../../run/find/query.ts"
import type { RunEntry } from "../../run/find/RunEntry.ts"
import { type Cell, cell, table } from "../../run/find/table.ts"
import { type RunValue, valueOfData } from "../../run/find/Value.ts"
import type { FileSource } from "../../run/read/FileSource.ts"
import { over, type RunReader } from "../../run/RunReader.ts"
import { RunStoreError } from "../../run/store/RunStoreError.ts"
import { compareRuns } from "./compareRuns.ts"
import { findRun } from "./findRun.ts"
import { manageRuns } from "./manageRuns.ts"
import { readingRunsIn } from "./openRuns.ts"
import { runTexts } from "./runTexts.ts"
import * as Flags from "./flags.ts"
import { isBucket } from "./flags.ts"
import { colored, coloredState } from "./output/colors.ts"
import { usageError, writeError, writeJson, writeOut } from "./output/output.ts"

/** The folder in which runs are looked for. */
const place = {
  dir: Flags.argument("dir", "A results folder, a folder inside one, or s3://BUCKET/PREFIX (default: results)").pipe(
    Argument.optional,
  ),
  resultsDir: Flags.text("results-dir", "dir", "The same as the argument, as other commands take it"),
}
const aRun = (name: string) => Flags.argument(name, Flags.runArgument)
const json = (what: string) => Flags.toggle("json", what)
const { lookupDir: resultsDir } = Flags

const selection = {
  where: Flags.texts(
    "where",
    "key=value",
    "Only runs for which this holds, with = != < > <= or >=; can be repeated. Keys: time, name, commit, seed, state, " +
      "steps, validation, best_validation, title, tag, archived, a setting of the sweep, a key of metrics.json or, with dots, of config.yaml",
  ),
  finished: Flags.toggle("finished", "Only finished runs"),
  unfinished: Flags.toggle("unfinished", "Only runs that are running or were stopped"),
  tag: Flags.texts("tag", "tag", "Only runs with this tag; can be repeated"),
  archived: Flags.toggle("archived", "Also archived runs, which are left out otherwise"),
}

const limit = Flags.number("limit", "listed", "At most this many")

const show = Flags.subcommand(
  "show",
  {
    description: "Show a run: its identifier, config, metrics, learning curve, checkpoints and files.",
    short: "Show everything about a run",
    examples: {
      "effect runs show latest": "Show the newest run",
      "effect runs show ppo/0003": "Show the one run with this in its path",
      "effect runs show latest --json | jq .validations": "Print its learning curve",
    },
  },
  { run: aRun("run"), resultsDir, json: json("Print one JSON object") },
  Effect.fnUntraced(function* (input) {
    yield* reading(input.run, input.resultsDir, (entry, source) =>
      Effect.gen(function* () {
        const facts = over(source)(entry)
        const about = yield* overview(facts, source)
        const { config, metrics } = about
        yield* input.json
          ? writeJson({ ...about, config: toCamelCase(config), metrics: toCamelCase(metrics) })
          : writeOut(overviewText(about, yield* facts.configText, coloredState))
        if (!input.json && isPlain(config) && config.kind === "evaluation")
          yield* writeOut(`\nits scores and comparisons: effect eval ${cell(Flags.quoted([about.path]))}\n`)
      }),
    )
  }),
)

const diff = Flags.subcommand(
  "diff",
  {
    description: "Compare the configs of two runs, key by key. A - means that a run has no such key.",
    short: "Compare the configs of two runs",
    examples: {
      "effect runs diff ppo/0001 a2c/0001": "Compare two runs by parts of their paths",
      "effect runs diff latest results/…/0001 --json | jq '.differences[].key'": "List the keys that differ",
    },
  },
  { left: aRun("run"), right: aRun("other-run"), resultsDir, json: json("Print one JSON object") },
  Effect.fnUntraced(function* (input) {
    const [left, right] = yield* Effect.forEach([input.left, input.right], (wanted) =>
      reading(wanted, input.resultsDir, configOf),
    )
    const differences = diffOfRuns(left.config, right.config)
    if (input.json) {
      return yield* writeJson({ left: left.path, right: right.path, differences: toCamelCase(differences) })
    }
    const rows = differences.map((one) => [
      one.key,
      "left" in one ? text(one.left) : undefined,
      "right" in one ? text(one.right) : undefined,
    ])
    yield* writeOut(`left   ${cell(left.path)}\nright  ${cell(right.path)}\n\n`)
    yield* writeOut(rows.length === 0 ? "their configs are equal\n" : table(["key", "left", "right"], rows))
  }),
)

const findBest = Flags.subcommand(
  "best",
  {
    description: "Find the best run by a metric, or the best of each group, with the group's size and mean.",
    short: "Find the best run, or the best of each group",
    examples: {
      "effect runs best": "The best by the mean of its last validation",
      "effect runs best --by best_validation --group environment --group algorithm":
        "The best for each env and algorithm, by its best validation",
      "effect runs best --by wall_seconds --lowest --where 'validation>=475' --json | jq -r .run.path":
        "The fastest run that solved the task",
    },
  },
  {
    ...place,
    ...selection,
    by: Flags.textOr(
      "validation",
      "by",
      "key",
      "The metric: validation (mean of the last one), best_validation, or a key of metrics.json such as mean_return " +
        "(default: validation)",
    ),
    lowest: Flags.toggle("lowest", "The lowest value is the best"),
    group: Flags.texts(
      "group",
      "key",
      "Find the best run for each value of this key (a setting of the sweep, or any other key); can be repeated",
    ),
    limit,
    json: json("Print one line of JSON per run"),
  },
  Effect.fnUntraced(function* (input) {
    yield* selecting({ ...input, sort: Option.none(), limit: Option.none() }, (selected) => printBest(input, selected))
  }),
)

export const runs = Flags.subcommand(
  "runs",
  {
    description:
      "List runs, the newest first, with the settings that vary between them, their steps and their last validation.",
    examples: {
      "effect runs": "List all runs in ./results",
      "effect runs --where algorithm=ppo --where 'algorithm.learning_rate<1e-3' --sort validation:desc":
        "Filter and sort by any setting",
      "effect runs sweeps --unfinished --limit 10": "The newest ten unfinished runs in ./sweeps",
      "effect runs --where env=CartPole-v1 --json | jq -r 'select(.validation > 400) | .path'":
        "One line of JSON per run, for other programs",
    },
  },
  {
    ...place,
    ...selection,
    sort: Flags.text("sort", "key[:desc]", "Sort by a key; runs without it come last (default: the newest first)"),
    limit,
    json: json("Print one line of JSON per run"),
  },
  Effect.fnUntraced(function* (input) {
    yield* selecting(input, (selected) => printRuns(input.json, selected))
  }),
).pipe(Command.withSubcommands([show, diff, compareRuns, findBest, runTexts, ...manageRuns]))

/** Prints the selected runs as a table, or as lines of JSON. */
const printRuns = Effect.fnUntraced(function* (
  isJson: boolean,
  { runs, asked, dir, entries, countArchived }: Selected,
) {
  const keys = Query.extraKeys(asked, entries)
  const lines = yield* Query.eachRun(runs, (run) => Query.runLine(run, keys))
  if (isJson) return yield* printJson(lines)
  if (lines.length > 0) return yield* writeOut(listing(lines, keys))
  const none = entries.length === 0 ? `no runs in ${dir}` : `none of the ${entries.length} runs matches`
  const archived = yield* countArchived
  yield* writeError(`${none}${archived === 0 ? "" : `, but ${archived} archived do: add --archived`}\n`)
})

/** Prints the best of the selected runs, or the best run of each group. */
const printBest = Effect.fnUntraced(function* (
  input: {
    readonly by: string
    readonly lowest: boolean
    readonly group: ReadonlyArray<string>
    readonly limit: Option.Option<number>
    readonly json: boolean
  },
  { runs, dir, entries }: Selected,
) {
  const valuesOf = (flag: string, key: string) =>
    usage(Query.valuesOf(runs, key, { entries, asked: `--${flag} ${key}` }))
  const values = yield* valuesOf("by", input.by)
  const groups = yield* Effect.forEach(input.group, (key) => valuesOf("group", key))
  const candidates = runs.map((run, index) => ({
    run,
    value: values[index],
    group: groups.map((group) => group[index]),
  }))
  const ranking = best(candidates, input.lowest)
  if (ranking.length === 0) {
    const message = `no run in ${dir} has a number for ${input.by}`
    return yield* new RunStoreError({ path: dir, operation: "find", message })
  }
  const count = Option.getOrUndefined(input.limit)
  const lines = yield* Query.eachRun(ranking.slice(0, count), (one) =>
    Effect.map(Query.runLine(one.run), (line) => ({ ...one, line })),
  )
  if (input.json) {
    return yield* printJson(
      lines.map(({ line, value, group, runs, mean }) => ({
        group: Object.fromEntries(input.group.map((key, index) => [key, group[index] ?? null])),
        by: input.by,
        value,
        runs,
        mean,
        run: line,
      })),
    )
  }
  const column = columnOf(lines)
  yield* writeOut(
    shownTable([
      ...input.group.map((heading, index) => column(heading, "name", ({ group }) => group[index])),
      column(input.by, "figure", ({ value }) => value),
      column("runs", "figure", ({ runs }) => runs),
      column("mean", "figure", ({ mean }) => mean),
      column("seed", "figure", ({ line }) => line.seed),
      column("state", "figure", ({ line }) => line.state),
      column("steps", "detail", ({ line }) => line.steps),
      column("path", "path", ({ line }) => line.path),
    ]),
  )
})

/** Converts the errors of the modules in `run/find/`, which don't know the CLI, to usage errors with a prefix. */
const usage = <A>(effect: Effect.Effect<A, FormatError>, prefix = "") =>
  Effect.mapError(effect, ({ message }) => usageError(`${prefix}${message}`))

/** The runs that a query selects: `entries` are all runs in the folder, and `runs` those that match. */
interface Selected {
  readonly asked: Query.Query
  readonly dir: string
  readonly entries: ReadonlyArray<RunEntry>
  readonly runs: ReadonlyArray<RunReader>
  /** Counts the archived runs that match, too, but were left out. */
  readonly countArchived: Effect.Effect<number>
}

/** Selects runs in a folder or a bucket, and runs `body` with them. */
const selecting = Effect.fnUntraced(function* <A, E, R>(
  input: Flags.FlagValues<typeof selection> &
    Flags.FlagValues<typeof place> & {
      readonly sort: Option.Option<string>
      readonly limit: Option.Option<number>
    },
  body: (selected: Selected) => Effect.Effect<A, E, R>,
) {
  if (input.finished && input.unfinished) {
    return yield* usageError("--finished and --unfinished exclude each other; use one of them")
  }
  const sort = Option.isNone(input.sort) ? undefined : yield* usage(Query.parseSort(input.sort.value), "--sort ")
  const count = Option.getOrUndefined(input.limit)
  const tagged = input.tag.map((value) => ({ key: "tag", operator: "=" as const, value }))
  const where = [...(yield* usage(Effect.forEach(input.where, Query.readFilter), "--where ")), ...tagged]
  const asked: Query.Query = {
    where,
    archived: input.archived || where.some(({ key }) => key === "archived"),
    ...(input.finished || input.unfinished ? { finished: input.finished } : {}),
    ...(sort === undefined ? {} : { sort }),
    ...(count === undefined ? {} : { limit: count }),
  }
  const dir = yield* folderOf(input)
  if (!isBucket(dir) && (yield* statOf(dir))?.type !== "Directory") {
    // The argument may be a mistyped subcommand.
    const hint =
      Option.isSome(input.dir) && /^[a-z]+$/.test(dir)
        ? "; the subcommands are show, diff, compare, best, rename, note, tag, archive and delete"
        : ""
    return yield* usageError(`${dir}: there is no such folder${hint}`)
  }
  return yield* readingRunsIn(dir, (source) =>
    Effect.gen(function* () {
      const entries = yield* findRuns(dir, source, waitsForTrainer(source))
      const runs = yield* usage(Query.query(entries, asked, over(source)))
      const withArchived = Effect.orElseSucceed(
        Query.query(entries, { ...asked, archived: true }, over(source)),
        () => runs,
      )
      const countArchived = Effect.map(withArchived, ({ length }) => length - runs.length)
      return yield* body({ asked, dir, entries, runs, countArchived })
    }),
  )
})

/** Returns the folder to search, which the user names with an argument, or with a flag as in other commands. */
const folderOf = Effect.fnUntraced(function* ({ dir, resultsDir }: Flags.FlagValues<typeof place>) {
  if (Option.isSome(dir) && Option.isSome(resultsDir))
    return yield* usageError(`--results-dir ${resultsDir.value} and ${dir.value} name two folders; use one of them`)
  return Option.getOrElse(
    Option.orElse(dir, () => resultsDir),
    () => Flags.defaultResultsDir,
  )
})

/** Tells whether the folder of a trainer's run has a config that the trainer has neither used nor refused yet. */
const waitsForTrainer = (source: FileSource) =>
  Effect.fnUntraced(function* (run: string) {
    const has = (file: string) => Effect.map(source.text(`${run}/${file}`), (text) => text !== undefined)
    const { toml, yaml } = Multirun.configFiles
    if (!((yield* has(yaml)) || (yield* has(toml)))) return false
    return !((yield* has(Multirun.configProblem)) || (yield* has(Multirun.evicted)))
  })

/** Finds the run that the user named, and runs `body` with it and with the source of its files. */
const reading = <A, E, R>(
  wanted: string,
  resultsDir: string,
  body: (entry: RunEntry, source: FileSource) => Effect.Effect<A, E, R>,
) =>
  readingRunsIn(isBucket(wanted) ? wanted : resultsDir, (source) =>
    Effect.flatMap(findRun(wanted, { folders: [resultsDir], source }), (entry) => body(entry, source)),
  )

const configOf = Effect.fnUntraced(function* (entry: RunEntry, source: FileSource) {
  const config = yield* over(source)(entry).config
  if (config !== undefined) return { path: entry.path, config }
  const message = `${entry.path} has no config.yaml to compare`
  return yield* new RunStoreError({ path: entry.path, operation: "read", message })
})

/** Returns a config's value for a table cell. Null becomes a text, since `-` means that a run lacks the key. */
const text = (value: unknown): RunValue | undefined => (value === null ? "null" : valueOfData(value))

/**
 * Returns a function that makes a column of a table from a heading, a role (which decides how the column may shrink), and a
 * function for each line's cell.
 */
const columnOf =
  <Line>(lines: ReadonlyArray<Line>) =>
  (heading: string, role: TableColumn["role"], value: (line: Line) => Cell | undefined): TableColumn => ({
    heading,
    role,
    cells: lines.map(value),
  })

const listing = (lines: ReadonlyArray<Query.RunLine>, keys: ReadonlyArray<string>): string => {
  const variables = [...new Set(lines.flatMap(({ population }) => Object.keys(population)))]
  const valueOf = (population: Readonly<Record<string, string>>, variable: string) =>
    Object.hasOwn(population, variable) ? population[variable] : undefined
  const column = columnOf(lines)
  return shownTable([
    column("time", "detail", ({ time }) => time),
    column("name", "name", ({ name, title }) => title ?? name),
    ...variables.map((variable) => column(variable, "name", ({ population }) => valueOf(population, variable))),
    column("seed", "figure", ({ seed }) => seed),
    column("state", "figure", ({ state }) => state),
    column("steps", "detail", ({ steps }) => steps),
    column("validation", "figure", ({ validation }) => validation),
    ...keys.map((key) => column(key, "name", ({ values }) => values?.[key])),
    ...(lines.some(({ tags }) => tags !== undefined) ? [column("tags", "name", ({ tags }) => tags?.join(" "))] : []),
    column("path", "path", ({ path }) => path),
  ])
}

/** Formats a table that fits the terminal; if stdout is not a terminal, the table has its full width. */
const shownTable = (columns: ReadonlyArray<TableColumn>): string =>
  fitted(columns, {
    width: process.stdout.isTTY ? process.stdout.columns : undefined,
    paint: (text, heading, row) =>
      row === undefined ? colored("bold", text) : heading === "state" ? coloredState(text) : text,
  })

const printJson = (values: ReadonlyArray<unknown>): Effect.Effect<void> =>
  writeOut(values.map((value) => `${JSON.stringify(value)}\n`).join(""))
