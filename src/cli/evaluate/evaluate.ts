import { Effect, type FileSystem, Option, type Path } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { exists } from "../../config/files.ts"
import { backendNames } from "../../node.ts"
import { kindOf } from "../../run/RunSpec.ts"
import { ofKind, requireConfig, runArgument, runFolder } from "../findRun.ts"
import { defaultResultsDir } from "../flags.ts"
import { UsageError } from "../output/errors.ts"
import { isYaml, readYaml } from "../userCode/yamlFile.ts"
import { evaluateFile, type EvaluateFileError } from "./evaluateFile.ts"
import { evaluateRun, type EvaluateRunError } from "./evaluateRun.ts"
import { compareEvaluations, type CompareError, showEvaluation } from "./showEvaluation.ts"

const flags = {
  target: Argument.String("run|tasks.yaml").pipe(
    Argument.withDescription(`${runArgument}; or a YAML file that names agents and a data set to evaluate them on`),
  ),
  other: Argument.String("other-run").pipe(
    Argument.optional,
    Argument.withDescription("A second finished evaluation, to compare with the first one task by task"),
  ),
  file: Flag.String("file").pipe(
    Flag.withMetavar("file"),
    Flag.optional,
    Flag.withDescription("With a run: the module that made it, if its env, algorithm or demonstrations are your own"),
  ),
  episodes: Flag.Int("episodes").pipe(
    Flag.optional,
    Flag.withDescription("With a run: how many episodes to play (default: as many as its validations)"),
  ),
  step: Flag.Int("step").pipe(
    Flag.optional,
    Flag.withDescription(
      "With a run: the checkpoint of this step, or of this episode for language-model agents (default: the newest)",
    ),
  ),
  render: Flag.Boolean("render").pipe(
    Flag.withDefault(false),
    Flag.withDescription("With a run: save an episode to look at, and the policy in every format, under its steps/"),
  ),
  set: Flag.String("set").pipe(
    Flag.withMetavar("key.path=value"),
    Flag.atLeast(0),
    Flag.withDescription("Override one setting of the file, or of the run's validation; can be repeated"),
  ),
  backend: Flag.Literals("backend", backendNames).pipe(
    Flag.withDefault("auto" as const),
    Flag.withDescription("With a run: the backend that computes"),
  ),
  resultsDir: Flag.String("results-dir").pipe(
    Flag.withMetavar("dir"),
    Flag.withDefault(defaultResultsDir),
    Flag.withDescription("The folder in which evaluations are saved and runs are looked up (default: results)"),
  ),
  name: Flag.String("name").pipe(
    Flag.withMetavar("name"),
    Flag.optional,
    Flag.withDescription("With a file: the evaluation's name (default: the file's name)"),
  ),
  resume: Flag.String("resume").pipe(
    Flag.withMetavar("run"),
    Flag.optional,
    Flag.withDescription(
      "With a file: resume an evaluation that was stopped, given by its folder, a part of its path, or latest; finished episodes are not played again",
    ),
  ),
  quiet: Flag.Boolean("quiet").pipe(Flag.withDefault(false), Flag.withDescription("Print neither progress nor tables")),
  json: Flag.Boolean("json").pipe(
    Flag.withDefault(false),
    Flag.withDescription(
      "Print one line of JSON on stdout. Keys for a run: runDir, step, episodes, meanReturn, stdReturn, minReturn, maxReturn, meanLength, terminated, truncated, wallSeconds, stepsPerSecond; for a file: runDir, episodes, failed, report, digest; for a comparison: comparisons",
    ),
  ),
}

/** `effect eval`: evaluates a run or the agents in a file, or compares two evaluations. */
export const evaluate = Command.make("eval", flags, (given) => execute(given)).pipe(
  Command.withDescription(
    "Evaluate a run (play validation episodes from one of its checkpoints), or evaluate the agents that a YAML file names " +
      "on its tasks (with scores, confidence intervals and comparisons), or compare two finished evaluations. Ctrl-C keeps " +
      "the finished episodes and prints the command that resumes the evaluation.",
  ),
  Command.withShortDescription("Evaluate a run, or agents on tasks"),
  Command.withExamples([
    { command: "effect eval latest", description: "Play as many episodes as the run's own validations" },
    {
      command: "effect eval ppo/0001 --episodes 1000 --json",
      description: "Play 1,000 episodes for a more certain mean",
    },
    {
      command: "effect eval latest --step 50176 --render",
      description: "Evaluate an earlier checkpoint and save an episode to look at",
    },
    {
      command: "effect eval tasks.yaml --set repeats=8",
      description: "Play the tasks of a file, each eight times",
    },
    {
      command: "effect eval tasks.yaml --resume latest",
      description: "Resume the newest unfinished evaluation of this file",
    },
    { command: "effect eval before/0000 after/0000", description: "Compare two evaluations" },
  ]),
)

type Given = Command.Command.Config.Infer<typeof flags>
type EvalError = EvaluateRunError | EvaluateFileError | CompareError | UsageError

const execute = Effect.fnUntraced(function* (
  given: Given,
): Effect.fn.Return<void, EvalError, FileSystem.FileSystem | Path.Path> {
  const { target, json, quiet } = given
  const folders = [given.resultsDir]
  if (Option.isSome(given.other)) {
    yield* refuseFlags(given, ["file", "episodes", "step", "render", "set", "name", "resume"], "a run or a file")
    const usable = ofKind("an evaluation", "evaluation")
    const [left, right] = yield* Effect.forEach([target, given.other.value], (typed) =>
      Effect.flatMap(exists(typed), (isPath) =>
        isPath ? Effect.succeed(typed) : runFolder(typed, { folders, usable, quiet }),
      ),
    )
    return yield* compareEvaluations({ left, right, json })
  }
  if (isYaml(target)) {
    yield* refuseFlags(
      given,
      flagsOfRuns.filter((flag) => flag !== "set"),
      "a run: effect eval RUN",
    )
    return yield* evaluateFile({ ...given, file: target })
  }
  // A finished evaluation is only printed again, so these flags would have no effect on it.
  const usable = flagsOfRuns.some((flag) => isGiven(given[flag]))
    ? ofKind("a training", "training", "agents")
    : ofKind("a run with a config.yaml", "training", "agents", "evaluation")
  const run = yield* runFolder(target, { folders, usable, quiet })
  const config = yield* requireConfig(run)
  yield* refuseFlags(given, ["name", "resume"], "a file: effect eval tasks.yaml")
  if (kindOf(yield* readYaml(config)) !== "evaluation") return yield* evaluateRun({ ...given, run })
  yield* refuseFlags(given, flagsOfRuns, "the run of a training")
  yield* showEvaluation({ run, json })
})

type OptionalFlag = "file" | "episodes" | "step" | "render" | "set" | "name" | "resume"

/** The flags that change how a run's checkpoint is evaluated. */
const flagsOfRuns = ["file", "episodes", "step", "render", "set"] as const

const isGiven = (value: Given[OptionalFlag]): boolean => {
  if (typeof value === "boolean") return value
  return "length" in value ? value.length > 0 : value._tag === "Some"
}

/** Refuses flags that would have no effect here. */
const refuseFlags = (
  given: Given,
  flags: ReadonlyArray<OptionalFlag>,
  owner: string,
): Effect.Effect<void, UsageError> => {
  const flag = flags.find((name) => isGiven(given[name]))
  return flag === undefined
    ? Effect.void
    : Effect.fail(new UsageError({ message: `--${flag} only works with ${owner}` }))
}
