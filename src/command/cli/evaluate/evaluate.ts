/**
 * Defines `effect eval`, which evaluates a checkpoint of a training, the weights of a trainer's run, or the agents of a file.
 * It can also print a finished evaluation again, or compare two evaluations.
 */
import { Effect, Option } from "effect"
import { exists } from "../../../base/files/files.ts"
import { kindOf } from "../../../run/RunSpec.ts"
import { evaluations, havingCheckpoint, ofKind, requireConfig, runFolder, trainings } from "../findRun.ts"
import { withRunsOnDisk } from "../openRuns.ts"
import { isBucket, subcommand } from "../flags.ts"
import { usageError } from "../output/output.ts"
import { isProgram } from "../userCode/loadTraining.ts"
import { isConfig, readYaml } from "../userCode/yamlFile.ts"
import { evaluateFile } from "./evaluateFile.ts"
import { evaluateRun } from "./evaluateRun.ts"
import { type EvalFlags, flags, flagsOfEvaluations, flagsOfFiles, flagsOfRuns, isGiven, refuseFlags } from "./flags.ts"
import { compareEvaluations, showEvaluation } from "./showEvaluation.ts"

export const evaluate = subcommand(
  "eval",
  {
    description:
      "Evaluate a run (play validation episodes from one of its checkpoints), or evaluate the agents of a file (YAML, or a " +
      "program) on its tasks (with scores, confidence intervals and comparisons), or compare two finished evaluations. The run of a " +
      "language model's trainer is evaluated as such a file is. Ctrl-C keeps the finished episodes and prints the command " +
      "that resumes the evaluation.",
    examples: {
      "effect eval latest": "Play as many episodes as the run's own validations",
      "effect eval ppo/0001 --episodes 1000 --json": "Play 1,000 episodes for a more certain mean",
      "effect eval latest --step 50176 --render": "Evaluate an earlier checkpoint and save an episode to look at",
      "effect eval results/…/run_letters --step 400": "Play the validation tasks with a trained language model",
      "effect eval tasks.yaml --set repeats=8": "Play the tasks of a file, each eight times",
      "effect eval tasks.ts --seed 2": "Play the evaluation that a program exports",
      "effect eval tasks.yaml --resume latest": "Resume the newest unfinished evaluation with the name of this file",
      "effect eval before/0000 after/0000": "Compare two evaluations",
      "effect eval tasks.yaml --fail-under 0.8 --baseline main/0000 --max-regression 0.02":
        "Fail if the first scorer's mean is under 0.8, or lower than before by more than 0.02 and chance",
    },
  },
  flags,
  Effect.fnUntraced(function* (input) {
    const named = [input.target, ...Option.toArray(input.other)]
    const isInBucket = isBucket(input.resultsDir) || named.some(isBucket)
    if (!isInBucket) return yield* evaluateNamed(input)
    if (Option.isNone(input.other) && isFile(input.target) && !isBucket(input.target))
      return yield* usageError(
        "--results-dir s3://… does not work with a file: an evaluation is saved in a folder on disk",
      )
    if (input.render || Option.isSome(input.video)) {
      const flag = input.render ? "--render" : "--video"
      return yield* usageError(`${flag} does not work with a run in a bucket: it writes into the folder of the run`)
    }
    const usable = Option.isSome(input.other) ? evaluations : usableFor(input)
    const options = { usable, quiet: input.quiet, step: input.step }
    yield* withRunsOnDisk({ ...input, runs: named }, options, ({ runs: [target, other], resultsDir }) =>
      evaluateNamed({ ...input, target, other: Option.fromUndefinedOr(other), resultsDir }),
    )
  }),
)

const evaluateNamed = Effect.fnUntraced(function* (input: EvalFlags) {
  const { target, json, quiet } = input
  const folders = [input.resultsDir]
  if (Option.isSome(input.other)) {
    yield* refuseFlags(input, [...flagsOfRuns, ...flagsOfFiles, "cluster", "alert"], "one run or one file")
    yield* refuseFlags(input, flagsOfEvaluations, "one evaluation: effect eval NEW --baseline OLD")
    const [left, right] = yield* Effect.forEach([target, input.other.value], (typed) =>
      Effect.flatMap(exists(typed), (isPath) =>
        isPath ? Effect.succeed(typed) : runFolder(typed, { folders, usable: evaluations, quiet }),
      ),
    )
    return yield* compareEvaluations(left, right, json)
  }
  if (isFile(target)) {
    const flagsWithoutEffect = flagsOfRuns.filter((flag) => flag !== "set")
    yield* refuseFlags(input, flagsWithoutEffect, "a run: effect eval RUN")
    return yield* evaluateFile(input)
  }
  if (/\.[a-z]+$/i.test(target) && !(yield* exists(target))) {
    return yield* usageError(
      `${target}: there is no such file; expected a run, or a file (.yaml, .ts, .js) with an evaluation`,
    )
  }
  const run = yield* runFolder(target, { folders, usable: usableFor(input), quiet })
  const config = yield* requireConfig(run)
  yield* refuseFlags(input, flagsOfFiles, "a file: effect eval tasks.yaml")
  const kind = kindOf(yield* readYaml(config))
  if (kind === "multirun") {
    // The code that asks language models is loaded only when it is needed.
    const { evaluateModel } = yield* Effect.promise(() => import("./evaluateModel.ts"))
    return yield* evaluateModel(input, run)
  }
  if (kind === "prompts") {
    const how = `evaluate an agent with texts: ${run} in a file, and effect eval FILE`
    return yield* usageError(`${run}: this run learned the texts of an agent; ${how}`)
  }
  if (kind !== "evaluation") {
    yield* refuseFlags(input, flagsOfEvaluations, "an evaluation of agents")
    return yield* evaluateRun(input, run)
  }
  yield* refuseFlags(input, [...flagsOfRuns, "cluster", "alert"], "the run of a training")
  yield* showEvaluation(input, run)
})

const isFile = (target: string): boolean => isConfig(target) || isProgram(target)

/**
 * Selects the runs that `latest` may mean: with a flag about checkpoints, only trainings, because evaluations have no
 * checkpoints.
 */
const usableFor = (input: EvalFlags) =>
  havingCheckpoint(
    flagsOfRuns.some((flag) => isGiven(input[flag]))
      ? trainings
      : ofKind("a run that can be evaluated", "training", "agents", "multirun", "evaluation"),
  )
