import { existsSync } from "node:fs"
import { join } from "node:path"
import { Effect, type FileSystem, Option, type Path } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { isEvaluation } from "../evaluate/isEvaluation.ts"
import { backendNames } from "../node.ts"
import { compareEvaluations, type CompareError, showEvaluation } from "./compareEvaluations.ts"
import { evaluateFile, type EvaluateFileError } from "./evaluateFile.ts"
import { evaluateRun, type EvaluateRunError } from "./evaluateRun.ts"
import { defaultResultsDir } from "./flags.ts"
import { readYaml } from "./loadTraining.ts"
import { UsageError } from "./UsageError.ts"

const flags = {
  target: Argument.String("run|tasks.yaml").pipe(
    Argument.withDescription("A run, or a YAML file that names the agents and the data set to evaluate them on"),
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
    Flag.withDescription("The folder in which evaluations of files are saved (default: results)"),
  ),
  name: Flag.String("name").pipe(
    Flag.withMetavar("name"),
    Flag.optional,
    Flag.withDescription("With a file: the evaluation's name (default: the file's name)"),
  ),
  resume: Flag.String("resume").pipe(
    Flag.withMetavar("dir|latest"),
    Flag.optional,
    Flag.withDescription("With a file: resume an evaluation that was stopped; finished episodes are not played again"),
  ),
  quiet: Flag.Boolean("quiet").pipe(Flag.withDefault(false), Flag.withDescription("Print neither progress nor tables")),
  json: Flag.Boolean("json").pipe(
    Flag.withDefault(false),
    Flag.withDescription(
      "Print one line of JSON on stdout. Keys for a run: runDir, step, episodes, meanReturn, stdReturn, minReturn, maxReturn, meanLength, terminated, truncated, wallSeconds, stepsPerSecond; for a file: runDir, episodes, failed, report, digest; for a comparison: comparisons",
    ),
  ),
}

/** `effect eval`: what a run has learnt, agents on tasks, or two evaluations compared. */
export const evaluate = Command.make("eval", flags, (given) => execute(given)).pipe(
  Command.withDescription(
    "Evaluate a run (play validation episodes from one of its checkpoints), or evaluate the agents that a YAML file names " +
      "on its tasks (with scores, confidence intervals and comparisons), or compare two finished evaluations. Ctrl-C keeps " +
      "the finished episodes and prints the command that resumes the evaluation.",
  ),
  Command.withShortDescription("Evaluate a run, or agents on tasks"),
  Command.withExamples([
    { command: "effect eval results/…/0001", description: "Play as many episodes as the run's own validations" },
    {
      command: "effect eval results/…/0001 --episodes 1000 --json",
      description: "Play 1,000 episodes for a more certain mean",
    },
    {
      command: "effect eval results/…/0001 --step 50176 --render",
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
    { command: "effect eval results/…/0000 results/…/0000", description: "Compare two evaluations" },
  ]),
)

type Given = Command.Command.Config.Infer<typeof flags>
type EvalError = EvaluateRunError | EvaluateFileError | CompareError | UsageError

const isYaml = (path: string): boolean => /\.ya?ml$/.test(path)

const execute = Effect.fnUntraced(function* (
  given: Given,
): Effect.fn.Return<void, EvalError, FileSystem.FileSystem | Path.Path> {
  const { target, json } = given
  if (Option.isSome(given.other)) {
    yield* refuse(given, ["file", "episodes", "step", "render", "set", "name", "resume"], "a run or a file")
    return yield* compareEvaluations({ left: target, right: given.other.value, json })
  }
  if (isYaml(target)) {
    yield* refuse(given, ["file", "episodes", "step", "render"], "a run: effect eval RUN")
    return yield* evaluateFile({ ...given, file: target })
  }
  const config = join(target, "config.yaml")
  if (!existsSync(config)) {
    return yield* new UsageError({ message: `${target}: it is not a run (it has no config.yaml), and no .yaml file` })
  }
  yield* refuse(given, ["name", "resume"], "a file: effect eval tasks.yaml")
  if (!isEvaluation(yield* readYaml(config))) return yield* evaluateRun({ ...given, run: target })
  yield* refuse(given, ["file", "episodes", "step", "render", "set"], "a run that has learnt something")
  yield* showEvaluation({ folder: target, json })
})

type Sometimes = "file" | "episodes" | "step" | "render" | "set" | "name" | "resume"

const isGiven = (value: Given[Sometimes]): boolean => {
  if (typeof value === "boolean") return value
  return "length" in value ? value.length > 0 : value._tag === "Some"
}

/** Refuses flags that would have no effect here. */
const refuse = (given: Given, flags: ReadonlyArray<Sometimes>, owner: string): Effect.Effect<void, UsageError> => {
  const flag = flags.find((name) => isGiven(given[name]))
  return flag === undefined ? Effect.void : Effect.fail(new UsageError({ message: `--${flag}: it goes with ${owner}` }))
}
