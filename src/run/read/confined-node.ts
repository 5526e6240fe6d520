import { closeSync, constants, fstatSync, openSync, readdirSync, readSync, realpathSync, statSync } from "node:fs"
import { basename, dirname, isAbsolute, join, relative, sep } from "node:path"
import { Effect } from "effect"
import { FileError } from "../../config/files.ts"
import { openFile } from "../../config/files-node.ts"
import { messageOf } from "../../config/text.ts"
import { utf8 } from "../../config/utf8.ts"
import { isAlive } from "../store/owner-node.ts"
import { entriesOf, readPart } from "./disk-node.ts"
import { type Entries, type FileSource, mostAtOnce } from "./FileSource.ts"
import { treeOf } from "./tree.ts"

/**
 * Reads the files below one folder, and nothing else: neither `..` nor a symbolic link leads out of it. Paths start from
 * `root`, also those that begin with a slash.
 */
export interface Confined extends FileSource {
  readonly root: string
  /** The only folder in `root` that can be read; an empty string if all of `root` can be read. */
  readonly only: string
  /** Returns the real path of a file or folder; undefined if it does not exist, or lies outside of the folder. */
  readonly locate: (path: string) => Effect.Effect<string | undefined>
  /** Returns a text that changes when a file or folder changes: its size and the time of its last change. */
  readonly stamp: (path: string) => Effect.Effect<string>
}

/**
 * Opens a folder for reading, but nothing outside of it. If `only` names a folder in it, only that folder can be read, and
 * paths still begin with its name.
 */
export const confinedTo = (folder: string, only = ""): Effect.Effect<Confined, FileError> =>
  Effect.try({
    try: () => {
      const root = realpathSync(folder)
      return confined(root, realpathSync(join(root, only)), only)
    },
    catch: (error) => new FileError({ path: folder, missing: false, message: messageOf(error) }),
  })

/** Opens the same folder through its parent, so that paths begin with the folder's own name. */
export const confinedByName = ({ root }: Confined): Effect.Effect<Confined, FileError> =>
  confinedTo(dirname(root), basename(root))

/** Calls a function of Node, and returns `otherwise` if it throws: a user's folder may contain anything. */
const unless = <A, B>(otherwise: B, body: () => A): A | B => {
  try {
    return body()
  } catch {
    return otherwise
  }
}

/** Files up to this size in bytes are read synchronously: with a thousand runs, promises would take most of the time. */
const smallBytes = 128 * 1024

// Without this flag, opening a named pipe waits until another process writes into it.
const flags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)

/**
 * Reads some bytes of a file. Returns "large" if there are too many to read synchronously, and undefined if it is not a
 * regular file.
 */
const readSmall = (real: string, from: number, most: number): Uint8Array | "large" | undefined => {
  const file = openSync(real, flags)
  try {
    const status = fstatSync(file)
    if (!status.isFile()) return undefined
    const start = from < 0 ? Math.max(0, status.size + from) : Math.min(from, status.size)
    const length = Math.min(most, status.size - start)
    if (length > smallBytes) return "large"
    const bytes = new Uint8Array(length)
    let filled = 0
    while (filled < length) {
      const read = readSync(file, bytes, filled, length - filled, start + filled)
      if (read === 0) break
      filled += read
    }
    return bytes.subarray(0, filled)
  } finally {
    closeSync(file)
  }
}

const confined = (root: string, bounds: string, only: string): Confined => {
  const locate = (path: string): string | undefined => {
    if (path.includes("\0")) return undefined
    const real = unless(undefined, () => realpathSync.native(join(root, path)))
    if (real === undefined) return undefined
    const inside = relative(bounds, real)
    return inside === ".." || inside.startsWith(`..${sep}`) || isAbsolute(inside) ? undefined : real
  }

  const part = (path: string, from: number, most = mostAtOnce): Effect.Effect<Uint8Array | undefined> =>
    Effect.suspend(() => {
      const real = locate(path)
      const bytes = real === undefined ? undefined : unless(undefined, () => readSmall(real, from, most))
      if (real === undefined || bytes !== "large") return Effect.succeed(bytes === "large" ? undefined : bytes)
      const reading = async (): Promise<Uint8Array> => {
        await using file = await openFile(real)
        return await readPart(file, from, most)
      }
      return Effect.orElseSucceed(
        Effect.tryPromise((): Promise<Uint8Array> => reading()),
        () => undefined,
      )
    })

  const size = (path: string): Effect.Effect<number | undefined> =>
    Effect.sync(() => {
      const real = locate(path)
      const status = real === undefined ? undefined : statSync(real, { throwIfNoEntry: false })
      return status?.isFile() === true ? status.size : undefined
    })

  const entries = (path: string): Effect.Effect<Entries> =>
    Effect.sync(() => {
      const real = locate(path)
      return entriesOf(real === undefined ? [] : unless([], () => readdirSync(real, { withFileTypes: true })))
    })

  return {
    root,
    only,
    locate: (path) => Effect.sync(() => locate(path)),
    stamp: (path) =>
      Effect.sync(() => {
        const status = unless(undefined, () => statSync(join(root, path), { throwIfNoEntry: false }))
        return status === undefined ? "" : `${status.size}:${status.mtimeMs}`
      }),
    list: (folder) => Effect.map(entries(folder), ({ files, folders }) => [...files, ...folders]),
    folders: (folder) => Effect.map(entries(folder), ({ folders }) => folders),
    entries,
    text: (path) => Effect.map(part(path, 0), (read) => (read === undefined ? undefined : utf8.decode(read))),
    part,
    size,
    tree: (folder) => treeOf({ entries, size }, folder),
    isAlive: (name) => Effect.sync(() => isAlive(name)),
    warn: () => Effect.void,
  }
}
