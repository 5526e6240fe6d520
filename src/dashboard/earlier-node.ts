/** Removes the checkpoints that an earlier export copied into the same folder, when the new one leaves them out. */
import { lstat, realpath, rm, rmdir } from "node:fs/promises"
import { dirname, join } from "node:path"
import { mostBytes } from "../config/files.ts"
import { readTextWithin } from "../config/files-node.ts"
import { finite, fields, parsed } from "./RunSummary.ts"

/** How many files were removed, and how many were left because they changed after they were copied. */
export interface Removed {
  readonly removed: number
  readonly kept: number
}

/**
 * Removes files of an earlier export that `unwanted` names. A file is only removed if the earlier export's `run.json` lists
 * it, and if it is a regular file of the listed size in the very folder that the run's files were copied into.
 */
export const removeEarlier = async (
  out: string,
  run: string,
  unwanted: (path: string) => boolean,
): Promise<Removed> => {
  const text = await readTextWithin(join(out, "data/run", run, "run.json"), mostBytes.text).catch(() => undefined)
  const earlier = fields(parsed(text)).files
  const folder = join(await realpath(out), "files", run)
  let removed = 0
  let kept = 0
  for (const one of Array.isArray(earlier) ? earlier : []) {
    const { path, size } = fields(one)
    if (typeof path !== "string" || !unwanted(path)) continue
    const file = join(folder, path)
    if (!file.startsWith(`${folder}/`)) continue
    const status = await lstat(file).catch(() => undefined)
    if (status === undefined) continue
    const isOwn = status.isFile() && status.size === finite(size) && (await realpath(file)) === file
    if (!isOwn) kept++
    else {
      await rm(file)
      removed++
      await removeEmpty(dirname(file), folder)
    }
  }
  return { removed, kept }
}

/** Removes a folder and those above it, up to the run's, as long as they are empty. */
const removeEmpty = async (folder: string, top: string): Promise<void> => {
  for (let at = folder; at !== top; at = dirname(at)) {
    const isRemoved = await rmdir(at).then(
      () => true,
      () => false,
    )
    if (!isRemoved) return
  }
}
