import { basename, extname } from "node:path"
import { Option } from "effect"
import { Argument, type Command, Flag } from "effect/cli"
import { derivedName } from "../run/identifier.ts"
import { backendNames } from "../node.ts"

export const defaultResultsDir = "results"

/** The arguments and flags of `effect run`. */
export const flags = {
  file: Argument.String("file").pipe(
    Argument.withDescription(
      "A module whose default export is Train.run({ … }) or Runtime.run({ … }), or a config in YAML",
    ),
  ),
  more: Argument.String("key=v1,v2").pipe(
    Argument.variadic(),
    Argument.withDescription("More settings for --population"),
  ),
  config: Flag.String("config").pipe(
    Flag.withMetavar("file"),
    Flag.optional,
    Flag.withDescription("A YAML file whose settings override those of the code"),
  ),
  set: Flag.String("set").pipe(
    Flag.withMetavar("key.path=value"),
    Flag.atLeast(0),
    Flag.withDescription("Override one setting; can be repeated, and wins over --config"),
  ),
  seed: Flag.Int("seed").pipe(Flag.optional, Flag.withDescription("The seed of all random numbers")),
  seeds: Flag.String("seeds").pipe(
    Flag.withMetavar("1..10"),
    Flag.optional,
    Flag.withDescription("Train once per seed, several at a time, and report the IQM with a bootstrap interval"),
  ),
  population: Flag.String("population").pipe(
    Flag.withMetavar("key=v1,v2"),
    Flag.atLeast(0),
    Flag.withDescription(
      "Sweep: train with every combination of the values of these settings (values are YAML) and every seed; list more settings after it, or repeat the flag",
    ),
  ),
  jobs: Flag.Int("jobs").pipe(
    Flag.optional,
    Flag.withDescription("How many trainings of --seeds or --population run at a time (default: one per core)"),
  ),
  dryRun: Flag.Boolean("dry-run").pipe(
    Flag.withDefault(false),
    Flag.withDescription("Check all settings and print the runs that would start, without starting them"),
  ),
  totalSteps: Flag.Int("total-steps").pipe(
    Flag.optional,
    Flag.withDescription("The number of environment steps to train for"),
  ),
  backend: Flag.Literals("backend", backendNames).pipe(
    Flag.withDefault("auto" as const),
    Flag.withDescription("The backend that computes; auto picks the fastest for each graph and names it in run.log"),
  ),
  resultsDir: Flag.String("results-dir").pipe(
    Flag.withMetavar("dir"),
    Flag.withDefault(defaultResultsDir),
    Flag.withDescription("The folder in which runs are saved (default: results)"),
  ),
  name: Flag.String("name").pipe(
    Flag.withMetavar("name"),
    Flag.optional,
    Flag.withDescription("The run's name (default: the file's name)"),
  ),
  resume: Flag.String("resume").pipe(
    Flag.withMetavar("run"),
    Flag.optional,
    Flag.withDescription(
      "Resume a run from its newest checkpoint: its folder, a part of its path, or latest for the newest run of this name, unfinished ones first. A sweep is resumed by the folder of its time, or latest",
    ),
  ),
  csv: Flag.Boolean("csv").pipe(
    Flag.withDefault(false),
    Flag.withDescription("Also write every metric to progress.csv, one per line: step, name, value"),
  ),
  quiet: Flag.Boolean("quiet").pipe(
    Flag.withDefault(false),
    Flag.withDescription("Print neither progress nor a summary"),
  ),
  json: Flag.Boolean("json").pipe(
    Flag.withDefault(false),
    Flag.withDescription("Print the result as one line of JSON on stdout"),
  ),
}

export type Given = Command.Command.Config.Infer<typeof flags>

/** Returns the run's name: the value of `--name`, or else the name of the file. */
export const nameOf = ({ name, file }: Given): string =>
  Option.getOrElse(name, () => derivedName(basename(file, extname(file))))

/** Returns a flag and its value as words of a command line; no words if the flag has no value. */
export const flagWords = (name: string, value: Option.Option<unknown>): ReadonlyArray<string> =>
  Option.isNone(value) ? [] : [`--${name}`, String(value.value)]

/** Quotes words so that they can be pasted into a shell. */
export const quoted = (words: ReadonlyArray<string>): string =>
  words.map((word) => (/^[\w./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ")
