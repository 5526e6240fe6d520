import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from "node:fs"
import { type FileHandle, open } from "node:fs/promises"
import type { FileSystem } from "effect"
import { FileError, refusal, systemMessage, textOfRunFile } from "./files.ts"

/**
 * Reads files within limits, like `files.ts`, for Node code in which an Effect per file costs too much. Throws a
 * `FileError`.
 */

/** These flags open a pipe without waiting until another process opens its other end. */
const flags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)

const typeOf = (found: Stats): FileSystem.File.Type => {
  if (found.isFile()) return "File"
  if (found.isDirectory()) return "Directory"
  if (found.isFIFO()) return "FIFO"
  if (found.isSocket()) return "Socket"
  return found.isBlockDevice() || found.isCharacterDevice() ? "CharacterDevice" : "Unknown"
}

const check = (path: string, found: Stats, most: number): void => {
  const message = refusal(typeOf(found), found.size, most)
  if (message !== undefined) throw new FileError({ path, missing: false, message })
}

const fileError = (path: string, error: unknown): FileError => {
  if (error instanceof FileError) return error
  const code = error instanceof Error && "code" in error ? error.code : undefined
  const missing = code === "ENOENT" || code === "ENOTDIR"
  const message = error instanceof Error ? systemMessage(error) : String(error)
  return new FileError({ path, missing, message: code === "ENOENT" ? "there is no such file" : message })
}

/** Opens a regular file of at most `most` bytes, to read it in parts. */
export const openFile = (path: string, most = Infinity): Promise<FileHandle> =>
  open(path, flags)
    .then((file) =>
      file
        .stat()
        .then((stat) => check(path, stat, most))
        .then(
          () => file,
          (error: unknown) => file.close().then(() => Promise.reject(error)),
        ),
    )
    .catch((error: unknown) => Promise.reject(fileError(path, error)))

/** Reads a text file that a run writes, synchronously: for very many small files, promises would take most of the time. */
export const readTextSync = (path: string, most: number): string => {
  try {
    const file = openSync(path, flags)
    try {
      check(path, fstatSync(file), most)
      const decoded = textOfRunFile(readFileSync(file))
      if ("text" in decoded) return decoded.text
      throw new FileError({ path, missing: false, message: decoded.problem })
    } finally {
      closeSync(file)
    }
  } catch (error) {
    throw fileError(path, error)
  }
}
