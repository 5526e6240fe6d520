import { existsSync } from "node:fs"
import { readdir } from "node:fs/promises"
import { basename, extname, join } from "node:path"
import { Cause, Effect, Exit, Layer, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import type { Override } from "../config/Config.ts"
import { fromPath } from "../experiment/identifier.ts"
import { backend, backendNames, envPool, recorder, runStore, terminalProgress } from "../node.ts"
import { csv } from "../record/csv.ts"
import { telemetry } from "../record/telemetry.ts"
import { RunOptions } from "../train/RunOptions.ts"
import type { RunResult } from "../train/RunResult.ts"
import { loadTraining, yamlOverrides } from "./loadTraining.ts"
import { setting } from "./setting.ts"
import { parseSeeds, runSeeds, timeVariable } from "./seeds.ts"
import { UsageError } from "./UsageError.ts"

const flags = {
  file: Argument.String("file").pipe(
    Argument.withDescription("A module whose default export is Train.run({ … }), or a config in YAML"),
  ),
  config: Flag.String("config").pipe(
    Flag.optional,
    Flag.withDescription("Settings from a YAML file, laid over those of the code"),
  ),
  set: Flag.String("set").pipe(
    Flag.withMetavar("key.path=value"),
    Flag.atLeast(0),
    Flag.withDescription("One setting, laid over all others; may be repeated"),
  ),
  seed: Flag.Int("seed").pipe(Flag.optional, Flag.withDescription("Where all randomness comes from")),
  seeds: Flag.String("seeds").pipe(
    Flag.withMetavar("1..10"),
    Flag.optional,
    Flag.withDescription("Several trainings side by side, one a seed, and their IQM with a bootstrap interval"),
  ),
  jobs: Flag.Int("jobs").pipe(
    Flag.optional,
    Flag.withDescription("With --seeds: how many at a time; as many as there are cores when left out"),
  ),
  totalSteps: Flag.Int("total-steps").pipe(Flag.optional, Flag.withDescription("Env steps to train for")),
  backend: Flag.Literals("backend", backendNames).pipe(
    Flag.withDefault("auto" as const),
    Flag.withDescription("What computes; auto picks what is fastest for each graph, and run.log says which"),
  ),
  resultsDir: Flag.String("results-dir").pipe(Flag.withDefault("results"), Flag.withDescription("Where runs are kept")),
  name: Flag.String("name").pipe(Flag.optional, Flag.withDescription("The run's name; the file's when left out")),
  resume: Flag.String("resume").pipe(
    Flag.withMetavar("dir|latest"),
    Flag.optional,
    Flag.withDescription(
      "Go on with a run from its newest checkpoint; latest is the newest unfinished run of this name",
    ),
  ),
  csv: Flag.Boolean("csv").pipe(
    Flag.withDefault(false),
    Flag.withDescription("Every number of the run in progress.csv, too, a line each: step, name, value"),
  ),
  quiet: Flag.Boolean("quiet").pipe(Flag.withDefault(false), Flag.withDescription("No progress and no summary")),
  json: Flag.Boolean("json").pipe(
    Flag.withDefault(false),
    Flag.withDescription("The result as one line of JSON on stdout"),
  ),
}

export const run = Command.make("run", flags, (given) => execute(given)).pipe(
  Command.withDescription("Train: run the training that a file describes, and keep everything about it in a folder"),
  Command.withShortDescription("Train"),
  Command.withExamples([
    { command: "effect run examples/cartpole.ts --seed 1", description: "Train, and watch it" },
    {
      command: "effect run examples/cartpole.ts --set algorithm.learning_rate=1e-3 --total-steps 50000",
      description: "With other settings",
    },
    {
      command: "effect run examples/cartpole.ts --seeds 1..10",
      description: "Ten seeds, and how sure one can be of their mean",
    },
    {
      command: "effect run examples/cartpole.ts --resume latest",
      description: "Go on where Ctrl-C or a crash left it",
    },
    {
      command: "effect run results/…/config.yaml --json | jq .validation",
      description: "Repeat a run from its own config",
    },
  ]),
)

type Given = Command.Command.Config.Infer<typeof flags>

const execute = (given: Given): Effect.Effect<void, CommandError> =>
  Option.match(given.seeds, { onNone: () => trainOnce(given), onSome: (seeds) => trainEach(given, seeds) })

/** With each of several seeds; one that fails doesn't stop the others, and is reported at the end. */
const trainEach = Effect.fnUntraced(function* (given: Given, text: string): Effect.fn.Return<void, CommandError> {
  const conflict = Option.isSome(given.seed) ? "--seed" : Option.isSome(given.resume) ? "--resume" : undefined
  if (conflict !== undefined) return yield* new UsageError({ message: `--seeds and ${conflict} don't go together` })
  if (Option.isSome(given.jobs) && given.jobs.value < 1) {
    return yield* new UsageError({ message: `--jobs ${given.jobs.value}: expected at least 1` })
  }
  const { metrics, failed } = yield* runSeeds({
    seeds: yield* parseSeeds(text),
    jobs: Option.getOrUndefined(given.jobs),
    args: argumentsOf(given),
    report: (line) => Effect.sync(() => void (given.quiet || process.stderr.write(`${line}\n`))),
  })
  if (given.json) process.stdout.write(`${JSON.stringify(metrics)}\n`)
  else if (metrics.score !== null) {
    const { iqm, low, high, mean, std, runs } = metrics.score
    const digits = (value: number): string => value.toFixed(1)
    process.stdout.write(
      `IQM ${digits(iqm)} (95 %: ${digits(low)} to ${digits(high)}), mean ${digits(mean)} ± ${digits(std)} over ${runs} seeds\n`,
    )
  }
  if (failed > 0) return yield* new SeedsFailed({ message: `${failed} of ${metrics.seeds.length} seeds failed` })
})

/** What was given, as one seed's training is given it. */
const argumentsOf = (given: Given): ReadonlyArray<string> => {
  const flag = (name: string, value: Option.Option<unknown>): ReadonlyArray<string> =>
    Option.isNone(value) ? [] : [`--${name}`, String(value.value)]
  return [
    given.file,
    ...flag("config", given.config),
    ...given.set.flatMap((setting) => ["--set", setting]),
    ...flag("total-steps", given.totalSteps),
    ...flag("backend", Option.some(given.backend)),
    ...flag("results-dir", Option.some(given.resultsDir)),
    ...flag("name", given.name),
    ...(given.csv ? ["--csv"] : []),
  ]
}

const trainOnce = Effect.fnUntraced(function* (given: Given): Effect.fn.Return<void, CommandError> {
  const name = Option.getOrElse(given.name, () => basename(given.file, extname(given.file)))
  const training = yield* loadTraining(given.file)
  const resume = yield* runToResume(given, name)
  const overrides = yield* overridesOf(given, resume)

  let directory = resume
  // What OpenTelemetry's own tools call it.
  const otlp = process.env.OTEL_EXPORTER_OTLP_ENDPOINT
  const commonTime = process.env[timeVariable]
  const layers = Layer.mergeAll(
    backend(given.backend),
    envPool,
    recorder(
      ...(given.csv ? [csv] : []),
      ...(otlp === undefined ? [] : [telemetry]),
      ...(given.quiet ? [] : [terminalProgress]),
    ),
    runStore({
      resultsDir: given.resultsDir,
      ...(commonTime === undefined ? {} : { time: new Date(commonTime) }),
      onOpen: (opened) => Effect.sync(() => void (directory = opened)),
      ...(resume === undefined ? {} : { resume }),
    }),
  )
  const result = yield* training.pipe(
    Effect.provideService(RunOptions, { overrides, source: given.file, name }),
    Effect.provide(otlp === undefined ? layers : Layer.merge(layers, otlpLayer(otlp))),
    Effect.onExit((exit) =>
      Effect.sync(() => {
        if (Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause) && directory !== undefined) {
          process.stderr.write(`\ninterrupted; to go on: ${resumeCommand(given, directory)}\n`)
        }
      }),
    ),
  )
  if (given.json) process.stdout.write(`${JSON.stringify(result)}\n`)
  else if (!given.quiet) process.stdout.write(summary(result))
})

/** Loaded only when it is asked for. */
const otlpLayer = (baseUrl: string) =>
  Layer.unwrap(
    Effect.map(
      Effect.promise(() => import("./otlp.ts")),
      ({ layer }) => layer(baseUrl),
    ),
  )

/** Some of several seeds failed; what was wrong with each has been said. */
class SeedsFailed extends Schema.TaggedError<SeedsFailed>()("SeedsFailed", { message: Schema.String }) {}

type CommandError = SeedsFailed | UsageError | Effect.Error<Effect.Success<ReturnType<typeof loadTraining>>>

/** The backend is part of what makes a run the same to the bit. */
const resumeCommand = ({ file, backend: name, resultsDir }: Given, directory: string): string => {
  const words = ["npx effect run", file, "--resume", directory]
  if (name !== "auto") words.push("--backend", name)
  if (resultsDir !== "results") words.push("--results-dir", resultsDir)
  return words.map((word, index) => (index > 0 && /[^\w./:=-]/.test(word) ? `'${word}'` : word)).join(" ")
}

const summary = (result: RunResult): string => {
  const { validation, meanReturn } = result
  const score =
    validation === null
      ? meanReturn === null
        ? "no episode ended"
        : `mean return ${meanReturn.toFixed(1)} over the last episodes`
      : `validation ${validation.meanReturn.toFixed(1)} ± ${validation.stdReturn.toFixed(1)} over ${validation.episodes} episodes`
  return [
    `${result.steps} steps, ${result.episodes} episodes in ${result.wallSeconds.toFixed(1)} s (${Math.round(result.stepsPerSecond)} steps/s)`,
    score,
    `digest ${result.digest.slice(0, 16)}`,
    result.runDir,
    "",
  ].join("\n")
}

/** Later ones win: the resumed run's own config, --config, the flags, --set. */
const overridesOf = Effect.fnUntraced(function* (
  given: Given,
  resume: string | undefined,
): Effect.fn.Return<ReadonlyArray<Override>, UsageError> {
  const files = [resume === undefined ? undefined : join(resume, "config.yaml"), Option.getOrUndefined(given.config)]
  const fromFiles: Array<Override> = []
  for (const file of files) if (file !== undefined) fromFiles.push(...(yield* yamlOverrides(file)))
  const flag = (path: string, source: string, value: Option.Option<unknown>): ReadonlyArray<Override> =>
    Option.isNone(value) ? [] : [{ path, source, value: value.value }]
  return [
    ...fromFiles,
    ...flag("seed", "--seed", given.seed),
    ...flag("totalSteps", "--total-steps", given.totalSteps),
    ...flag("name", "--name", given.name),
    ...(yield* Effect.forEach(given.set, setting)),
  ]
})

const runToResume = Effect.fnUntraced(function* (
  given: Given,
  name: string,
): Effect.fn.Return<string | undefined, UsageError> {
  if (Option.isNone(given.resume)) return undefined
  const wanted = given.resume.value
  if (wanted !== "latest") {
    if (!existsSync(join(wanted, "config.yaml"))) {
      return yield* new UsageError({ message: `--resume ${wanted}: it is not a run (it has no config.yaml)` })
    }
    return wanted
  }
  const unfinished = yield* Effect.promise(() => unfinishedRuns(given.resultsDir))
  const newest = unfinished.find((run) => fromPath(run)?.name === name)
  if (newest !== undefined) return newest
  const [other] = unfinished
  const hint = other === undefined ? "" : `; the newest unfinished one is ${other}`
  const message = `--resume latest: there is no unfinished run named ${name} in ${given.resultsDir}${hint}`
  return yield* new UsageError({ message })
})

/** The newest first. */
const unfinishedRuns = async (resultsDir: string): Promise<ReadonlyArray<string>> => {
  const names = async (directory: string): Promise<ReadonlyArray<string>> =>
    (await readdir(directory).catch(() => []))
      .sort()
      .reverse()
      .map((entry) => join(directory, entry))
  const found: Array<string> = []
  for (const time of await names(resultsDir))
    for (const heading of await names(time))
      for (const config of await names(heading))
        for (const run of await names(config)) {
          if (existsSync(join(run, "config.yaml")) && !existsSync(join(run, "return.json"))) found.push(run)
        }
  return found
}
