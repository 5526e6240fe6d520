/** Defines the arguments and flags of `effect eval`, and refuses a flag that has no effect on the named run or file. */
import { Effect } from "effect"
import * as Argument from "effect/cli/Argument"
import {
  argument,
  backendFlag,
  type FlagValues,
  number,
  resultsDirFlag,
  runArgument,
  text,
  texts,
  toggle,
  trustFlag,
} from "../flags.ts"
import { maxFailures } from "./failures.ts"
import { clusterFlag } from "../worker/cluster.ts"
import { usageError } from "../output/output.ts"
import { type CommandError } from "../../CommandError.ts"

export const flags = {
  target: argument(
    "run|file",
    `${runArgument}; or a file with an evaluation: a YAML file, or a module whose default export is Evaluations.fromConfig({ … })`,
  ),
  other: argument("other-run", "A second finished evaluation, to compare with the first one task by task").pipe(
    Argument.optional,
  ),
  file: text(
    "file",
    "file",
    "With a run: the module that made it, if its env, algorithm or demonstrations are your own",
  ),
  episodes: number(
    "episodes",
    "episodes",
    "With a run: how many episodes to play (default: as many as its validations; agents: at most one for each task)",
  ),
  step: number(
    "step",
    "countOrNone",
    "With a run: the checkpoint of this step, or of this episode for language-model agents (default: the newest)",
  ),
  render: toggle("render", "With a run: save an episode to look at, and the policy in every format, under its steps/"),
  set: texts(
    "set",
    "key.path=value",
    "Override one setting of the file, or of the run's validation; for a language model's run, of the evaluation: dataset.num_tasks=500; can be repeated",
  ),
  backend: backendFlag("The backend that computes, for a run and for models in this process"),
  resultsDir: resultsDirFlag(
    "The folder in which evaluations are saved and runs are looked up; for runs also s3://BUCKET/PREFIX (default: results)",
  ),
  name: text("name", "name", "With a file: the evaluation's name (default: the file's name)"),
  seed: number("seed", "seed", "With a file: the seed of all random numbers"),
  resume: text(
    "resume",
    "run",
    "With a file: resume an evaluation that was stopped, given by its folder, a part of its path, or latest; finished episodes are not played again",
  ),
  cluster: clusterFlag("Play the episodes"),
  trust: trustFlag,
  maxFailures,
  quiet: toggle("quiet", "Print neither progress nor tables"),
  json: toggle(
    "json",
    "Print one line of JSON on stdout. Keys for a run: runDir, step, episodes, meanReturn, stdReturn, minReturn, maxReturn, meanLength, terminated, truncated, wallSeconds, stepsPerSecond, and for a game agents, the mean return of each; for a file or a language model's run: runDir, episodes, failed, report, digest; for a comparison: comparisons",
  ),
}

export type EvalFlags = FlagValues<typeof flags>

/** The flags that change how a run's checkpoint is evaluated. */
export const flagsOfRuns = ["file", "episodes", "step", "render", "set"] as const
/** The flags that only change how the agents of a file are evaluated. */
export const flagsOfFiles = ["name", "seed", "resume"] as const
type OptionalFlag = (typeof flagsOfRuns)[number] | (typeof flagsOfFiles)[number] | "cluster"

/** Tells whether the user gave a flag, from its value: a switch that is true, a list with items, or a `Some`. */
export const isGiven = (value: EvalFlags[OptionalFlag]): boolean => {
  if (typeof value === "boolean") return value
  return "length" in value ? value.length > 0 : value._tag === "Some"
}

/** Fails if the user gave one of `flags`, which has no effect here. The error says that it only works with `owner`. */
export const refuseFlags = (
  input: EvalFlags,
  flags: ReadonlyArray<OptionalFlag>,
  owner: string,
): Effect.Effect<void, CommandError> => {
  const flag = flags.find((name) => isGiven(input[name]))
  return flag === undefined ? Effect.void : Effect.fail(usageError(`--${flag} only works with ${owner}`))
}
