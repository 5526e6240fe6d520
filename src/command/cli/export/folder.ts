/** Writes exported files and folders, each as a whole or not at all. A folder is written only where it replaces nothing. */
import { basename, resolve } from "node:path"
import { Effect, FileSystem } from "effect"
import { exists, namesIn, statOf, systemMessage } from "../../../base/config/files.ts"
import { type Contents, onDisk } from "../../../run/store/FileTree.ts"
import { usageError } from "../output/output.ts"

/** Fails if writing a folder would replace files. The error names `flag`, with which the user named the folder. */
export const requireNewFolder = Effect.fnUntraced(function* (folder: string, flag = "--out") {
  const stat = yield* statOf(folder)
  const isEmpty = stat === undefined || (stat.type === "Directory" && (yield* namesIn(folder)).length === 0)
  if (!isEmpty)
    return yield* usageError(`${flag} ${folder}: expected a new or empty folder; remove it or name another one`)
})

/** Writes a folder with these files as a whole or not at all. */
export const writeFolder = Effect.fnUntraced(function* (folder: string, files: Readonly<Record<string, Contents>>) {
  const path = resolve(folder)
  yield* (yield* onDisk(resolve(path, ".."))).writeDirectory(basename(path), files)
})

/** Writes a file as a whole or not at all. A pipe or a device is written directly, because nothing can be replaced there. Errors name `flag`. */
export const writeFile = Effect.fnUntraced(function* (file: string, contents: Uint8Array, flag = "--out") {
  const fs = yield* FileSystem.FileSystem
  const refused = (message: string) => usageError(`${flag} ${file}: ${message}`)
  const type = (yield* statOf(file))?.type
  const isReplaced = type === "File" || (type === undefined && (yield* exists(resolve(file, ".."))))
  if (!isReplaced) return yield* Effect.mapError(fs.writeFile(file, contents), (error) => refused(systemMessage(error)))
  // If the path is a link, the link stays, and the file that it points to is replaced.
  const path = yield* Effect.orElseSucceed(fs.realPath(file), () => resolve(file))
  const { write } = yield* onDisk(resolve(path, ".."))
  yield* Effect.mapError(write(basename(path), contents), (error) => refused(error.message))
})
