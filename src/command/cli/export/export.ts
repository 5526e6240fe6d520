/**
 * Defines `effect export RUN --to FORMAT`, which writes a policy, a language model, a learning curve or episodes for other
 * programs.
 */
import { resolve } from "node:path"
import { Effect, Option } from "effect"
import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import { exists } from "../../../base/files/files.ts"
import { kindOf } from "../../../run/RunSpec.ts"
import { havingCheckpoint, ofKind, requireConfig, runFolder, trainings, type UsableRun } from "../findRun.ts"
import { withRunsOnDisk } from "../openRuns.ts"
import {
  argument,
  type FlagValues,
  lookupDir,
  number,
  runArgument,
  subcommand,
  text,
  texts,
  trustFlag,
} from "../flags.ts"
import { usageError, writeOut } from "../output/output.ts"
import { readYaml } from "../userCode/yamlFile.ts"
import { type CurveFormat, curveFormats, curvesFile } from "./curves.ts"
import { type EpisodeFormat, episodeFormats, runsOfAgents } from "./episodeFormats.ts"
import { requireNewFolder, writeFile, writeFolder } from "./folder.ts"
import type { ModelFormat } from "./languageModel.ts"
import { nameFor } from "./names.ts"
import { movieFile, type MovieFormat, movieFormats } from "./movie.ts"
import { policyFile, type PolicyFormat, policyFormats, workerFolder } from "./policy.ts"
import { type Tracker, trackers } from "./trackedRun.ts"

const modelFormats = ["adapter", "model"] as const satisfies ReadonlyArray<ModelFormat>

const flags = {
  runs: argument("run", `${runArgument}. For curves: one or several of these, or folders of several runs`).pipe(
    Argument.atLeast(1),
  ),
  resultsDir: lookupDir,
  to: Flag.Literals("to", [
    ...policyFormats,
    "worker",
    ...modelFormats,
    ...curveFormats,
    ...movieFormats,
    ...trackers,
    ...episodeFormats,
  ]).pipe(
    Flag.withDescription(
      "The format (required): onnx, h5 (for RLtools), h (C and C++, for any program) or safetensors for the policy; worker for the policy in a folder that an edge worker is deployed from; adapter (peft) or model (Hugging Face, with the adapter's weights added) for a language model; csv, svg, png or pdf for learning curves, one for each argument or for each group of seeds in it; gif or mp4 (by ffmpeg) for episodes as a moving picture; mlflow to send the run to the server in MLFLOW_TRACKING_URI; wandb for a folder that wandb sync uploads to Weights & Biases; atif for a folder with the episodes of a language-model agent as trajectories, inspect for one with logs of Inspect",
    ),
  ),
  out: text(
    "out",
    "path",
    "The file to write, or the folder of a worker, a language model, wandb, atif or inspect (default: named after the run)",
  ),
  label: texts("label", "name", "With curves: the name of a curve in the legend, once for each in their order"),
  title: text("title", "text", "With curves: the title of the figure (default: the name of the runs)"),
  prefix: text("prefix", "name", "With h: the beginning of all names in the header (default: effect_policy)"),
  step: number("step", "countOrNone", "The checkpoint of this step (default: the newest)"),
  episodes: number(
    "episodes",
    "episodes",
    "How many episodes gif and mp4 show, the first ones of the validation (default: 1)",
  ),
  speed: number(
    "speed",
    "rounds",
    "How many env steps gif and mp4 show in a second (default: render.speed of the run)",
  ),
  file: text(
    "file",
    "file",
    "The module that made the run, if its env, algorithm or demonstrations are your own; onnx, h and safetensors need none",
  ),
  trust: trustFlag,
}

export const exporting = subcommand(
  "export",
  {
    description:
      "Write a run's policy, its language model or episodes, or the learning curve of one or several runs, to a file or " +
      "folder; or the whole run for MLflow or Weights & Biases.",
    examples: {
      "effect export latest --to onnx --out policy.onnx": "The policy for any ONNX Runtime",
      "effect export ppo/0001 --to h": "The policy as one header of C without dependencies",
      "effect export latest --to worker --out cartpole": "The policy as an edge worker: npx wrangler deploy",
      "effect export results/…/run_letters --to model": "A trainer's language model in a folder of its own",
      "effect export results/…/CartPole-v1_ppo --to svg": "The learning curve over all seeds",
      "effect export A B --label PPO --label A2C --to png": "The curves of two folders of seeds in one figure",
      "effect export latest --to gif --episodes 3": "Three episodes as a moving picture",
      "effect export latest --to mlflow": "Settings, metrics and files to a server of MLflow",
      "effect export latest --to wandb": "The same as a folder: wandb sync uploads it",
      "effect export latest --to atif": "An agent's episodes as trajectories, for Harbor's tools",
      "effect export latest --to inspect": "The same as logs: inspect view --log-dir FOLDER",
    },
  },
  flags,
  Effect.fnUntraced(function* (input) {
    const { to } = input
    if (!isCurve(to) && input.runs.length > 1) {
      return yield* usageError(`--to ${to}: expected one run, found ${input.runs.length}`)
    }
    if (!isCurve(to)) {
      const flag = input.label.length > 0 ? "label" : Option.isSome(input.title) ? "title" : undefined
      if (flag !== undefined) return yield* usageError(`--${flag} only works with --to ${curveFormats.join(", ")}`)
    }
    if (to !== "h" && Option.isSome(input.prefix)) return yield* usageError("--prefix only works with --to h")
    if (!isMovie(to)) {
      const flag = (["episodes", "speed"] as const).find((name) => Option.isSome(input[name]))
      if (flag !== undefined) return yield* usageError(`--${flag} only works with --to gif and mp4`)
    }
    const usable = usableFor(to)
    const options = { usable, step: input.step, curves: isCurve(to) }
    yield* withRunsOnDisk(input, options, (named) => exportRuns({ ...input, ...named }, usable))
  }),
)

/** Writes the file or the folder from runs that are on disk. */
const exportRuns = Effect.fnUntraced(function* (input: FlagValues<typeof flags>, usable: UsableRun) {
  const { to } = input
  if (isModel(to)) {
    const from = yield* modelFolder(input.runs[0], [input.resultsDir])
    const { step, out } = input
    // These modules load models, so they are loaded only when they are needed.
    const { exportModel } = yield* Effect.promise(() => import("./languageModel.ts"))
    return yield* writeOut(`${yield* exportModel({ from, format: to, step, out })}\n`)
  }
  if (isCurve(to)) {
    const { contents, name } = yield* curvesFile({ ...input, to })
    const out = Option.getOrElse(input.out, () => `${name}.${to}`)
    yield* writeFile(out, contents)
    return yield* writeOut(`${out}\n`)
  }
  const runs = yield* Effect.forEach(input.runs, (typed) => runFolder(typed, { folders: [input.resultsDir], usable }))
  if (to === "mlflow") {
    if (Option.isSome(input.out)) return yield* usageError("--out does not work with --to mlflow, which writes no file")
    const { toMlflow } = yield* Effect.promise(() => import("./mlflow.ts"))
    return yield* writeOut(`${yield* toMlflow(resolve(runs[0]), input.step)}\n`)
  }
  if (to === "wandb") {
    const { toWandb } = yield* Effect.promise(() => import("./wandb.ts"))
    return yield* writeOut(`${yield* toWandb(resolve(runs[0]), input)}\n`)
  }
  if (isEpisodes(to)) {
    // The code of agents is loaded only when it is needed.
    const { exportEpisodes } = yield* Effect.promise(() => import("./episodes.ts"))
    return yield* writeOut(`${yield* exportEpisodes(runs[0], { to, out: input.out })}\n`)
  }
  if (to === "worker") {
    const run = yield* runOfPolicy(runs[0], to)
    const out = Option.getOrElse(input.out, () => `${nameFor(run)}-worker`)
    yield* requireNewFolder(out)
    yield* writeFolder(out, yield* workerFolder({ ...input, run }, nameFor(run)))
    return yield* writeOut(`${out}\n`)
  }
  const contents = isMovie(to)
    ? yield* movieFile({ ...input, run: yield* runOfPolicy(runs[0], to) }, input, to)
    : yield* policyFile({ ...input, run: yield* runOfPolicy(runs[0], to) }, to, Option.getOrUndefined(input.prefix))
  const out = Option.getOrElse(input.out, () => `${nameFor(runs[0])}.${to}`)
  yield* writeFile(out, contents)
  yield* writeOut(`${out}\n`)
})

type Format = CurveFormat | EpisodeFormat | ModelFormat | MovieFormat | PolicyFormat | Tracker | "worker"

const isCurve = (format: Format): format is CurveFormat => curveFormats.some((curve) => curve === format)
const isMovie = (format: Format): format is MovieFormat => movieFormats.some((movie) => movie === format)
const isTracker = (format: Format): format is Tracker => trackers.some((tracker) => tracker === format)
const isEpisodes = (format: Format): format is EpisodeFormat => episodeFormats.some((one) => one === format)
const isModel = (format: Format): format is ModelFormat => modelFormats.some((model) => model === format)

const trainedModels = ofKind("a run of a language model's trainer", "multirun")

/** Selects the runs that have something in a format. */
const usableFor = (to: Format): UsableRun => {
  if (isModel(to)) return trainedModels
  if (isEpisodes(to)) return runsOfAgents
  return isCurve(to) || isTracker(to) ? trainings : havingCheckpoint(ofKind("a training with a policy", "training"))
}

/**
 * Returns the folder that the user named by its path; if it is no such path, the folder of the trainer's run with that name.
 */
const modelFolder = Effect.fnUntraced(function* (named: string, folders: ReadonlyArray<string>) {
  if (yield* exists(named)) return named
  return yield* runFolder(named, { folders, usable: trainedModels })
})

/** Returns the folder of the run. Fails if the run has no policy. */
const runOfPolicy = Effect.fnUntraced(function* (folder: string, format: MovieFormat | PolicyFormat | "worker") {
  const run = resolve(folder)
  const kind = kindOf(yield* readYaml(yield* requireConfig(run)))
  if (kind === "multirun") {
    const hint = `--to ${modelFormats.join(" or ")} exports it`
    return yield* usageError(`--to ${format}: ${run} trains a language model, which is no policy; ${hint}`)
  }
  if (kind !== "training") {
    const hint = `--to ${curveFormats.join(", ")} export its learning curve`
    return yield* usageError(`--to ${format}: ${run} is a run of a language-model agent, which has no policy; ${hint}`)
  }
  return run
})
