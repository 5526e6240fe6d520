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
    Argument.withDescription("The folder of a run, or a file in YAML that says what is evaluated on what"),
  ),
  other: Argument.String("other-run").pipe(
    Argument.optional,
    Argument.withDescription("Of two finished evaluations: the second one, compared with the first task by task"),
  ),
  file: Flag.String("file").pipe(
    Flag.optional,
    Flag.withDescription("Of a run: the module that it was made by, where its env or its demonstrations are your own"),
  ),
  episodes: Flag.Int("episodes").pipe(
    Flag.optional,
    Flag.withDescription("Of a run: how many to play; as many as its validations when left out"),
  ),
  step: Flag.Int("step").pipe(
    Flag.optional,
    Flag.withDescription("Of a run: the checkpoint of this step (or episode, of agents that talk); else the newest"),
  ),
  render: Flag.Boolean("render").pipe(
    Flag.withDefault(false),
    Flag.withDescription("Of a run: keep an episode to look at, and the policy in every format, below its steps/"),
  ),
  set: Flag.String("set").pipe(
    Flag.withMetavar("key.path=value"),
    Flag.atLeast(0),
    Flag.withDescription("Another setting than the file's, or than the run's, of validation; may be repeated"),
  ),
  backend: Flag.Literals("backend", backendNames).pipe(
    Flag.withDefault("auto" as const),
    Flag.withDescription("Of a run: what computes"),
  ),
  resultsDir: Flag.String("results-dir").pipe(
    Flag.withDefault(defaultResultsDir),
    Flag.withDescription("Of a file: where its results are kept"),
  ),
  name: Flag.String("name").pipe(
    Flag.optional,
    Flag.withDescription("Of a file: what the evaluation is called; as the file when left out"),
  ),
  resume: Flag.String("resume").pipe(
    Flag.withMetavar("dir|latest"),
    Flag.optional,
    Flag.withDescription("Of a file: go on with an evaluation that was stopped; what was played isn't played again"),
  ),
  quiet: Flag.Boolean("quiet").pipe(Flag.withDefault(false), Flag.withDescription("No progress and no tables")),
  json: Flag.Boolean("json").pipe(
    Flag.withDefault(false),
    Flag.withDescription(
      "One line of JSON on stdout; of a run: runDir, step, episodes, meanReturn, stdReturn, minReturn, maxReturn, meanLength, terminated, truncated, wallSeconds, stepsPerSecond; of a file: runDir, episodes, failed, report, digest; of two: comparisons",
    ),
  ),
}

/** `effect eval`: what a run has learnt, agents on tasks, or two evaluations compared. */
export const evaluate = Command.make("eval", flags, (given) => execute(given)).pipe(
  Command.withDescription(
    "Evaluate: play validation episodes with what a run's checkpoint holds; or agents on the tasks of a file, scored, with " +
      "intervals and comparisons; or compare two such evaluations. Ctrl-C keeps what was played and says how to go on",
  ),
  Command.withShortDescription("Evaluate a run, or agents on tasks"),
  Command.withExamples([
    { command: "effect eval results/…/0001", description: "As its own validations do" },
    { command: "effect eval results/…/0001 --episodes 1000 --json", description: "To know better" },
    { command: "effect eval results/…/0001 --step 50176 --render", description: "An earlier checkpoint, to look at" },
    {
      command: "effect eval tasks.yaml --set repeats=8",
      description: "The agents of a file on its tasks, eight times",
    },
    { command: "effect eval tasks.yaml --resume latest", description: "Go on where Ctrl-C or a crash left it" },
    { command: "effect eval results/…/0000 results/…/0000", description: "Is the second better than the first?" },
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

/** What is said and can't be heeded is a mistake. */
const refuse = (given: Given, flags: ReadonlyArray<Sometimes>, owner: string): Effect.Effect<void, UsageError> => {
  const flag = flags.find((name) => isGiven(given[name]))
  return flag === undefined ? Effect.void : Effect.fail(new UsageError({ message: `--${flag}: it goes with ${owner}` }))
}
