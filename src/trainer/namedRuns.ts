/**
 * Writes the configs of the runs that a trainer's config names into the runs' folders, for a new trainer or a resumed one.
 */
import { Effect, Option } from "effect"
import { stringify } from "yaml"
import {
  ConfigError,
  type DecodeOptions,
  isPlain,
  type Plain,
  toCamelCase,
  toSnakeCase,
} from "../base/config/Config.ts"
import { readYamlText } from "../base/config/yaml.ts"
import { changedSetting, firstDifference } from "../base/config/difference.ts"
import * as RunLayout from "../run/Layout.ts"
import type { RunFiles } from "../run/store/RunFiles.ts"
import * as Layout from "./Layout.ts"
import type { MultiRunConfig } from "./config/MultiRunConfig.ts"
import { TrainerError } from "./TrainerError.ts"
import { parse as parseRun } from "./config/OrchestratorConfig.ts"
import { missingProblem, overrunProblem, startingProgress, withPendingResume } from "./runs/resume.ts"
import { makeRunFolders } from "./runs/runFolder.ts"

interface DecodedConfig {
  readonly settings: Pick<MultiRunConfig, "runs" | "seed">
  /** The config with all defaults. */
  readonly effective: Plain
}

/** Reads the config with which an earlier process trained; undefined for a new run. */
const configBefore = Effect.fnUntraced(function* (files: RunFiles) {
  if (!files.resumed || !(yield* files.exists(RunLayout.config))) return undefined
  const file = `${files.directory}/${RunLayout.config}`
  const text = yield* files.readText(RunLayout.config)
  const { value } = yield* Effect.mapError(readYamlText(text, file), TrainerError.from)
  const tree: unknown = toCamelCase(value)
  return isPlain(tree) ? tree : undefined
})

/**
 * Returns the settings on which the shapes, the first weights and their place depend, so that a resumed trainer cannot change
 * them. Configs of earlier versions have no `type`.
 */
const modelIn = (config: Plain) => {
  const { type = "local", lora } = isPlain(config.trainer) ? config.trainer : {}
  return { model: config.model, seed: config.seed, trainer: { type, lora } }
}

/** Fails if the model, the adapters or the seed of a resumed trainer were changed. */
export const refuseOtherModel = Effect.fnUntraced(function* ({ effective }: DecodedConfig, files: RunFiles) {
  const before = yield* configBefore(files)
  if (before === undefined) return
  const problem = changedSetting(modelIn(effective), modelIn(before))
  if (problem !== undefined)
    return yield* new TrainerError({ message: `${files.directory}/${RunLayout.config}: ${problem}` })
})

/** Returns the sections of the runs in a trainer's config, by name. */
const runsOf = (config: Plain | undefined): Plain => (isPlain(config?.runs) ? config.runs : {})

/**
 * Fails if the config of a resumed trainer ends a run before the step that the run has already reached, or takes it back to a
 * step without a checkpoint. This comes first, so that nothing is replaced in the folder of a finished trainer. Runs whose
 * settings in the trainer's config did not change are not checked: their folders keep their own configs.
 */
export const refuseUnreachable = Effect.fnUntraced(function* (
  { settings, effective, from }: DecodedConfig & { readonly from: DecodeOptions },
  files: RunFiles,
) {
  const before = yield* configBefore(files)
  if (before === undefined) return
  const folders = yield* makeRunFolders
  for (const [name, { maxSteps, resumeStep = -1 }] of Object.entries(settings.runs)) {
    if (typeof resumeStep !== "number") continue
    if (firstDifference(runsOf(effective)[name], runsOf(before)[name]) === undefined) continue
    const directory = folders.at(files.directory, Layout.folderOf(name))
    const pending = yield* withPendingResume(folders, directory, { resumeStep })
    const steps = yield* Effect.option(folders.completeCheckpoints(directory))
    const missing = Option.isSome(steps) ? missingProblem(steps.value, pending.resumeStep) : undefined
    if (missing !== undefined) return yield* ConfigError.at(from, `runs.${name}.resume_step`, missing)
    if (typeof maxSteps !== "number") continue
    // `Runs` reports other reasons why a run cannot begin.
    const progress = yield* Effect.option(startingProgress(folders, directory, pending))
    const problem = Option.getOrUndefined(Option.map(progress, (found) => overrunProblem(found, { maxSteps })))
    if (problem !== undefined) return yield* ConfigError.at(from, `runs.${name}.max_steps`, problem)
  }
})

/**
 * Writes the configs of the runs that the config names. A run without a seed gets the trainer's. In a resumed trainer, a
 * run's config is replaced only if its section of the trainer's config has changed. Otherwise the folder is left as it is,
 * because the user may have changed or deleted it. Returns a warning for each deleted folder.
 */
export const writeRuns = Effect.fnUntraced(function* ({ settings, effective }: DecodedConfig, files: RunFiles) {
  const before = yield* configBefore(files)
  const warnings: Array<string> = []
  for (const [name, config] of Object.entries(settings.runs)) {
    const folder = Layout.folderOf(name)
    const write = files.write(
      `${folder}/${Layout.configFiles.yaml}`,
      stringify(toSnakeCase({ seed: settings.seed, ...config })),
    )
    const isNew = before === undefined || !Object.hasOwn(runsOf(before), name)
    if (isNew) {
      if (!(yield* hasConfig(files, folder))) yield* write
    } else if (!(yield* hasConfig(files, folder))) {
      warnings.push(`${folder} was deleted, so this run is not trained; it begins again if its config is put back`)
    } else if (firstDifference(runsOf(effective)[name], runsOf(before)[name]) !== undefined) {
      yield* files.remove(`${folder}/${Layout.configFiles.toml}`)
      yield* write
    }
  }
  return warnings
})

const hasConfig = Effect.fnUntraced(function* (files: RunFiles, folder: string) {
  for (const file of Object.values(Layout.configFiles)) if (yield* files.exists(`${folder}/${file}`)) return true
  return false
})

/**
 * Tells whether all runs in the folder of a resumed trainer have reached their last step, so that nothing is left to train.
 */
export const isOver = Effect.fnUntraced(function* (files: RunFiles) {
  if (!files.resumed) return false
  const folders = yield* makeRunFolders
  const ids = yield* folders.list(files.directory)
  for (const id of ids) {
    const directory = folders.at(files.directory, id)
    const found = yield* folders.readConfig(directory)
    if (found === undefined) continue
    if (found.read._tag === "Failed") return false
    const config = yield* Effect.option(parseRun(found.read.text, found.file))
    if (config._tag === "None" || !(yield* folders.isFinished(directory, config.value.maxSteps))) return false
    const { resumeStep } = yield* withPendingResume(folders, directory, config.value)
    if (resumeStep !== -1) return false
  }
  return ids.length > 0
})
