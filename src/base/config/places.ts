/**
 * Finds the files that a config names and makes their paths absolute. It only checks whether files exist. All code that
 * reads configs, data sets, models or prompt files uses it.
 */
import { Effect, type FileSystem, Path } from "effect"
import { isPlain, type Plain } from "./Config.ts"
import { exists } from "../files/files.ts"
import { holdsData } from "./plain.ts"

/**
 * Looks for a file that a config names: first in the config's folder `baseDir`, then in the working directory. If it is
 * in neither, `isThere` is false and `path` is the path in the config's folder. `tried` has both paths, for messages.
 */
export const locate = Effect.fnUntraced(function* (file: string, baseDir: string) {
  const paths = yield* Path.Path
  const tried = [...new Set([paths.resolve(baseDir, file), paths.resolve(file)])]
  for (const path of tried) if (yield* exists(path)) return { path, isThere: true, tried }
  return { path: tried[0], isThere: false, tried }
})

/** Makes the paths in a config absolute, because a run saves it in another folder than `baseDir`, where it is now. */
export const withPlaces = Effect.fnUntraced(function* (
  config: Plain,
  baseDir: string,
): Effect.fn.Return<Plain, never, FileSystem.FileSystem | Path.Path> {
  const placed: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(config)) {
    if (!holdsData([key]) && isPlain(value)) placed[key] = yield* withPlaces(value, baseDir)
    else placed[key] = typeof value === "string" ? yield* withPlace(key, value, baseDir) : value
  }
  return placed
})

/** Makes a key's value absolute if the key names a file, a folder or a model's file; keeps any other value. */
const withPlace = Effect.fnUntraced(function* (key: string, value: string, baseDir: string) {
  if (fileKeys.has(key)) return (yield* locate(value, baseDir)).path
  const [, kind, model] = key === "model" ? (modelFile.exec(value) ?? []) : []
  if (kind !== undefined) {
    const { path, isThere } = yield* locate(model, baseDir)
    return isThere ? `${kind}:${path}` : value
  }
  // The program itself creates this folder, so it need not exist yet.
  return folderKeys.has(key) ? (yield* Path.Path).resolve(baseDir, value) : value
})

/** Matches the name of a model in a file or a folder: `builtin:FILE.json` and `decoder:FOLDER`. */
const modelFile = /^(builtin(?=:.*\.json$)|decoder):(.+)$/s

/** Removes the folders from a model's name `builtin:FILE.json` or `decoder:FOLDER`, so that a moved file is the same model. */
export const unplacedModel = (model: string): string => {
  const [, kind, path] = modelFile.exec(model) ?? []
  return kind === undefined ? model : `${kind}:${path.replace(/(?<![\\/])[\\/]+$/, "").replace(/^.*[\\/]/s, "")}`
}

/** The keys that name a file to read and a folder to write, in both spellings. */
const fileKeys = new Set([
  "datasetPath",
  "dataset_path",
  "baseConfigPath",
  "base_config_path",
  "promptsPath",
  "prompts_path",
])
const folderKeys = new Set(["cacheDir", "cache_dir"])
