import { Effect, FileSystem, Path } from "effect"
import { ConfigError, type DecodeOptions } from "../config/Config.ts"
import type { TaskSet } from "../task/TaskSet.ts"
import * as Layout from "../run/Layout.ts"
import type { RunSettings } from "./RuntimeConfig.ts"

const names = { scoresPath: "runtime.scores_path", checkpointDir: "runtime.checkpoint_dir" } as const

/** What no single setting tells: whether they go together. Gives what is worth a warning. */
export const checked = Effect.fnUntraced(function* (
  { runtime }: RunSettings,
  train: TaskSet | null,
  validation: TaskSet | null,
  from: DecodeOptions,
): Effect.fn.Return<ReadonlyArray<string>, ConfigError> {
  const validates = (runtime.validationFreq ?? 0) > 0 || runtime.runValidationAtStart
  if (runtime.checkpointStrategy === "top_k_val" && (validation === null || !validates)) {
    const missing = validation === null ? "a validation_dataset" : "a validation_freq or run_validation_at_start"
    return yield* ConfigError.at(
      from,
      "runtime.checkpoint_strategy",
      `top_k_val keeps the best by their validations, so it needs ${missing}`,
    )
  }
  for (const key of ["scoresPath", "checkpointDir"] as const) {
    const path = runtime[key]
    if (path === null || !path.split("/").includes("..")) continue
    return yield* ConfigError.at(
      from,
      names[key],
      `expected a path within the run's folder, or one from the root on; found ${path}`,
    )
  }
  const size = train?.size ?? 0
  if (runtime.startEpisodeIndex > size) {
    const problem = `expected ${size} at most, the tasks of the training data set; found ${runtime.startEpisodeIndex}`
    return yield* ConfigError.at(from, "runtime.start_episode_index", problem)
  }
  if (train === null && (validation === null || !validates)) {
    return yield* ConfigError.at(from, "train_dataset", "there is nothing to do: no training tasks, and no validation")
  }
  return validates && validation === null
    ? ["there is no validation_dataset, so nothing is validated whatever validation_freq says"]
    : []
})

/** Two runs in one place outside of theirs would write into each other's files. Only a path from the root on is outside. */
export const refuseTaken = Effect.fnUntraced(function* (
  { runtime }: RunSettings,
  from: DecodeOptions,
): Effect.fn.Return<void, ConfigError, FileSystem.FileSystem | Path.Path> {
  const [fs, paths] = [yield* FileSystem.FileSystem, yield* Path.Path]
  const namesIn = (folder: string) => Effect.orElseSucceed(fs.readDirectory(folder), () => [])
  const within = {
    scoresPath: paths.dirname(paths.join(Layout.scoresRoot(runtime.scoresPath), Layout.trainScores)),
    checkpointDir: runtime.checkpointDir ?? ".",
  }
  for (const key of ["scoresPath", "checkpointDir"] as const) {
    if (!paths.isAbsolute(within[key]) || (yield* namesIn(within[key])).length === 0) continue
    return yield* ConfigError.at(from, names[key], `${runtime[key]} holds another run's files already`)
  }
})
