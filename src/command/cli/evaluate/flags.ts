/** Defines the arguments and flags of `effect eval`, and refuses a flag that has no effect on the named run or file. */
import { Effect } from "effect"
import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
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
import { alertFlag } from "../alerts/flag.ts"
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
  video: Flag.Literals("video", ["gif", "mp4"]).pipe(
    Flag.withDescription(
      "With a run: like --render, and save the episodes of render.episodes as a video, too; mp4 needs the program ffmpeg",
    ),
    Flag.optional,
  ),
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
  alert: alertFlag("the evaluation"),
  trust: trustFlag,
  maxFailures,
  failUnder: texts(
    "fail-under",
    "[scorer=]0.8",
    "With an evaluation: the exit code is 1 if an agent's mean is lower than this (higher, for a scorer whose lower values are better); the first scorer unless named; can be repeated",
  ),
  baseline: text(
    "baseline",
    "run",
    "With an evaluation: an earlier one of the same tasks; the exit code is 1 if the paired interval shows that an agent got worse",
  ),
  maxRegression: texts(
    "max-regression",
    "[scorer=]0.02",
    "With --baseline: how much worse an agent may have got (default: 0, by the first scorer); can be repeated",
  ),
  strict: toggle(
    "strict",
    "With --fail-under and --baseline: the whole interval must be on the right side of its limit, so that chance cannot pass a gate",
  ),
  agent: texts("agent", "name", "With --fail-under and --baseline: judge only this agent; can be repeated"),
  summary: text(
    "summary",
    "file",
    "With an evaluation: write a summary in Markdown; it is appended to the file that GITHUB_STEP_SUMMARY names, and replaces any other",
  ),
  junit: text("junit", "file", "With an evaluation: write a report in JUnit XML, with a test for each task and agent"),
  quiet: toggle("quiet", "Print neither progress nor tables"),
  json: toggle(
    "json",
    "Print one line of JSON on stdout. Keys for a run: runDir, step, episodes, meanReturn, stdReturn, minReturn, maxReturn, meanLength, terminated, truncated, wallSeconds, stepsPerSecond, and for a game agents, the mean return of each; for a file or a language model's run: runDir, episodes, failed, report, digest, and gates with --fail-under or --baseline; for a comparison: comparisons",
  ),
}

export type EvalFlags = FlagValues<typeof flags>

/** The flags that change how a run's checkpoint is evaluated. */
export const flagsOfRuns = ["file", "episodes", "step", "render", "video", "set"] as const
/** The flags that only change how the agents of a file are evaluated. */
export const flagsOfFiles = ["name", "seed", "resume"] as const
/** The flags that judge and report an evaluation of agents. */
export const flagsOfEvaluations = ["failUnder", "baseline", "maxRegression", "strict", "agent", "summary", "junit"] as const // prettier-ignore
type OptionalFlag =
  | (typeof flagsOfRuns)[number]
  | (typeof flagsOfFiles)[number]
  | (typeof flagsOfEvaluations)[number]
  | "cluster"
  | "alert"

/** Returns the flags that judge and report a finished evaluation, for the command that resumes it. */
export const judgingFlags = (input: EvalFlags): Readonly<Record<string, unknown>> => ({
  "max-failures": input.maxFailures.typed,
  "fail-under": input.failUnder,
  baseline: input.baseline,
  "max-regression": input.maxRegression,
  strict: input.strict,
  agent: input.agent,
  summary: input.summary,
  junit: input.junit,
})

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
  const typed = flag?.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
  return typed === undefined ? Effect.void : Effect.fail(usageError(`--${typed} only works with ${owner}`))
}
