/** Declares the interface with which `RunReader` reads files, and lists the files below a folder. */
import { Effect } from "effect"

/**
 * Reads the files of runs, for `RunReader`. No operation fails: a file that is missing is `undefined`, a folder that is
 * missing is empty, and a file that exists but cannot be read is reported by `warn`. `disk-node.ts` reads any folder
 * on disk; `confined-node.ts` reads one folder only, and follows no path or link out of it.
 */
export interface FileSource {
  /** Lists the names in a folder. */
  readonly list: (folder: string) => Effect.Effect<ReadonlyArray<string>>
  /**
   * Lists the names of folders in a folder. Links are left out, because they can lead out of the folder, or into an endless
   * loop.
   */
  readonly folders: (folder: string) => Effect.Effect<ReadonlyArray<string>>
  /** Lists the names of files and of folders in a folder, sorted. Hidden entries and links are left out. */
  readonly entries: (folder: string) => Effect.Effect<Entries>
  readonly text: (file: string) => Effect.Effect<string | undefined>
  /** Reads at most `most` bytes of a file from a position. A negative position counts from the end. */
  readonly part: (file: string, from: number, most?: number) => Effect.Effect<Uint8Array | undefined>
  readonly size: (file: string) => Effect.Effect<number | undefined>
  /** Lists all files below a folder, by their paths relative to the folder, sorted. */
  readonly tree: (folder: string) => Effect.Effect<ReadonlyArray<FileSize>>
  /** Tells whether the process with this name (as in a run's lock file) is still running. */
  readonly isAlive: (name: string) => Effect.Effect<boolean>
  /** Reports a damaged file to the user. `RunReader` calls it at most once for each file of a run. */
  readonly warn: (message: string) => Effect.Effect<void>
}

export interface Entries {
  readonly files: ReadonlyArray<string>
  readonly folders: ReadonlyArray<string>
}

export interface FileSize {
  readonly path: string
  readonly bytes: number
}

interface TreeOptions {
  readonly most?: number
  /** Tells whether to leave out a folder, from its path relative to the folder whose files are listed. */
  readonly isLeftOut?: (folder: string) => boolean
}

/** The largest number of bytes that one call of `part` returns if `most` is left out. */
export const mostAtOnce = 32 * 1024 * 1024

/**
 * Lists the files below a folder with their sizes. If there are more than `most` files, the deepest ones are left out. A
 * folder for which `isLeftOut` is true is left out with its content.
 */
export const treeOf = Effect.fnUntraced(function* (
  source: Pick<FileSource, "entries" | "size">,
  top: string,
  { most = Infinity, isLeftOut = () => false }: TreeOptions = {},
): Effect.fn.Return<ReadonlyArray<FileSize>> {
  const listed: Array<FileSize> = []
  const queue = [""]
  for (let folder = queue.shift(); folder !== undefined && listed.length < most; folder = queue.shift()) {
    const below = (name: string): string => (folder === "" ? name : `${folder}/${name}`)
    const { files, folders } = yield* source.entries(`${top}/${folder}`)
    for (const name of files.slice(0, most - listed.length)) {
      listed.push({ path: below(name), bytes: (yield* source.size(`${top}/${below(name)}`)) ?? 0 })
    }
    for (const path of folders.map(below)) if (!isLeftOut(path)) queue.push(path)
  }
  return listed
})
