/**
 * Names the files of a multi-run trainer: the runs' folders (`run_*`) below one output folder, and the files in each
 * that the trainer reads or writes. Paths are relative to the run's folder, with `/`. No other file in `src/trainer/`
 * spells one of these names.
 *
 * @example
 * ```ts
 * broadcast(12) // "broadcast/step_12"
 * stepOf("step_12") // 12
 * stepOf("step_twelve") // undefined
 * ```
 */
import { checkpoints, inCheckpoint as inRunCheckpoint } from "../run/Layout.ts"

export { checkpoints, childNameOf as nameOf, childOf as folderOf, isChildName as isRunName } from "../run/Layout.ts"

/**
 * The folder of the base model that the runs' adapters need, if its weights were drawn at random. It is next to the runs'
 * folders.
 */
export const base = "base"

/** The folder, next to those of the runs, through which the ranks of a trainer exchange values while they work. */
export const ranks = "ranks"

/** The folder, next to those of the runs, that shows orchestrators on other machines that their trainer is alive. */
export const orchestrators = "orchestrators"

/* The orchestrator's config */

export const configs = "configs"
/** The files that can hold the config. A run has exactly one of them. */
export const configFiles = {
  toml: `${configs}/orch.toml`,
  yaml: `${configs}/orch.yaml`,
} as const
/** The file that describes why the config cannot be used. The trainer removes it once the config is valid. */
export const configProblem = `${configs}/config_validation_error.txt`

/* The trainer's own files in a run */

export const control = "control"
/** The file that describes why the run was evicted. While it exists, the run is not trained. */
export const evicted = `${control}/evicted.txt`
/**
 * The file from which the trainer recognises the folder. If a folder was deleted and made again, it has no token, or another
 * one.
 */
export const token = `${control}/token`
/** The file that names the process which plays the run's tasks, unless the trainer plays them. */
export const playerLock = `${control}/player.lock`
/** The file with the number of steps after which the run ended. It is written after the last validation. */
export const finished = `${control}/finished`
/** The file with the `resume_step` that the run has already gone back to. Later resumes use the newest checkpoint. */
export const resumed = `${control}/resumed`

/** The file with the id of the run's model on a server of Tinker's protocol, so that a resumed run can unload it. */
export const tinkerModel = `${control}/tinker_model`

/* The validations */

/** The folder into which the orchestrator writes validations, each in its own file. */
export const validations = "validations"
export const validationOf = (step: number): string => `${validations}/${stepName(step)}.json`

/** Returns the step of a validation's file name; undefined for other names. */
export const validationStepOf = (name: string): number | undefined =>
  name.endsWith(".json") ? stepOf(name.slice(0, -".json".length)) : undefined

/* Folders with a folder for each step */

export const weights = "weights"
/** The folder from which inference servers read the newest weights. */
export const broadcasts = "broadcast"
/** The folder into which the orchestrator writes samples for the trainer. */
export const rollouts = "rollouts"

/** Returns the name of a step's folder. */
export const stepName = (step: number): string => `step_${step}`

/** Returns the step of a folder's name; undefined for other names, such as `step_latest`. */
export const stepOf = (name: string): number | undefined => {
  const digits = /^step_(0|[1-9]\d*)$/.exec(name)?.[1]
  const step = Number(digits ?? NaN)
  return Number.isSafeInteger(step) ? step : undefined
}

export const checkpoint = (step: number): string => `${checkpoints}/${stepName(step)}`
export const weightsOf = (step: number): string => `${weights}/${stepName(step)}`
export const broadcast = (step: number): string => `${broadcasts}/${stepName(step)}`
export const rolloutsOf = (step: number): string => `${rollouts}/${stepName(step)}`

/** The empty file that is written last into a step's folder. A folder without it is incomplete. */
export const stable = "STABLE"

/** The files with the samples of a step. */
export const inRollouts = {
  /** The samples as flat arrays. */
  samples: "samples.safetensors",
  /** The ids of the samples, and the digest of the arrays. */
  batch: "batch.json",
  /** The metrics of the sampling, and transcripts of some episodes. */
  report: "report.json",
  /** The run's critic after it has learned from the step, if the run has one. */
  critic: "critic.safetensors",
} as const

/** The files in the folder of a checkpoint. */
export const inCheckpoint = {
  /** The run's progress: steps, tokens and samples. */
  progress: "progress.json",
  /** The adapter or all weights, and the moments of the optimiser. */
  weights: inRunCheckpoint.weights,
  moments: "moments.safetensors",
  /** The lengths of the run's scores and logs when the checkpoint was saved. */
  recorded: "recorded.json",
  /** The address of the run's weights on a server of Tinker's protocol. Then there are neither weights nor moments. */
  tinker: "tinker.json",
} as const
