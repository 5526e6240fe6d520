/** Reads the files below one folder only, for the server of `effect ui`, whose users choose the paths. */
import { readdirSync, realpathSync, statSync } from "node:fs"
import { basename, dirname, isAbsolute, join, relative, sep } from "node:path"
import { Effect } from "effect"
import { FileError } from "../../base/files/files.ts"
import { readPartSync } from "../../base/files/files-node.ts"
import { messageOf } from "../../base/text/text.ts"
import { utf8 } from "../../base/text/utf8.ts"
import { owner } from "../store/owner-node.ts"
import { entriesOf } from "./disk-node.ts"
import { type Entries, type FileSource, mostAtOnce, treeOf } from "./FileSource.ts"

/**
 * A source of the files below one folder, and no others: neither `..` nor a symbolic link leads out of it. All paths
 * start from `root`, even with a leading slash.
 */
export interface Confined extends FileSource {
  readonly root: string
  /** The only folder in `root` that can be read; an empty string if all of `root` can be read. */
  readonly only: string
  /** Returns the real path of a file or folder; undefined if it does not exist, or lies outside of the folder. */
  readonly locate: (path: string) => Effect.Effect<string | undefined>
  /** Returns the size and the time of the last change of a file or folder, as a text to compare; empty if missing. */
  readonly stamp: (path: string) => Effect.Effect<string>
  /** Updates the source if it reads from a listing. */
  readonly refresh: Effect.Effect<void>
}

/**
 * Makes a source that reads the files below `folder`, and nothing outside of it. If `only` names a folder in it, only
 * that folder can be read, and paths still begin with its name.
 */
export const confinedTo = (folder: string, only = ""): Effect.Effect<Confined, FileError> =>
  Effect.try({
    try: () => {
      const root = realpathSync(folder)
      return confined(root, realpathSync(join(root, only)), only)
    },
    catch: (error) => new FileError({ path: folder, missing: false, message: messageOf(error) }),
  })

/** Makes a source for the same folder, but with paths that begin with the folder's own name. */
export const confinedByName = ({ root }: Confined): Effect.Effect<Confined, FileError> =>
  confinedTo(dirname(root), basename(root))

/** Calls a function of Node, and returns `otherwise` if it throws. A user's folder may contain anything. */
const unless = <A, B>(otherwise: B, body: () => A): A | B => {
  try {
    return body()
  } catch {
    return otherwise
  }
}

/** Makes the source of paths below `root` that reads only files below `bounds`. Both are real paths. */
const confined = (root: string, bounds: string, only: string): Confined => {
  const locate = (path: string): string | undefined => {
    if (path.includes("\0")) return undefined
    const real = unless(undefined, () => realpathSync.native(join(root, path)))
    if (real === undefined) return undefined
    const inside = relative(bounds, real)
    return inside === ".." || inside.startsWith(`..${sep}`) || isAbsolute(inside) ? undefined : real
  }

  const part: FileSource["part"] = (path, from, most = mostAtOnce) =>
    Effect.sync(() => {
      const real = locate(path)
      return real === undefined ? undefined : unless(undefined, () => readPartSync(real, from, most))
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
    refresh: Effect.void,
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
    isAlive: owner.isAlive,
    warn: () => Effect.void,
  }
}
