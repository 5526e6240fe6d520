/**
 * Finds and opens the language model that a path names: a model's folder, a folder with an adapter, a run of a trainer, or
 * one of the run's broadcasts or checkpoints. It changes no files, so the run may be in training.
 *
 * @example
 * ```ts
 * const place = yield* findModel("results/…/run_letters") // its newest weights
 * const { base, adapter } = yield* openModel(place)
 * ```
 */
import { Effect, type FileSystem, Path } from "effect"
import { decode, isPlain, toCamelCase } from "../../base/config/Config.ts"
import { exists, mostBytes, readBytes, readText } from "../../base/files/files.ts"
import { parsedJson } from "../../base/text/text.ts"
import { utf8 } from "../../base/text/utf8.ts"
import { readYamlText } from "../../base/config/yaml.ts"
import { modelFiles } from "../../base/formats/modelFiles.ts"
import * as Adapter from "../../decoder/huggingFace/Adapter.ts"
import * as LmDirectory from "../../decoder/huggingFace/LmDirectory.ts"
import { config as runConfig } from "../../run/Layout.ts"
import { onDisk } from "../../run/store/FileTree.ts"
import { type BaseModel, modelToSave, openBaseModel } from "../baseModel.ts"
import * as Layout from "../Layout.ts"
import { MultiRunConfig } from "../config/MultiRunConfig.ts"
import { parse } from "../config/OrchestratorConfig.ts"
import { makeRunFolders } from "../runs/runFolder.ts"
import { stableSteps } from "../runs/stepFolders.ts"
import { runStateIn } from "../trainer/checkpointParts.ts"
import { runsIn } from "../trainerFolder.ts"
import { readCheckpoint } from "./checkpoints.ts"
import { TrainerError } from "../TrainerError.ts"

/** The folder with the weights of a model, and what is known about it. */
export interface ModelPlace {
  /** The content of the folder: the files of a model, an adapter in peft's format, or a checkpoint of a run. */
  readonly holds: "model" | "adapter" | "checkpoint"
  readonly folder: string
  /** A short name: the name of the run or of the folder. */
  readonly name: string
  /** The step of the run after which the weights were written; null for a model that no run wrote. */
  readonly step: number | null
}

/** A model in memory. */
export interface SavedModel {
  /** The model, with all of its weights. */
  readonly base: BaseModel
  /** The adapter of the model; null for a model that is trained as a whole. */
  readonly adapter: Adapter.LoraAdapter | null
}

type Files = FileSystem.FileSystem | Path.Path

/**
 * Returns the files of a complete model in Hugging Face's layout. The weights of an adapter are merged into the base model.
 */
export const filesOfModel = (model: SavedModel) => LmDirectory.filesOf(modelToSave(mergedModel(model)))

/** Returns the model with its adapter merged into the weights. */
export const mergedModel = ({ base, adapter }: SavedModel): BaseModel =>
  adapter === null ? base : { ...base, ...Adapter.merge(base.decoder, base.weights, adapter) }

/**
 * Splits the path of a step's folder in a run, such as `run_letters/broadcast/step_600`, into the run's folder and the step.
 */
const inRun = Effect.fnUntraced(function* (folder: string) {
  const path = yield* Path.Path
  const [parent, step] = [path.dirname(folder), Layout.stepOf(path.basename(folder))]
  return { run: path.dirname(parent), kind: path.basename(parent), step }
})

/** Describes the model files in a folder; undefined if it has none. */
const placeIn = Effect.fnUntraced(function* (folder: string) {
  const path = yield* Path.Path
  const { run, kind, step } = yield* inRun(folder)
  const isStep = step !== undefined && [Layout.broadcasts, Layout.checkpoints, Layout.weights].includes(kind)
  const from = isStep ? { name: path.basename(run), step } : { name: path.basename(folder), step: null }
  const has = (file: string) => exists(path.join(folder, file))
  if (yield* has(modelFiles.adapterConfig)) return { holds: "adapter", folder, ...from } satisfies ModelPlace
  // A run also has a file `config.json`, but beside a `config.yaml`.
  if ((yield* has(modelFiles.config)) && !(yield* has(runConfig)))
    return { holds: "model", folder, ...from } satisfies ModelPlace
  const isCheckpoint = isStep && kind === Layout.checkpoints && (yield* has(Layout.inCheckpoint.weights))
  return isCheckpoint ? ({ holds: "checkpoint", folder, ...from } satisfies ModelPlace) : undefined
})

/**
 * Finds the weights that a path names. For a run, or a trainer with one run, these are the weights of `step`, by default the
 * newest.
 */
export const findModel = Effect.fnUntraced(function* (
  named: string,
  step?: number,
): Effect.fn.Return<ModelPlace, TrainerError, Files> {
  const path = yield* Path.Path
  const folder = path.resolve(named)
  if (!(yield* exists(folder))) return yield* TrainerError.at(named, "there is no such folder")
  const place = yield* placeIn(folder)
  if (place !== undefined) {
    if (step === undefined || step === place.step) return place
    return yield* TrainerError.at(named, `expected a run, to take its weights of step ${step}; found other files`)
  }
  const run = yield* onlyRunIn(named)
  return yield* stepOfRun(path.resolve(run), run, step)
})

/** Returns the path of the only run in a trainer's folder; the folder itself if it has no runs. */
export const onlyRunIn = Effect.fnUntraced(function* (named: string) {
  const path = yield* Path.Path
  const runs = (yield* runsIn(named)).map((run) => path.join(named, run))
  if (runs.length > 1) return yield* TrainerError.at(named, `it has several runs; name one of them: ${runs.join(", ")}`)
  return runs.length === 0 ? named : runs[0]
})

/**
 * Finds the weights of a step in a run's folder. Prefers a broadcast, then `weights/`; a checkpoint comes last, because
 * reading it needs the configs of the run and the trainer.
 */
const stepOfRun = Effect.fnUntraced(function* (run: string, named: string, wanted: number | undefined) {
  const path = yield* Path.Path
  const tree = yield* onDisk(run)
  const folders = new Map<number, string>()
  for (const kind of [Layout.checkpoints, Layout.weights, Layout.broadcasts]) {
    const steps = yield* Effect.mapError(stableSteps(tree, kind), ({ message }) => TrainerError.at(named, message))
    for (const step of steps) folders.set(step, path.join(run, kind, Layout.stepName(step)))
  }
  const steps = [...folders.keys()].sort((a, b) => a - b)
  if (steps.length === 0) {
    const { broadcasts, checkpoints } = Layout
    const files = `${modelFiles.config} of a model, ${modelFiles.adapterConfig} of an adapter`
    const problem = `expected ${files}, or a run with a complete ${broadcasts}/step_N or ${checkpoints}/step_N`
    return yield* TrainerError.at(named, problem)
  }
  const folder = folders.get(wanted ?? steps[steps.length - 1])
  if (folder === undefined)
    return yield* TrainerError.at(named, `it has no weights of step ${wanted}; expected one of ${steps.join(", ")}`)
  const place = yield* placeIn(folder)
  return place ?? (yield* TrainerError.at(folder, "expected the files of a model, an adapter or a checkpoint"))
})

/** Reads the model at a place. */
export const openModel = Effect.fnUntraced(function* ({
  holds,
  folder,
}: ModelPlace): Effect.fn.Return<SavedModel, { readonly message: string }, Files> {
  if (holds === "adapter") return yield* withAdapter(folder)
  if (holds === "checkpoint") return yield* ofCheckpoint(folder)
  return { base: yield* inFolder(folder), adapter: null }
})

/** Opens the model in a folder of Hugging Face's layout. */
const inFolder = (folder: string) => openBaseModel({ type: "folder", path: folder }, { baseDir: ".", seed: 0 })

/** Opens an adapter and its base model. */
const withAdapter = Effect.fnUntraced(function* (folder: string) {
  const base = yield* inFolder(yield* baseOf(folder))
  const files = yield* onDisk(".", { followsLinks: true })
  return { base, adapter: yield* Adapter.load(files, folder, base.decoder, { merging: true }) }
})

/**
 * Returns the folder of an adapter's base model: the folder that the adapter's config names or, if it does not exist (for
 * example because all folders were moved), the base model that the trainer has saved next to its runs.
 */
export const baseOf = Effect.fnUntraced(function* (folder: string) {
  const path = yield* Path.Path
  const file = path.join(folder, modelFiles.adapterConfig)
  const json = parsedJson(utf8.decode(yield* readBytes(file, mostBytes.config)))
  const named = isPlain(json) ? json.base_model_name_or_path : undefined
  const trainer = path.dirname((yield* inRun(path.resolve(folder))).run)
  const tried = [
    ...(typeof named === "string" ? [path.resolve(folder, named), path.resolve(named)] : []),
    path.join(trainer, Layout.base),
  ]
  for (const candidate of tried) if (yield* exists(path.join(candidate, modelFiles.config))) return candidate
  const problem =
    typeof named === "string" ? `its base model is ${named}, which is no folder here` : "it names no base model"
  return yield* TrainerError.at(file, problem)
})

/** Opens the model of a checkpoint. Its config comes from the folders of the run and the trainer. */
const ofCheckpoint = Effect.fnUntraced(function* (folder: string) {
  const path = yield* Path.Path
  const { run, step } = yield* inRun(folder)
  const { settings, file } = yield* trainerOf(run)
  const { trainer, model, seed } = settings
  // Adapters are merged into the weights as the files have them.
  const exact = model.type === "folder" ? { ...model, quantization: null } : model
  const opened = yield* openBaseModel(exact, { baseDir: path.dirname(file), seed })
  // Do not repair the folder: that would remove the temporary files of a checkpoint that the trainer is saving now.
  const tree = { ...(yield* onDisk(run)), repair: () => Effect.void }
  const { parts } = yield* readCheckpoint(tree, step ?? 0)
  const { weights } = yield* runStateIn(parts)
  if (trainer.lora === null) return { base: { ...opened, weights }, adapter: null }
  const saved = path.join(path.dirname(run), Layout.base)
  const hasSaved = model.type === "scratch" && (yield* exists(path.join(saved, modelFiles.config)))
  const base = hasSaved ? { ...opened, name: saved } : opened
  const { lora } = yield* configOf(run)
  const config = {
    rank: lora.rank ?? trainer.lora.rank,
    alpha: lora.alpha ?? trainer.lora.alpha,
    rankStabilised: false,
    targets: trainer.lora.targets,
    base: base.name,
  }
  return { base, adapter: Adapter.make(config, weights) }
})

/** Reads the trainer's settings from the config of the run or, if it has none, of the trainer's folder above it. */
const trainerOf = Effect.fnUntraced(function* (run: string) {
  const path = yield* Path.Path
  const own = path.join(run, runConfig)
  const file = (yield* exists(own)) ? own : path.join(path.dirname(run), runConfig)
  const { value } = yield* readYamlText(yield* readText(file, mostBytes.config), file)
  return { file, settings: yield* decode(MultiRunConfig, toCamelCase(value), { source: file }) }
})

/** Reads the config of a run: `configs/orch.yaml` or `configs/orch.toml` in its folder. */
export const configOf = Effect.fnUntraced(function* (run: string) {
  const config = yield* (yield* makeRunFolders).readConfig(run)
  if (config === undefined) {
    const files = Object.values(Layout.configFiles).join(" or ")
    return yield* TrainerError.at(run, `expected the run's config ${files}, found none`)
  }
  const { file, read } = config
  if (read._tag === "Failed") return yield* TrainerError.at(file, read.problem)
  return yield* parse(read.text, file)
})
