/** Removes the checkpoints that an earlier export copied into the same folder, when the new one leaves them out. */
import { Effect, FileSystem, Path } from "effect"
import { mostBytes, readText } from "../config/files.ts"
import { fields, finite, parsed } from "./json.ts"

/**
 * Removes files of an earlier export that `unwanted` names. A file is only removed if the earlier export's `run.json` lists
 * it, and if it is a regular file of the listed size in the very folder that the run's files were copied into. Returns how
 * many files were removed, and how many were kept because they have changed.
 */
export const removeEarlier = Effect.fnUntraced(function* (
  out: string,
  run: string,
  unwanted: (path: string) => boolean,
) {
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const list = readText(paths.join(out, "data/run", run, "run.json"), mostBytes.text)
  const earlier = fields(parsed(yield* Effect.orElseSucceed(list, () => undefined))).files
  const folder = paths.join(yield* fs.realPath(out), "files", run)
  let removed = 0
  let kept = 0
  for (const one of Array.isArray(earlier) ? earlier : []) {
    const { path, size } = fields(one)
    if (typeof path !== "string" || !unwanted(path)) continue
    const file = paths.join(folder, path)
    if (!file.startsWith(`${folder}${paths.sep}`)) continue
    const isLink = yield* Effect.isSuccess(fs.readLink(file))
    const status = yield* Effect.orElseSucceed(fs.stat(file), () => undefined)
    if (status === undefined && !isLink) continue
    const isOwn =
      !isLink && status?.type === "File" && Number(status.size) === finite(size) && (yield* fs.realPath(file)) === file
    if (!isOwn) kept++
    else {
      yield* fs.remove(file)
      removed++
      yield* removeEmpty(paths.dirname(file), folder)
    }
  }
  return { removed, kept }
})

/** Removes a folder and the folders above it, up to the run's, as long as they are empty. */
const removeEmpty = Effect.fnUntraced(function* (folder: string, top: string) {
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  for (let at = folder; at !== top; at = paths.dirname(at)) {
    if ((yield* fs.readDirectory(at)).length > 0) return
    yield* fs.remove(at, { recursive: true })
  }
})
