/**
 * Finds the files that a config names and makes their paths absolute. It looks whether files exist, and changes nothing. It
 * is used wherever a config is read, a data set or a model is opened, or a prompt is taken from a file.
 */
import { Effect, FileSystem, Path } from "effect"
import { isPlain, type Plain } from "./Config.ts"

interface FilePlace {
  /** The path of the file; if the file doesn't exist, its path in the config's folder. */
  readonly path: string
  readonly isThere: boolean
  /** All paths that were tried, for messages. */
  readonly tried: ReadonlyArray<string>
}

/** Looks for a file that a config names: first in the config's folder, then in the working directory. */
export const locate = Effect.fnUntraced(function* (
  file: string,
  baseDir: string,
): Effect.fn.Return<FilePlace, never, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const tried = [...new Set([paths.resolve(baseDir, file), paths.resolve(file)])]
  for (const path of tried) {
    if (yield* Effect.orElseSucceed(fs.exists(path), () => false)) return { path, isThere: true, tried }
  }
  return { path: tried[0], isThere: false, tried }
})

/** Makes the paths in a config absolute, because a run saves its config in another folder. */
export const withPlaces = Effect.fnUntraced(function* (
  config: Plain,
  baseDir: string,
): Effect.fn.Return<Plain, never, FileSystem.FileSystem | Path.Path> {
  const paths = yield* Path.Path
  const placed = Effect.fnUntraced(function* (
    key: string,
    value: unknown,
  ): Effect.fn.Return<unknown, never, FileSystem.FileSystem | Path.Path> {
    if (typeof value === "string") {
      if (fileKeys.has(key)) return (yield* locate(value, baseDir)).path
      const [, model] = key === "model" ? (/^builtin:(.*\.json)$/s.exec(value) ?? []) : []
      if (model !== undefined) {
        const { path, isThere } = yield* locate(model, baseDir)
        return isThere ? `builtin:${path}` : value
      }
      // The program creates this folder, so the folder need not exist.
      return folderKeys.has(key) ? paths.resolve(baseDir, value) : value
    }
    // `items` holds the records of a data set, not settings.
    return key !== "items" && isPlain(value) ? yield* placedAll(value) : value
  })
  const placedAll = Effect.fnUntraced(function* (
    tree: Plain,
  ): Effect.fn.Return<Plain, never, FileSystem.FileSystem | Path.Path> {
    const all: Record<string, unknown> = {}
    for (const [key, value] of Object.entries(tree)) all[key] = yield* placed(key, value)
    return all
  })
  return yield* placedAll(config)
})

/**
 * Returns the name of a built-in model in a file, `builtin:FILE.json`, without its folders: a run is then the same wherever
 * the file is.
 */
export const unplacedModel = (model: string): string => model.replace(/^builtin:.*[\\/](?=[^\\/]+\.json$)/s, "builtin:")

const fileKeys = new Set(["datasetPath", "dataset_path"])
const folderKeys = new Set(["cacheDir", "cache_dir"])
