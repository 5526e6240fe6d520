/** Writes an exported folder as a whole, and only where it replaces nothing. */
import { basename, resolve } from "node:path"
import { Effect } from "effect"
import { namesIn, statOf } from "../../config/files.ts"
import { type Contents, onDisk } from "../../run/store/FileTree.ts"
import { usageError } from "../output/output.ts"

/** Fails if writing a folder would replace files. `flag` is the one by which the user named it. */
export const requireNewFolder = Effect.fnUntraced(function* (folder: string, flag = "--out") {
  const stat = yield* statOf(folder)
  const isEmpty = stat === undefined || (stat.type === "Directory" && (yield* namesIn(folder)).length === 0)
  if (!isEmpty)
    return yield* usageError(`${flag} ${folder}: expected a new or empty folder; remove it or name another one`)
})

/** Writes a folder with these files, as a whole or not at all. */
export const writeFolder = Effect.fnUntraced(function* (folder: string, files: Readonly<Record<string, Contents>>) {
  const path = resolve(folder)
  yield* (yield* onDisk(resolve(path, ".."))).writeDirectory(basename(path), files)
})
