/** Reads the files of runs in any folder on disk, for the commands. It writes nothing. */
import { type Dirent, readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { FileError, mostBytes } from "../../base/files/files.ts"
import { readPartSync, readTextSync } from "../../base/files/files-node.ts"
import { messageOf } from "../../base/text/text.ts"
import { owner } from "../store/owner-node.ts"
import { compareText } from "../find/RunEntry.ts"
import { type Entries, type FileSize, type FileSource, mostAtOnce } from "./FileSource.ts"

/** Makes a source that reads any folder on disk, and reports damaged files to `warn`. */
export const diskSource = (warn: FileSource["warn"]): FileSource => {
  /**
   * Calls `body`, and returns `otherwise` if it throws. A missing file is not reported, because a user may have deleted the
   * run.
   */
  const reading = <A>(path: string, otherwise: A, body: () => A): Effect.Effect<A> =>
    Effect.catch(Effect.try({ try: body, catch: (error) => error }), (error) =>
      Effect.as(isMissing(error) ? Effect.void : warn(`${path}: ${messageOf(error)}`), otherwise),
    )
  const listed = (folder: string): ReadonlyArray<Dirent> => readdirSync(folder, { withFileTypes: true })
  /** Lists all files below a folder. Node's own recursive listing would follow links. */
  const filesBelow = (folder: string, prefix = ""): ReadonlyArray<FileSize> =>
    listed(folder).flatMap((one) => {
      const [file, path] = [join(folder, one.name), `${prefix}${one.name}`]
      if (one.isDirectory()) return filesBelow(file, `${path}/`)
      const status = one.isFile() ? statSync(file, { throwIfNoEntry: false }) : undefined
      return status === undefined ? [] : [{ path, bytes: status.size }]
    })
  const none: ReadonlyArray<string> = []
  return {
    list: (folder) => reading(folder, none, () => readdirSync(folder)),
    folders: (folder) =>
      reading(folder, none, () => listed(folder).flatMap((one) => (one.isDirectory() ? one.name : []))),
    entries: (folder) => reading<Entries>(folder, { files: [], folders: [] }, () => entriesOf(listed(folder))),
    text: (file) => reading<string | undefined>(file, undefined, () => readTextSync(file, mostBytes.text)),
    part: (file, from, most = mostAtOnce) =>
      reading<Uint8Array | undefined>(file, undefined, () => readPartSync(file, from, most)),
    size: (file) => reading<number | undefined>(file, undefined, () => statSync(file).size),
    tree: (folder) =>
      reading<ReadonlyArray<FileSize>>(folder, [], () =>
        filesBelow(folder).toSorted((a, b) => compareText(a.path, b.path)),
      ),
    isAlive: owner.isAlive,
    warn,
  }
}

/** A source that reads from disk and does not report damaged files. */
export const silentSource = diskSource(() => Effect.void)

const isMissing = (error: unknown): boolean =>
  error instanceof FileError
    ? error.missing
    : error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR")

/** Returns the sorted names of files and folders, without hidden entries and links. */
export const entriesOf = (all: ReadonlyArray<Dirent>): Entries => {
  const names = (wanted: (entry: Dirent) => boolean): ReadonlyArray<string> =>
    all
      .filter((entry) => wanted(entry) && !entry.name.startsWith("."))
      .map(({ name }) => name)
      .sort()
  return { files: names((entry) => entry.isFile()), folders: names((entry) => entry.isDirectory()) }
}
