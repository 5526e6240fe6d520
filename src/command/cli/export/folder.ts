/** Writes exported files and folders, each as a whole or not at all. A folder is written only where it replaces nothing. */
import { basename, dirname, join, resolve } from "node:path"
import { Effect, FileSystem, type Path } from "effect"
import { exists, makeFolder, namesIn, statOf, systemMessage } from "../../../base/files/files.ts"
import { type Contents, onDisk } from "../../../run/store/FileTree.ts"
import type { CommandError } from "../../CommandError.ts"
import { utf8 } from "../../../base/text/utf8.ts"
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

/** Adds a file to a folder that is being written. */
export type WriteFile = (
  file: string,
  contents: Uint8Array | string,
) => Effect.Effect<void, CommandError, FileSystem.FileSystem | Path.Path>

/**
 * Writes a folder of many files, one at a time, as a whole or not at all: `body` gets a function that adds a file, and the folder
 * has its name only when `body` has ended. Fails if the folder exists and is not empty.
 */
export const writingFolder = <E, R>(folder: string, body: (write: WriteFile) => Effect.Effect<void, E, R>) =>
  Effect.gen(function* () {
    yield* requireNewFolder(folder)
    const fs = yield* FileSystem.FileSystem
    const path = resolve(folder)
    const unfinished = join(dirname(path), `.${basename(path)}.tmp`)
    const refused = (error: { readonly message: string }) => usageError(`--out ${folder}: ${error.message}`)
    const made = new Set<string>()
    const makeOnce = (parent: string) =>
      made.has(parent)
        ? Effect.void
        : Effect.andThen(
            makeFolder(parent),
            Effect.sync(() => void made.add(parent)),
          )
    const write = (file: string, contents: Uint8Array | string) => {
      const place = join(unfinished, file)
      const bytes = typeof contents === "string" ? utf8.encode(contents) : contents
      return Effect.mapError(Effect.andThen(makeOnce(dirname(place)), fs.writeFile(place, bytes)), refused)
    }
    const remove = fs.remove(unfinished, { recursive: true, force: true })
    yield* Effect.mapError(remove, refused)
    yield* Effect.onError(
      Effect.gen(function* () {
        yield* body(write)
        yield* Effect.mapError(makeFolder(unfinished), refused)
        // An empty folder is in the way of the new one.
        yield* Effect.mapError(fs.remove(path, { recursive: true, force: true }), refused)
        yield* Effect.mapError(fs.rename(unfinished, path), refused)
      }),
      () => Effect.ignore(remove),
    )
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
