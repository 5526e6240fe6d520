import { readdir, realpath, stat } from "node:fs/promises"
import { basename, dirname, isAbsolute, join, relative, sep } from "node:path"
import { Effect } from "effect"
import { FileError } from "../../config/files.ts"
import { openFile } from "../../config/files-node.ts"
import { messageOf } from "../../config/text.ts"
import { utf8 } from "../../config/utf8.ts"
import { isAlive } from "../store/owner-node.ts"
import { entriesOf, readPart } from "./disk-node.ts"
import type { Entries, FileSource } from "./FileSource.ts"
import { treeOf } from "./tree.ts"

/**
 * Reads the files below one folder, and nothing else: neither `..` nor a symbolic link leads out of it. Paths start from
 * `root`, also those that begin with a slash.
 */
export interface Confined extends FileSource {
  readonly root: string
  /** The one folder in the root that can be read; empty where all of the root can. */
  readonly only: string
  /** The real path of a file or folder below; undefined where there is none, or where it lies elsewhere. */
  readonly locate: (path: string) => Effect.Effect<string | undefined>
  /** A text that changes when a file or folder does: its size and the time of its last change. */
  readonly stamp: (path: string) => Effect.Effect<string>
  /** The end of a file as text; undefined where there is no such file. */
  readonly tail: (file: string, bytes: number) => Effect.Effect<string | undefined>
}

/** Confines to a folder; to one folder in it, where `only` names one, whose paths still begin with its name. */
export const confinedTo = (folder: string, only = ""): Effect.Effect<Confined, FileError> =>
  Effect.tryPromise({
    try: async () => {
      const root = await realpath(folder)
      return confined(root, await realpath(join(root, only)), only)
    },
    catch: (error) => new FileError({ path: folder, missing: false, message: messageOf(error) }),
  })

/** Confines to a folder that is read by its own name, from the folder above it. */
export const confinedByName = ({ root }: Confined): Effect.Effect<Confined, FileError> =>
  confinedTo(dirname(root), basename(root))

const confined = (root: string, bounds: string, only: string): Confined => {
  const locate = (path: string): Promise<string | undefined> =>
    path.includes("\0")
      ? Promise.resolve(undefined)
      : realpath(join(root, path)).then(
          (real) => {
            const inside = relative(bounds, real)
            return inside === ".." || inside.startsWith(`..${sep}`) || isAbsolute(inside) ? undefined : real
          },
          () => undefined,
        )

  /** What cannot be read is as if it were missing: other people's folders may hold anything. */
  const reading = <A>(path: string, otherwise: A, body: (real: string) => Promise<A>): Effect.Effect<A> =>
    Effect.promise(() =>
      locate(path).then((real) => (real === undefined ? otherwise : body(real).catch(() => otherwise))),
    )

  const part: FileSource["part"] = (path, from, most) =>
    reading<Uint8Array | undefined>(path, undefined, async (real) => {
      await using file = await openFile(real)
      return await readPart(file, from, most)
    })

  const tail = (path: string, bytes: number): Effect.Effect<string | undefined> =>
    Effect.map(part(path, -bytes), (read) => (read === undefined ? undefined : utf8.decode(read)))

  const size = (path: string): Effect.Effect<number | undefined> =>
    reading<number | undefined>(path, undefined, (real) =>
      stat(real).then((status) => (status.isFile() ? status.size : undefined)),
    )

  const entries = (path: string): Effect.Effect<Entries> =>
    reading<Entries>(path, { files: [], folders: [] }, (real) => readdir(real, { withFileTypes: true }).then(entriesOf))

  return {
    root,
    only,
    locate: (path) => Effect.promise(() => locate(path)),
    stamp: (path) =>
      // Only the run's own folder is read by this, so a link needs no second look.
      Effect.promise(() =>
        stat(join(root, path)).then(
          (status) => `${status.size}:${status.mtimeMs}`,
          () => "",
        ),
      ),
    list: (folder) => Effect.map(entries(folder), ({ files, folders }) => [...files, ...folders]),
    folders: (folder) => Effect.map(entries(folder), ({ folders }) => folders),
    entries,
    text: (path) => Effect.map(part(path, 0), (read) => (read === undefined ? undefined : utf8.decode(read))),
    part,
    tail,
    size,
    tree: (folder) => treeOf({ entries, size }, folder),
    isAlive: (name) => Effect.sync(() => isAlive(name)),
    warn: () => Effect.void,
  }
}
