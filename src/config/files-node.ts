import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from "node:fs"
import { type FileHandle, open } from "node:fs/promises"
import type { FileSystem } from "effect"
import { FileError, refusal, systemMessage, textOfRunFile } from "./files.ts"

/**
 * Reads files within limits, like `files.ts`, for Node code in which an Effect per file costs too much. Throws a
 * `FileError`.
 */

/** Opens a pipe without waiting for its other end. */
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
export const openFile = async (path: string, most = Infinity): Promise<FileHandle> => {
  try {
    const file = await open(path, flags)
    try {
      check(path, await file.stat(), most)
      return file
    } catch (error) {
      await file.close()
      throw error
    }
  } catch (error) {
    throw fileError(path, error)
  }
}

/** Node's `readFile` refuses files over 2 GiB; they are read in parts of this size. */
const atOnce = 2 ** 30

/** Reads a regular file of at most `most` bytes. */
export const readFileWithin = async (path: string, most: number, part = atOnce): Promise<Uint8Array> => {
  await using file = await openFile(path, most)
  const { size } = await file.stat()
  if (size <= part) return await file.readFile()
  const bytes = new Uint8Array(size)
  let filled = 0
  while (filled < size) {
    const { bytesRead } = await file.read(bytes, filled, Math.min(part, size - filled), filled)
    // The file has become shorter since it was opened.
    if (bytesRead === 0) return bytes.slice(0, filled)
    filled += bytesRead
  }
  return bytes
}

const textAt = (path: string, bytes: Uint8Array): string => {
  const decoded = textOfRunFile(bytes)
  if ("text" in decoded) return decoded.text
  throw new FileError({ path, missing: false, message: decoded.problem })
}

/** Reads a text file that a run writes. */
export const readTextWithin = async (path: string, most: number): Promise<string> =>
  textAt(path, await readFileWithin(path, most))

/** Reads such a file synchronously: for very many small files, promises would take most of the time. */
export const readTextSync = (path: string, most: number): string => {
  try {
    const file = openSync(path, flags)
    try {
      check(path, fstatSync(file), most)
      return textAt(path, readFileSync(file))
    } finally {
      closeSync(file)
    }
  } catch (error) {
    throw fileError(path, error)
  }
}
