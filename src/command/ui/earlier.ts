/** Removes files that an earlier export copied into the folder of a site, if the new export leaves them out. */
import { Effect, FileSystem, Path } from "effect"
import { mostBytes, readText } from "../../base/files/files.ts"
import { fields, finite, parsed } from "./json.ts"

/**
 * Removes the copied files of a run for which `unwanted` returns true; it gets the path of a file in the run and in the site.
 * `out` is the folder of the site. Only files that the earlier export's `run.json` lists are removed. A file that is now a
 * link or has another size is kept, because somebody has changed it. Returns the number of removed files and the number of
 * kept files.
 */
export const removeEarlier = Effect.fnUntraced(function* (
  out: string,
  run: string,
  unwanted: (path: string, copy: string) => boolean,
) {
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const list = readText(paths.join(out, "data/run", run, "run.json"), mostBytes.text)
  const earlier = fields(parsed(yield* Effect.orElseSucceed(list, () => undefined))).files
  const folder = paths.join(yield* fs.realPath(out), "files", run)
  let removed = 0
  let kept = 0
  for (const one of Array.isArray(earlier) ? earlier : []) {
    const { path, size, copy = path } = fields(one)
    if (typeof path !== "string" || typeof copy !== "string" || !unwanted(path, copy)) continue
    const file = paths.join(folder, copy)
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

/** Removes a folder and then the folders above it, as long as they are empty; `top` is never removed. */
const removeEmpty = Effect.fnUntraced(function* (folder: string, top: string) {
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  for (let at = folder; at !== top; at = paths.dirname(at)) {
    if ((yield* fs.readDirectory(at)).length > 0) return
    yield* fs.remove(at, { recursive: true })
  }
})
