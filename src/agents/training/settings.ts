/** Checks the settings of a training of agents. It reads only the names of files in folders. */
import { Effect, Path } from "effect"
import { ConfigError, type DecodeOptions, placeOf } from "../../base/config/Config.ts"
import { namesIn } from "../../base/files/files.ts"
import { permit } from "../../base/trust/Trust.ts"
import type { TaskSet } from "../task/TaskSet.ts"
import * as Layout from "../../run/Layout.ts"
import type { RunSettings } from "./RuntimeConfig.ts"

/** The settings that can place files outside the run's folder, where another run may already have files. */
const places = ["scoresPath", "checkpointDir"] as const

/** Fails if settings contradict each other or the data sets. Returns warnings about settings that have no effect. */
export const checked = Effect.fnUntraced(function* (
  { runtime }: RunSettings,
  train: TaskSet | null,
  validation: TaskSet | null,
  from: DecodeOptions,
) {
  const refuse = (key: string, problem: string) => ConfigError.at(from, key, problem)
  const validates = (runtime.validationFreq ?? 0) > 0 || runtime.runValidationAtStart
  if (runtime.checkpointStrategy === "top_k_val" && (validation === null || !validates)) {
    const missing = validation === null ? "a validation_dataset" : "a validation_freq or run_validation_at_start"
    const problem = `top_k_val keeps the best by their validations, so it needs ${missing}`
    return yield* refuse("runtime.checkpoint_strategy", problem)
  }
  for (const key of places) {
    const path = runtime[key]
    if (path === null || !path.split("/").includes("..")) continue
    return yield* refuse(`runtime.${key}`, `expected an absolute path, or a relative one without .., found ${path}`)
  }
  const size = train?.size ?? 0
  if (runtime.startEpisodeIndex > size) {
    const problem = `expected at most ${size}, the size of the training data set, found ${runtime.startEpisodeIndex}`
    return yield* refuse("runtime.start_episode_index", problem)
  }
  if (train === null && (validation === null || !validates)) {
    return yield* refuse("train_dataset", "expected training tasks or a validation, found neither")
  }
  return validates && validation === null ? ["validation_freq has no effect: there is no validation_dataset"] : []
})

/** Returns the folders of scores and of checkpoints, which are absolute if they lie outside of the run's folder. */
const foldersOf = ({ runtime }: RunSettings, paths: Path.Path) => ({
  scoresPath: paths.dirname(paths.join(Layout.scoresRoot(runtime.scoresPath), Layout.trainScores)),
  checkpointDir: runtime.checkpointDir ?? ".",
})

/**
 * Asks the service `Trust` about folders for scores or checkpoints outside of the run's folder: a config of somebody else could
 * name the folder of another run, whose files a resumed run would truncate and delete.
 */
export const permitPlaces = Effect.fnUntraced(function* (settings: RunSettings, from: DecodeOptions) {
  const paths = yield* Path.Path
  const folders = foldersOf(settings, paths)
  for (const key of places) {
    if (!paths.isAbsolute(folders[key])) continue
    const request = { _tag: "Writing", place: placeOf(from, `runtime.${key}`), folder: folders[key] } as const
    yield* Effect.mapError(permit(request), ({ message }) => ConfigError.at(from, `runtime.${key}`, message))
  }
})

/** Fails if a folder for scores or checkpoints outside the run's folder has files, because they may belong to another run. */
export const refuseTaken = Effect.fnUntraced(function* (settings: RunSettings, from: DecodeOptions) {
  const paths = yield* Path.Path
  const folders = foldersOf(settings, paths)
  for (const key of places) {
    if (!paths.isAbsolute(folders[key]) || (yield* namesIn(folders[key])).length === 0) continue
    const problem = `expected an empty folder, found files of another run in ${settings.runtime[key]}`
    return yield* ConfigError.at(from, `runtime.${key}`, problem)
  }
})
