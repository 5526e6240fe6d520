/** Reads and writes the files of a folder, without links, which could lead out of it. */
import { Effect, FileSystem, Path } from "effect"
import { ConfigError } from "../../../base/config/Config.ts"
import { exists, makeFolder, namesIn, readBytes, statOf, systemMessage } from "../../../base/files/files.ts"

/** A file, with its path relative to its folder. Its parts are separated by slashes. */
export interface FolderFile {
  readonly path: string
  readonly bytes: Uint8Array
}

/** The most files and bytes that a folder may have. */
interface FolderLimits {
  readonly files: number
  readonly bytes: number
}

/** The limits of a folder of a task, and of what an agent writes in an episode. */
export const folderLimits: FolderLimits = { files: 1000, bytes: 64 * 2 ** 20 }

/** The limits of a working directory, which has files of the task and those of the agent. */
export const workdirLimits: FolderLimits = { files: 2 * folderLimits.files, bytes: 2 * folderLimits.bytes }

/** Fails at a link, which could make the task show a file of this computer to the agent. */
export const refuseLink = Effect.fnUntraced(function* (path: string) {
  const fs = yield* FileSystem.FileSystem
  const isLink = yield* fs.readLink(path).pipe(
    Effect.as(true),
    Effect.orElseSucceed(() => false),
  )
  if (isLink) return yield* ConfigError.at({ source: path }, "", "expected a file or a folder, found a link")
})

/** Reads all files of a folder and of the folders in it; none if there is no such folder. Fails at a link. */
export const filesOf = Effect.fnUntraced(function* (
  folder: string,
  most = folderLimits,
): Effect.fn.Return<ReadonlyArray<FolderFile>, ConfigError, FileSystem.FileSystem | Path.Path> {
  const paths = yield* Path.Path
  const files: Array<FolderFile> = []
  yield* refuseLink(folder)
  if (!(yield* exists(folder))) return files
  let bytesLeft = most.bytes
  const waiting = [""]
  for (let inner = waiting.pop(); inner !== undefined; inner = waiting.pop()) {
    for (const name of (yield* namesIn(paths.join(folder, inner))).toSorted()) {
      const path = inner === "" ? name : `${inner}/${name}`
      const whole = paths.join(folder, path)
      const refuse = (problem: string) => ConfigError.at({ source: whole }, "", problem)
      yield* refuseLink(whole)
      if ((yield* statOf(whole))?.type === "Directory") {
        waiting.push(path)
        continue
      }
      if (files.length === most.files)
        return yield* refuse(`expected at most ${most.files} files in a folder of a task`)
      const bytes = yield* Effect.mapError(readBytes(whole, bytesLeft), ({ message }) => refuse(message))
      bytesLeft -= bytes.length
      files.push({ path, bytes })
    }
  }
  return files.toSorted((a, b) => (a.path < b.path ? -1 : 1))
})

/** Writes a file, and makes the folders that it is in. Fails with a message. */
export const writeInto = Effect.fnUntraced(function* (path: string, bytes: Uint8Array) {
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  yield* Effect.mapError(makeFolder(paths.dirname(path)), ({ message }) => message)
  yield* Effect.mapError(fs.writeFile(path, bytes), (error) => `${path}: ${systemMessage(error)}`)
})
