import { Effect } from "effect"
import { ConfigError, type DecodeOptions, sourceOf } from "../../config/Config.ts"
import type { TaskSet } from "../../env/text/TaskSet.ts"
import type { RunSettings } from "./RuntimeConfig.ts"

const wrong = (from: DecodeOptions, key: string, problem: string): ConfigError => {
  const source = sourceOf(from, key)
  return new ConfigError({ source, key, message: `${source}: ${key}: ${problem}` })
}

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
    return yield* wrong(
      from,
      "runtime.checkpoint_strategy",
      `top_k_val keeps the best by their validations, so it needs ${missing}`,
    )
  }
  for (const key of ["scoresPath", "checkpointDir"] as const) {
    const path = runtime[key]
    if (path === null || !(path.startsWith("/") || path.split("/").includes(".."))) continue
    const name = key === "scoresPath" ? "runtime.scores_path" : "runtime.checkpoint_dir"
    return yield* wrong(
      from,
      name,
      `expected a path within the run's folder, which can be moved as a whole; found ${path}`,
    )
  }
  const size = train?.size ?? 0
  if (runtime.startEpisodeIndex > size) {
    const problem = `expected ${size} at most, the tasks of the training data set; found ${runtime.startEpisodeIndex}`
    return yield* wrong(from, "runtime.start_episode_index", problem)
  }
  if (train === null && (validation === null || !validates)) {
    return yield* wrong(from, "train_dataset", "there is nothing to do: no training tasks, and no validation")
  }
  return validates && validation === null
    ? ["there is no validation_dataset, so nothing is validated whatever validation_freq says"]
    : []
})
