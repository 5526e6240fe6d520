import { existsSync } from "node:fs"
import { readdir, writeFile } from "node:fs/promises"
import { basename, join, resolve, sep } from "node:path"
import { Effect, Layer, Option } from "effect"
import { mostBytes } from "../config/files.ts"
import { readFileWithin, readTextWithin } from "../config/files-node.ts"
import { Argument, Command, Flag } from "effect/cli"
import { messageOf } from "../config/text.ts"
import { type Curve, curveCsv, curveSvg } from "../export/curveFiles.ts"
import { decodeReturnFile } from "../run/evaluation.ts"
import { fromPath } from "../run/identifier.ts"
import { RunStore } from "../run/store/RunStore.ts"
import { aggregateCurves } from "../statistics/statistics.ts"
import { backend, envPool, platform } from "../node.ts"
import { Recorder } from "../run/record/Recorder.ts"
import { validate } from "../run/ValidationRequest.ts"
import { RunOptions } from "../train/RunOptions.ts"
import { kindOf } from "../run/RunSpec.ts"
import { checkpointOf } from "./evaluate/evaluateRun.ts"
import { lookupDir, ofKind, runArgument, runFolder } from "./findRun.ts"
import { loadTrainingOf, readYaml, yamlOverrides } from "./userCode/loadTraining.ts"
import { writeOut } from "./output/output.ts"
import { UsageError } from "./UsageError.ts"
import * as Layout from "../run/Layout.ts"
import { utf8 } from "../config/utf8.ts"

const policyFormats = ["onnx", "h5", "h", "safetensors"] as const
const curveFormats = ["csv", "svg"] as const

const flags = {
  runs: Argument.String("run").pipe(
    Argument.withDescription(`${runArgument}. For curves: one or several of these, or folders of several seeds`),
    Argument.atLeast(1),
  ),
  resultsDir: lookupDir,
  to: Flag.Literals("to", [...policyFormats, ...curveFormats]).pipe(
    Flag.withDescription(
      "The format (required): onnx, h5 (for RLtools), h (C++) or safetensors for the policy; csv or svg for the learning curve (rsvg-convert or a browser makes a PNG from the SVG)",
    ),
  ),
  out: Flag.String("out").pipe(
    Flag.withMetavar("file"),
    Flag.optional,
    Flag.withDescription("The file to write (default: named after the run)"),
  ),
  step: Flag.Int("step").pipe(Flag.optional, Flag.withDescription("The checkpoint of this step (default: the newest)")),
  file: Flag.String("file").pipe(
    Flag.withMetavar("file"),
    Flag.optional,
    Flag.withDescription("The module that made the run, if its env, algorithm or demonstrations are your own"),
  ),
}

/** `effect export RUN --to FORMAT`: a policy or a learning curve for use elsewhere. */
export const exporting = Command.make("export", flags, (given) => execute(given)).pipe(
  Command.withDescription("Write a run's policy, or the learning curve of one or several runs, to a file."),
  Command.withShortDescription("Write a policy or a learning curve to a file"),
  Command.withExamples([
    {
      command: "effect export latest --to onnx --out policy.onnx",
      description: "The policy for any ONNX Runtime",
    },
    {
      command: "effect export ppo/0001 --to h",
      description: "The policy as one C++ header without dependencies",
    },
    { command: "effect export results/…/CartPole-v1_ppo --to svg", description: "The learning curve over all seeds" },
  ]),
)

type Given = Command.Command.Config.Infer<typeof flags>
const withPolicy = ofKind("a training with a policy", "training")
const trainings = ofKind("a training", "training", "agents")

type ExportError = UsageError | Effect.Error<Effect.Success<ReturnType<typeof loadTrainingOf>>>

const isCurve = (format: Given["to"]): format is (typeof curveFormats)[number] =>
  curveFormats.some((known) => known === format)

const execute = Effect.fnUntraced(function* (given: Given): Effect.fn.Return<void, ExportError> {
  const { to } = given
  if (!isCurve(to) && given.runs.length > 1) {
    return yield* new UsageError({ message: `--to ${to}: expected one run, found ${given.runs.length}` })
  }
  const usable = isCurve(to) ? trainings : withPolicy
  const runs = yield* Effect.forEach(given.runs, (typed) =>
    isCurve(to) && existsSync(typed)
      ? Effect.succeed(typed)
      : runFolder(typed, { folders: [given.resultsDir], usable }),
  )
  const contents = isCurve(to) ? yield* curveFile(runs, to) : yield* policyFile(given, runs[0], to)
  const out = Option.getOrElse(given.out, () => `${nameFor(runs[0])}.${to}`)
  yield* Effect.tryPromise({
    try: () => writeFile(out, contents),
    catch: (error) => new UsageError({ message: `--out ${out}: ${messageOf(error)}` }),
  })
  yield* writeOut(`${out}\n`)
})

const nameFor = (run: string): string => {
  const found = fromPath(run)
  return found === undefined
    ? basename(run)
    : [found.name, ...Object.values(found.population), found.seed].join("-").replace(/[^\w.-]+/g, "-")
}

/** The evaluation of a checkpoint writes its policy in every format; here into memory, of which one file is taken. */
const policyFile = Effect.fnUntraced(function* (
  given: Given,
  place: string,
  format: (typeof policyFormats)[number],
): Effect.fn.Return<Uint8Array, ExportError> {
  const run = resolve(place)
  const config = join(run, Layout.config)
  if (!existsSync(config)) return yield* new UsageError({ message: `${run}: it is not a run (it has no config.yaml)` })
  const said = yield* readYaml(config)
  if (kindOf(said) !== "training") {
    const hint = `--to ${curveFormats.join(", ")} export its learning curve`
    return yield* new UsageError({
      message: `--to ${format}: ${run} is of a language-model agent, which has no policy; ${hint}`,
    })
  }
  const training = yield* loadTrainingOf(run, given.file)
  const checkpoint = yield* checkpointOf({ run, step: given.step })
  const overrides = [
    ...(yield* yamlOverrides(config)),
    { path: "validation.everySteps", value: 1, source: "effect export" },
    { path: "validation.episodes", value: 1, source: "effect export" },
    { path: "validation.envs", value: [], source: "effect export" },
    { path: "render.everySteps", value: 1, source: "effect export" },
  ]
  const store = RunStore.memory({ files: yield* Effect.promise(() => filesToLoad(run)), resume: run })
  yield* validate(training, { checkpoint, writesStepFolder: true }).pipe(
    Effect.provideService(RunOptions, { overrides, source: config, name: "export" }),
    Effect.provide(Layer.mergeAll(backend("auto"), envPool, platform, Recorder.layerSilent, store.layer)),
  )
  const found = [...store.files].find(([path]) => path.endsWith(`/checkpoint.${format}`))
  if (found !== undefined) return found[1]
  return yield* new UsageError({
    message: `--to ${format} only works with policies of dense layers alone, and that of ${run} has others; use --to onnx or safetensors`,
  })
})

/** What a training is restored from, apart from the arrays of its learner. */
const toLoad: ReadonlySet<string> = new Set([
  Layout.config,
  Layout.latestPointer,
  Layout.inCheckpoint.manifest,
  Layout.inCheckpoint.runtime,
  Layout.inCheckpoint.policy,
])

/** The run's config and checkpoints, by their paths. */
const filesToLoad = async (run: string): Promise<Map<string, Uint8Array>> => {
  const files = new Map<string, Uint8Array>()
  const names = (await readdir(run, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile())
  for (const entry of names) {
    const path = join(entry.parentPath, entry.name)
    if (path.includes(`${sep}${Layout.steps}${sep}`)) continue
    if (toLoad.has(entry.name) || Layout.arraysOf(entry.name) !== undefined) {
      files.set(path, await readFileWithin(path, mostBytes.binary))
    }
  }
  return files
}

const curveFile = Effect.fnUntraced(function* (
  given: ReadonlyArray<string>,
  format: (typeof curveFormats)[number],
): Effect.fn.Return<Uint8Array, UsageError> {
  const runs = (yield* Effect.forEach(given, (folder) => Effect.promise(() => runsIn(folder)))).flat()
  if (runs.length === 0) {
    return yield* new UsageError({ message: `${given.join(", ")}: expected a finished run, found no return.json` })
  }
  const curves = yield* Effect.forEach(runs, (run) =>
    Effect.tryPromise(() => readTextWithin(join(run, Layout.returns), mostBytes.text)).pipe(
      Effect.flatMap(decodeReturnFile),
      Effect.map((records) => records.map(({ step, returns_mean: value }) => ({ step, value }))),
      Effect.mapError((error) => new UsageError({ message: `${run}/return.json: ${messageOf(error)}` })),
    ),
  )
  const curve: Curve = aggregateCurves(curves)
  if (curve.length === 0) {
    return yield* new UsageError({ message: `${given.join(", ")}: the runs have no validation at the same step` })
  }
  const title = nameFor(given[0])
  return utf8.encode(format === "csv" ? curveCsv(curve) : curveSvg(title, curve))
})

/** The folder itself, or the runs in it. */
const runsIn = async (folder: string): Promise<ReadonlyArray<string>> => {
  if (existsSync(join(folder, Layout.returns))) return [folder]
  const names = await readdir(folder).catch(() => [])
  return names
    .sort()
    .map((name) => join(folder, name))
    .filter((path) => existsSync(join(path, Layout.returns)))
}
