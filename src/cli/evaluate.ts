import { readdir } from "node:fs/promises"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { Effect, Layer, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { isPlain, type Override } from "../config/Config.ts"
import { backend, backendNames, envPool, platform, runStore } from "../node.ts"
import { Recorder } from "../record/Recorder.ts"
import { RunOptions } from "../train/RunOptions.ts"
import type { RunResult } from "../train/RunResult.ts"
import type { ValidationOutcome } from "../train/validation/Validator.ts"
import { loadTraining, readYaml, yamlOverrides } from "./loadTraining.ts"
import { setting } from "./overrides.ts"
import { UsageError } from "./UsageError.ts"

const flags = {
  run: Argument.String("run").pipe(Argument.withDescription("The folder of a run")),
  file: Flag.String("file").pipe(
    Flag.optional,
    Flag.withDescription("The module that the run was made by, where its env or its demonstrations are your own"),
  ),
  episodes: Flag.Int("episodes").pipe(
    Flag.optional,
    Flag.withDescription("How many to play; as many as the run's validations when left out"),
  ),
  step: Flag.Int("step").pipe(
    Flag.optional,
    Flag.withDescription("The checkpoint of this step; the newest when left out"),
  ),
  render: Flag.Boolean("render").pipe(
    Flag.withDefault(false),
    Flag.withDescription("Keep an episode to look at, and the policy in every format, below the run's steps/"),
  ),
  set: Flag.String("set").pipe(
    Flag.withMetavar("key.path=value"),
    Flag.atLeast(0),
    Flag.withDescription("Another setting than the run's, of validation; may be repeated"),
  ),
  backend: Flag.Literals("backend", backendNames).pipe(
    Flag.withDefault("auto" as const),
    Flag.withDescription("What computes"),
  ),
  json: Flag.Boolean("json").pipe(
    Flag.withDefault(false),
    Flag.withDescription(
      "One line of JSON on stdout: runDir, step, episodes, meanReturn, stdReturn, minReturn, maxReturn, meanLength, terminated, truncated, wallSeconds, stepsPerSecond",
    ),
  ),
}

/** `effect eval RUN`: plays what a run has learnt. */
export const evaluate = Command.make("eval", flags, (given) => execute(given)).pipe(
  Command.withDescription("Evaluate: play validation episodes with the policy of a run's checkpoint"),
  Command.withShortDescription("Evaluate a run"),
  Command.withExamples([
    { command: "effect eval results/…/0001", description: "As its own validations do" },
    { command: "effect eval results/…/0001 --episodes 1000 --json", description: "To know better" },
    { command: "effect eval results/…/0001 --step 50176 --render", description: "An earlier checkpoint, to look at" },
  ]),
)

type Given = Command.Command.Config.Infer<typeof flags>
type EvalError = UsageError | Effect.Error<Effect.Success<ReturnType<typeof loadTraining>>>

const execute = Effect.fnUntraced(function* (given: Given): Effect.fn.Return<void, EvalError> {
  const { run } = given
  const config = join(run, "config.yaml")
  if (!existsSync(config)) return yield* new UsageError({ message: `${run}: it is not a run (it has no config.yaml)` })
  const training = yield* loadTraining(Option.getOrElse(given.file, () => config))
  const checkpoint = yield* checkpointOf(given)
  const always: ReadonlyArray<Override> = [
    // That there is a validation at all, and one folder to keep.
    { path: "validation.everySteps", value: 1, source: "effect eval" },
    { path: "render.everySteps", value: given.render ? 1 : 0, source: "effect eval" },
    ...(Option.isNone(given.episodes)
      ? []
      : [{ path: "validation.episodes", value: given.episodes.value, source: "--episodes" }]),
  ]
  const overrides = [...(yield* yamlOverrides(config)), ...always, ...(yield* Effect.forEach(given.set, setting))]
  let played: ValidationOutcome | undefined
  const onPlayed = (outcome: ValidationOutcome): Effect.Effect<void> => Effect.sync(() => void (played = outcome))
  const result = yield* training.pipe(
    Effect.provideService(RunOptions, {
      overrides,
      source: config,
      name: "eval",
      evaluate: { checkpoint, keeps: given.render, onPlayed },
    }),
    Effect.provide(
      Layer.mergeAll(
        backend(given.backend),
        envPool,
        platform,
        Recorder.layerSilent,
        runStore({ resultsDir: run, resume: run, readOnly: true, indexed: given.render }),
      ),
    ),
  )
  if (played === undefined) return yield* new UsageError({ message: `${run}: nothing was played` })
  const found = evaluationOf(result, played)
  process.stdout.write(given.json ? `${JSON.stringify(found)}\n` : summary(found))
})

/** What `--json` prints: all of it is about the episodes that were played now, none of it about the training. */
const evaluationOf = (
  { runDir, steps, wallSeconds, stepsPerSecond }: RunResult,
  { episodes, meanReturn, stdReturn }: ValidationOutcome,
) => {
  const returns = episodes.map((episode) => episode.return)
  return {
    runDir,
    step: steps,
    episodes: episodes.length,
    meanReturn,
    stdReturn,
    minReturn: Math.min(...returns),
    maxReturn: Math.max(...returns),
    meanLength: episodes.reduce((sum, { length }) => sum + length, 0) / episodes.length,
    terminated: episodes.filter(({ terminated }) => terminated).length,
    truncated: episodes.filter(({ truncated }) => truncated).length,
    wallSeconds,
    stepsPerSecond,
  }
}

const summary = ({ meanReturn, stdReturn, episodes, step }: ReturnType<typeof evaluationOf>): string =>
  `${meanReturn.toFixed(2)} ± ${stdReturn.toFixed(2)} over ${episodes} episodes, by the policy of step ${step}\n`

/** Checkpoints are named by their steps. */
export const checkpointOf = Effect.fnUntraced(function* ({
  run,
  step,
}: Pick<Given, "run" | "step">): Effect.fn.Return<string, UsageError> {
  if (Option.isNone(step)) return "latest"
  const name = `step_${String(step.value).padStart(15, "0")}`
  const config = yield* readYaml(join(run, "config.yaml"))
  const checkpoint = isPlain(config) && isPlain(config.checkpoint) ? config.checkpoint : {}
  const folder = join(run, typeof checkpoint.dir === "string" ? checkpoint.dir : "checkpoints")
  if (existsSync(join(folder, name))) return name
  const names = yield* Effect.promise(() => readdir(folder).catch(() => []))
  const steps = names.flatMap((one) => /^step_0*(\d+)$/.exec(one)?.slice(1) ?? [])
  const known = steps.length === 0 ? "there are none" : `there are those of ${steps.join(", ")}`
  return yield* new UsageError({ message: `--step ${step.value}: ${run} has no such checkpoint; ${known}` })
})
