/**
 * Reads files within limits of size, like `files.ts`, but synchronously: for a listing of ten thousand runs, promises
 * would take most of the time. Throws a `FileError`. `disk-node.ts` and `confined-node.ts` call it.
 */
import { closeSync, constants, fstatSync, openSync, readFileSync, readSync, type Stats } from "node:fs"
import type { FileSystem } from "effect"
import { FileError, refusal, systemMessage, textOfRunFile } from "./files.ts"

/** These flags open a pipe without waiting until another process opens its other end. */
const flags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)

const typeOf = (stat: Stats): FileSystem.File.Type => {
  if (stat.isFile()) return "File"
  if (stat.isDirectory()) return "Directory"
  if (stat.isFIFO()) return "FIFO"
  if (stat.isSocket()) return "Socket"
  return stat.isBlockDevice() || stat.isCharacterDevice() ? "CharacterDevice" : "Unknown"
}

const fileError = (path: string, error: unknown): FileError => {
  if (error instanceof FileError) return error
  const code = error instanceof Error && "code" in error ? error.code : undefined
  const missing = code === "ENOENT" || code === "ENOTDIR"
  const message = error instanceof Error ? systemMessage(error) : String(error)
  return new FileError({ path, missing, message: code === "ENOENT" ? "there is no such file" : message })
}

/** Opens a regular file of at most `most` bytes, returns the result of `body`, and closes the file. */
const withFile = <A>(path: string, most: number, body: (file: number, size: number) => A): A => {
  try {
    const file = openSync(path, flags)
    try {
      const stat = fstatSync(file)
      const message = refusal(typeOf(stat), stat.size, most)
      if (message !== undefined) throw new FileError({ path, missing: false, message })
      return body(file, stat.size)
    } finally {
      closeSync(file)
    }
  } catch (error) {
    throw fileError(path, error)
  }
}

/**
 * Reads a text file that a run writes, of at most `most` bytes. An incomplete file is read, too: see `textOfRunFile`.
 */
export const readTextSync = (path: string, most: number): string =>
  withFile(path, most, (file) => {
    const decoded = textOfRunFile(readFileSync(file))
    if ("text" in decoded) return decoded.text
    throw new FileError({ path, missing: false, message: decoded.problem })
  })

/** Reads at most `most` bytes of a file, beginning at the byte `from`. A negative `from` counts from the file's end. */
export const readPartSync = (path: string, from: number, most: number): Uint8Array =>
  withFile(path, Infinity, (file, size) => {
    const start = from < 0 ? Math.max(0, size + from) : Math.min(from, size)
    const bytes = new Uint8Array(Math.min(most, size - start))
    let filled = 0
    while (filled < bytes.length) {
      const count = readSync(file, bytes, filled, bytes.length - filled, start + filled)
      if (count === 0) break
      filled += count
    }
    return bytes.subarray(0, filled)
  })
