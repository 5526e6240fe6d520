/** Defines the arguments and flags of `effect run`. */
import * as Argument from "effect/cli/Argument"
import {
  argument,
  backendFlag,
  type FlagValues,
  number,
  resultsDirFlag,
  text,
  texts,
  threadsFlag,
  toggle,
  trustFlag,
} from "../flags.ts"
import { alertFlag } from "../alerts/flag.ts"
import { clusterFlag } from "../worker/cluster.ts"

export const flags = {
  file: argument(
    "file",
    "A module whose default export is Train.run({ … }) or Runtime.run({ … }), or a config: YAML, or prime-rl's orch.toml",
  ).pipe(Argument.optional),
  more: argument("key=v1,v2", "More settings for --population").pipe(Argument.variadic()),
  preset: text(
    "preset",
    "algorithm/env",
    "Train with tuned settings in place of a file, such as ppo/HalfCheetah-v5: effect presets lists them",
  ),
  config: text("config", "file", "A YAML file whose settings override those of the code"),
  set: texts("set", "key.path=value", "Override one setting; can be repeated, and wins over --config"),
  seed: number("seed", "seed", "The seed of all random numbers"),
  seeds: text("seeds", "1..10", "Train once per seed, several at a time, and report the IQM with a bootstrap interval"),
  population: texts(
    "population",
    "key=v1,v2",
    "Sweep: train with every combination of the values of these settings (values are YAML) and every seed; list more settings after it, or repeat the flag",
  ),
  jobs: number("jobs", "jobs", "How many trainings of --seeds or --population run at a time (default: one per core)"),
  dryRun: toggle("dry-run", "Check all settings and print the runs that would start, without starting them"),
  totalSteps: number("total-steps", "count", "The number of environment steps to train for"),
  ranks: number(
    "ranks",
    "ranks",
    "How many processes compute gradients, with this one: for an algorithm with slices, and for a multi-run trainer (default: 1)",
  ),
  backend: backendFlag("The backend that computes; auto picks the fastest for each graph and names it in run.log"),
  threads: threadsFlag,
  resultsDir: resultsDirFlag("The folder in which runs are saved, or s3://BUCKET/PREFIX (default: results)"),
  name: text("name", "name", "The run's name (default: the file's name)"),
  resume: text(
    "resume",
    "run",
    "Resume a run from its newest checkpoint: its folder, a part of its path, or latest for the newest run with the name of this file (its setting name, --name, or else the file's own name, in whatever folder the file is), unfinished ones first. A sweep is resumed by the folder of its time, or latest",
  ),
  cluster: clusterFlag(
    "With --seeds or --population: train the runs; with one training: play its validations, and the episodes of an agent without a memory; with --ranks: compute gradients",
  ),
  server: text(
    "server",
    "url",
    "With --cluster, for a multi-run trainer with orchestrators: outside: play the tasks of its runs on the cluster, with answers of this inference server (effect serve TRAINER)",
  ),
  alert: alertFlag("the run"),
  csv: toggle("csv", "Also write every metric to progress.csv, one per line: step, name, value"),
  trust: trustFlag,
  quiet: toggle("quiet", "Print neither progress nor a summary"),
  json: toggle("json", "Print the result as one line of JSON on stdout"),
}

/** The arguments and flags as they were typed. */
export type TypedRunFlags = FlagValues<typeof flags>

/** The arguments and flags, with the path of the file: of the one that was typed, or of the preset's. */
export type RunFlags = Omit<TypedRunFlags, "file" | "preset"> & { readonly file: string }
