import { basename, extname } from "node:path"
import { Option } from "effect"
import { Argument, type Command, Flag } from "effect/cli"
import { backendNames } from "../node.ts"

export const defaultResultsDir = "results"

/** All that `effect run` can be told. */
export const flags = {
  file: Argument.String("file").pipe(
    Argument.withDescription("A module whose default export is Train.run({ … }), or a config in YAML"),
  ),
  more: Argument.String("key=v1,v2").pipe(
    Argument.variadic(),
    Argument.withDescription("Further words of --population"),
  ),
  config: Flag.String("config").pipe(
    Flag.optional,
    Flag.withDescription("Settings from a YAML file, laid over those of the code"),
  ),
  set: Flag.String("set").pipe(
    Flag.withMetavar("key.path=value"),
    Flag.atLeast(0),
    Flag.withDescription("One setting, laid over all others; may be repeated"),
  ),
  seed: Flag.Int("seed").pipe(Flag.optional, Flag.withDescription("Where all randomness comes from")),
  seeds: Flag.String("seeds").pipe(
    Flag.withMetavar("1..10"),
    Flag.optional,
    Flag.withDescription("Several trainings side by side, one a seed, and their IQM with a bootstrap interval"),
  ),
  population: Flag.String("population").pipe(
    Flag.withMetavar("key=v1,v2"),
    Flag.atLeast(0),
    Flag.withDescription(
      "A sweep: every value of a setting (in YAML) with every value of the others and every seed; more settings follow as further words, or by repeating it",
    ),
  ),
  jobs: Flag.Int("jobs").pipe(
    Flag.optional,
    Flag.withDescription("Of several trainings: how many at a time; as many as there are cores when left out"),
  ),
  dryRun: Flag.Boolean("dry-run").pipe(
    Flag.withDefault(false),
    Flag.withDescription("Check everything and print what would run, and run nothing"),
  ),
  totalSteps: Flag.Int("total-steps").pipe(Flag.optional, Flag.withDescription("Env steps to train for")),
  backend: Flag.Literals("backend", backendNames).pipe(
    Flag.withDefault("auto" as const),
    Flag.withDescription("What computes; auto picks what is fastest for each graph, and run.log says which"),
  ),
  resultsDir: Flag.String("results-dir").pipe(
    Flag.withDefault(defaultResultsDir),
    Flag.withDescription("Where runs are kept"),
  ),
  name: Flag.String("name").pipe(Flag.optional, Flag.withDescription("The run's name; the file's when left out")),
  resume: Flag.String("resume").pipe(
    Flag.withMetavar("dir|latest"),
    Flag.optional,
    Flag.withDescription(
      "Go on with a run from its newest checkpoint, or with a sweep by the folder of its time; latest is the newest unfinished one of this name",
    ),
  ),
  csv: Flag.Boolean("csv").pipe(
    Flag.withDefault(false),
    Flag.withDescription("Every number of the run in progress.csv, too, a line each: step, name, value"),
  ),
  quiet: Flag.Boolean("quiet").pipe(Flag.withDefault(false), Flag.withDescription("No progress and no summary")),
  json: Flag.Boolean("json").pipe(
    Flag.withDefault(false),
    Flag.withDescription("The result as one line of JSON on stdout"),
  ),
}

export type Given = Command.Command.Config.Infer<typeof flags>

/** The run's name; the file's where none was given. */
export const nameOf = ({ name, file }: Given): string => Option.getOrElse(name, () => basename(file, extname(file)))

/** A flag's words, where it was given. */
export const flagWords = (name: string, value: Option.Option<unknown>): ReadonlyArray<string> =>
  Option.isNone(value) ? [] : [`--${name}`, String(value.value)]

/** Words as one can paste them into a shell. */
export const quoted = (words: ReadonlyArray<string>): string =>
  words.map((word) => (/^[\w./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ")
