/** Defines the arguments and flags of `effect tune`. */
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
    "A module whose default export is Train.run({ … }) or Runtime.run({ … }), or a config in YAML",
  ),
  space: text("space", "file", "The YAML file with the settings to vary, their ranges, and the settings of the study"),
  trials: number(
    "trials",
    "trials",
    "The number of trials (default: that of the file, or else 20); with --resume, it can be larger",
  ),
  seed: number("seed", "seed", "The seed of the suggestions; the seed of the runs is --set seed=N"),
  workers: number(
    "workers",
    "jobs",
    "How many runs are trained at a time, at most the study's parallel (default: one per core); results don't depend on it",
  ),
  config: text("config", "file", "A YAML file whose settings override those of the code"),
  set: texts("set", "key.path=value", "Override one setting in all trials; can be repeated, and wins over --config"),
  totalSteps: number("total-steps", "count", "The number of environment steps to train each trial for"),
  dryRun: toggle("dry-run", "Check all settings and print the first trials, without starting them"),
  backend: backendFlag("The backend that computes; auto picks the fastest for each graph and names it in run.log"),
  threads: threadsFlag,
  resultsDir: resultsDirFlag("The folder in which the study and its runs are saved (default: results)"),
  name: text("name", "name", "The name of the study's runs (default: the file's name)"),
  resume: text(
    "resume",
    "study",
    "Resume a study: its folder, a part of its path, or latest for the newest study with the name of this file, unfinished ones first",
  ),
  cluster: clusterFlag("Train the runs"),
  alert: alertFlag("the study"),
  csv: toggle("csv", "Also write every metric of a run to its progress.csv, one per line: step, name, value"),
  trust: trustFlag,
  quiet: toggle("quiet", "Print neither progress nor a summary"),
  json: toggle("json", "Print the result as one line of JSON on stdout"),
}

export type TuneFlags = FlagValues<typeof flags>
