import { Effect, Path } from "effect"
import { isPlain, type Plain } from "./Config.ts"

/** A run's own config lies elsewhere, so what it names is named from the root. */
export const withPlaces = Effect.fnUntraced(function* (
  config: Plain,
  baseDir: string,
): Effect.fn.Return<Plain, never, Path.Path> {
  const paths = yield* Path.Path
  const placed = (key: string, value: unknown): unknown => {
    if (placeKeys.has(key) && typeof value === "string") return paths.resolve(baseDir, value)
    if (key !== "items" && isPlain(value)) return placedAll(value)
    return value
  }
  const placedAll = (tree: Plain): Plain =>
    Object.fromEntries(Object.entries(tree).map(([key, value]) => [key, placed(key, value)]))
  return placedAll(config)
})

const placeKeys = new Set(["datasetPath", "dataset_path", "cacheDir", "cache_dir"])
