import { constants } from "node:fs"
import { open, readdir, realpath, stat } from "node:fs/promises"
import { isAbsolute, join, relative, sep } from "node:path"

/** Files below one folder, and nothing else: neither `..` nor a symbolic link leads out of it. */
export interface Confined {
  /** The folder that paths start from. */
  readonly root: string
  /** The one folder in the root that can be read; all of the root where it is empty. */
  readonly only: string
  /** The real path of what lies below; undefined where there is nothing, or it lies elsewhere. */
  readonly locate: (path: string) => Promise<string | undefined>
  /** As `text`, before it is read as such. */
  readonly bytes: (path: string, from?: number, most?: number) => Promise<Uint8Array | undefined>
  /**
   * A part of a file as text, from a position (from the end when negative), of at most so many bytes; undefined where
   * there is no such file.
   */
  readonly text: (path: string, from?: number, most?: number) => Promise<string | undefined>
  readonly size: (path: string) => Promise<number | undefined>
  /** Names of the files and folders in a folder, sorted; links are left out. */
  readonly list: (
    path: string,
  ) => Promise<{ readonly files: ReadonlyArray<string>; readonly folders: ReadonlyArray<string> }>
}

/** What one read brings at most. */
export const mostBytes = 32 * 1024 * 1024

/**
 * What stands before a place that a file was read up to: when that has changed, the file was cut back or written anew, and
 * is longer again.
 */
export const behind = async (files: Pick<Confined, "text">, path: string, read: number): Promise<string> => {
  const most = Math.min(read, 1024)
  return most === 0 ? "" : ((await files.text(path, read - most, most)) ?? "")
}

// A byte order mark is a part of what was read, as it is for Buffer.
const utf8 = new TextDecoder("utf-8", { ignoreBOM: true })

export const confinedTo = async (folder: string, only = ""): Promise<Confined> => {
  const root = await realpath(folder)
  const bounds = await realpath(join(root, only))

  const locate = async (path: string): Promise<string | undefined> => {
    if (path.includes("\0")) return undefined
    const real = await realpath(join(root, path)).catch(() => undefined)
    if (real === undefined) return undefined
    const inside = relative(bounds, real)
    return inside === ".." || inside.startsWith(`..${sep}`) || isAbsolute(inside) ? undefined : real
  }

  const bytes = async (path: string, from = 0, most = mostBytes): Promise<Uint8Array | undefined> => {
    const real = await locate(path)
    if (real === undefined) return undefined
    // Else a pipe would be waited for until somebody writes into it.
    const file = await open(real, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)).catch(() => undefined)
    if (file === undefined) return undefined
    try {
      const found = await file.stat()
      if (!found.isFile()) return undefined
      const start = from < 0 ? Math.max(0, found.size + from) : Math.min(from, found.size)
      const bytes = Buffer.allocUnsafe(Math.min(most, found.size - start))
      let filled = 0
      while (filled < bytes.length) {
        const { bytesRead } = await file.read(bytes, filled, bytes.length - filled, start + filled)
        if (bytesRead === 0) break
        filled += bytesRead
      }
      return bytes.subarray(0, filled)
    } finally {
      await file.close()
    }
  }

  const text = async (path: string, from?: number, most?: number): Promise<string | undefined> => {
    const found = await bytes(path, from, most)
    return found === undefined ? undefined : utf8.decode(found)
  }

  const size = async (path: string): Promise<number | undefined> => {
    const real = await locate(path)
    const found = real === undefined ? undefined : await stat(real).catch(() => undefined)
    return found?.isFile() === true ? found.size : undefined
  }

  const list: Confined["list"] = async (path) => {
    const real = await locate(path)
    const entries = real === undefined ? [] : await readdir(real, { withFileTypes: true }).catch(() => [])
    const names = (wanted: (entry: (typeof entries)[number]) => boolean): ReadonlyArray<string> =>
      entries
        .filter((entry) => wanted(entry) && !entry.name.startsWith("."))
        .map(({ name }) => name)
        .sort()
    return { files: names((entry) => entry.isFile()), folders: names((entry) => entry.isDirectory()) }
  }

  return { root, only, locate, bytes, text, size, list }
}
