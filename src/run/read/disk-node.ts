import { type Dirent, readdirSync } from "node:fs"
import { type FileHandle, readdir, stat } from "node:fs/promises"
import { join, sep } from "node:path"
import { Effect } from "effect"
import { FileError, mostBytes } from "../../config/files.ts"
import { openFile, readTextSync } from "../../config/files-node.ts"
import { messageOf } from "../../config/text.ts"
import { owner } from "../store/owner-node.ts"
import { type Entries, type FileSource, mostAtOnce } from "./FileSource.ts"

/**
 * Reads the runs in any folder. Small files and folders are read synchronously: over ten thousand runs, promises would take
 * most of the time.
 */
export const diskSource = (warn: FileSource["warn"]): FileSource => {
  /** Reads, and returns `otherwise` if the file or folder is missing: runs may appear and disappear during a listing. */
  const reading = <A>(path: string, body: () => A | Promise<A>, otherwise: A): Effect.Effect<A> =>
    Effect.catch(Effect.tryPromise({ try: async () => await body(), catch: (error) => error }), (error) =>
      Effect.as(isMissing(error) ? Effect.void : warn(`${path}: ${messageOf(error)}`), otherwise),
    )
  const listed = (folder: string): ReadonlyArray<Dirent> => readdirSync(folder, { withFileTypes: true })
  const nothing: Entries = { files: [], folders: [] }
  return {
    list: (folder) => reading<ReadonlyArray<string>>(folder, () => readdirSync(folder), []),
    folders: (folder) =>
      reading<ReadonlyArray<string>>(folder, () => listed(folder).flatMap((one) => (one.isFile() ? [] : one.name)), []),
    entries: (folder) => reading(folder, () => entriesOf(listed(folder)), nothing),
    text: (file) => reading<string | undefined>(file, () => readTextSync(file, mostBytes.text), undefined),
    part: (file, from, most) =>
      reading<Uint8Array | undefined>(
        file,
        async () => {
          await using handle = await openFile(file)
          return await readPart(handle, from, most)
        },
        undefined,
      ),
    size: (file) => reading<number | undefined>(file, () => stat(file).then(({ size }) => size), undefined),
    tree: (folder) =>
      reading(folder, async () => {
        const files = (await readdir(folder, { recursive: true, withFileTypes: true }))
          .filter((one) => one.isFile())
          .map((one) => join(one.parentPath, one.name))
        const sizes = await Promise.all(
          files.map(async (file) => {
            const bytes = await stat(file).then(
              ({ size }) => size,
              () => undefined,
            )
            const path = file.slice(join(folder, sep).length).replaceAll(sep, "/")
            return bytes === undefined ? [] : [{ path, bytes }]
          }),
        )
        return sizes.flat().sort((a, b) => (a.path < b.path ? -1 : 1))
      }, []),
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

/** Reads some bytes of an open file. */
export const readPart = async (file: FileHandle, from: number, most = mostAtOnce): Promise<Uint8Array> => {
  const { size } = await file.stat()
  const start = from < 0 ? Math.max(0, size + from) : Math.min(from, size)
  const bytes = Buffer.allocUnsafe(Math.min(most, size - start))
  let filled = 0
  while (filled < bytes.length) {
    const { bytesRead } = await file.read(bytes, filled, bytes.length - filled, start + filled)
    if (bytesRead === 0) break
    filled += bytesRead
  }
  return bytes.subarray(0, filled)
}
