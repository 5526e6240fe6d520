/**
 * Keeps the files of runs in a custom store, such as a database or the memory. The store implements a `Folder` for each
 * run: `RunStore.layer` and `Checkpoints.layer` take a function from the path of a run to its folder, and call
 * `treeOf`. Paths are relative to the folder, with `/`.
 *
 * @example
 * ```ts
 * import { KeyValueStore } from "effect/persistence"
 *
 * const folderIn = (store: KeyValueStore.KeyValueStore) => (directory: string): Folder.Folder => {
 *   const folder = KeyValueStore.prefix(store, `${directory}/`)
 *   return { read: folder.getUint8Array, write: folder.set, list: folder.keys, remove: folder.remove }
 * }
 * ```
 */
import { Effect } from "effect"
import * as Stream from "effect/Stream"
import { utf8 } from "../../base/text/utf8.ts"
import { bytesOf, type Contents, type FileTree, shownBelow } from "./FileTree.ts"
import { runStoreError, type RunStoreError } from "./RunStoreError.ts"

/** Any error that has a message for people. */
type Failure = { readonly message: string }

/**
 * The functions that a custom store implements for one folder. Several files may be read, written or removed at the same time; one
 * file is not.
 */
export interface Folder {
  /** Reads a file; undefined if it is missing. */
  readonly read: (path: string) => Effect.Effect<Uint8Array | undefined, Failure>
  /** Writes a new file, or replaces one as a whole. */
  readonly write: (path: string, bytes: Uint8Array) => Effect.Effect<void, Failure>
  /** Appends to a file. If left out, the file is read and written again as a whole. */
  readonly append?: (path: string, bytes: Uint8Array) => Effect.Effect<void, Failure>
  /** Lists the paths of all files. */
  readonly list: Effect.Effect<ReadonlyArray<string>, Failure>
  /** Removes a file. Succeeds if it is missing. */
  readonly remove: (path: string) => Effect.Effect<void, Failure>
}

const none = new Uint8Array(0)

/** Joins bytes: within the first array's buffer if that has room, otherwise in a new buffer of twice the size. */
export const joined = (bytes: Uint8Array, more: Uint8Array): Uint8Array => {
  const size = bytes.length + more.length
  const hasRoom = bytes.byteOffset === 0 && bytes.buffer.byteLength >= size
  const after = hasRoom ? new Uint8Array(bytes.buffer, 0, size) : new Uint8Array(new ArrayBuffer(2 * size), 0, size)
  if (!hasRoom) after.set(bytes)
  after.set(more, bytes.length)
  return after
}

const wholeOf = (contents: Contents): Uint8Array => {
  if (contents instanceof Uint8Array) return contents
  let bytes: Uint8Array = none
  for (const part of contents) bytes = joined(bytes, part)
  return bytes
}

/**
 * Makes the `FileTree` of a custom folder; `root` is its path in messages. A link is a file that holds the name of its
 * target. A directory is written file by file: a checkpoint whose write was interrupted lacks its last file, the
 * manifest, and counts as damaged.
 */
export const treeOf = (root: string, folder: Folder): FileTree => {
  const doing = <A>(operation: string, path: string, effect: Effect.Effect<A, Failure>) =>
    Effect.uninterruptible(Effect.mapError(effect, (error) => runStoreError(operation, `${root}/${path}`, error)))
  const pathsBelow = (operation: string, path: string) =>
    Effect.map(doing(operation, path, folder.list), (paths) =>
      path === "" || path === "." ? paths : paths.filter((one) => one === path || one.startsWith(`${path}/`)),
    )
  const bytesAt = (operation: string, path: string): Effect.Effect<Uint8Array, RunStoreError> =>
    Effect.flatMap(doing(operation, path, folder.read(path)), (bytes) =>
      bytes === undefined
        ? Effect.fail(runStoreError(operation, `${root}/${path}`, { message: "no such file or directory" }))
        : Effect.succeed(bytes),
    )
  const write = (path: string, bytes: Uint8Array) => doing("write", path, folder.write(path, bytes.slice()))
  const addTo =
    folder.append ??
    ((path, bytes) => Effect.flatMap(folder.read(path), (before = none) => folder.write(path, joined(before, bytes))))
  const append: FileTree["append"] = (path, contents) => doing("append to", path, addTo(path, bytesOf(contents)))
  const remove = (path: string) =>
    Effect.flatMap(pathsBelow("remove", path), (paths) =>
      Effect.forEach(paths, (one) => doing("remove", one, folder.remove(one)), { discard: true }),
    )

  return {
    root,
    pathOf: (path) => shownBelow(root, path),
    read: (path) => Effect.map(bytesAt("read", path), (bytes) => bytes.slice()),
    stream: (path, { offset, bytes: length } = { offset: 0, bytes: Infinity }) =>
      Stream.fromEffect(Effect.map(bytesAt("read", path), (bytes) => bytes.slice(offset, offset + length))),
    readText: (path) => Effect.map(bytesAt("read", path), (bytes) => utf8.decode(bytes)),
    write: (path, contents) => write(path, bytesOf(contents)),
    append,
    appending: (path) => Effect.succeed((contents) => append(path, contents)),
    truncate: (path, size) =>
      Effect.flatMap(bytesAt("cut", path), (bytes) => {
        const cut = new Uint8Array(size)
        cut.set(bytes.subarray(0, size))
        return doing("cut", path, folder.write(path, cut))
      }),
    sync: (path) => Effect.asVoid(bytesAt("flush", path)),
    exists: (path) => Effect.map(pathsBelow("look for", path), (paths) => paths.length > 0),
    size: (path) => Effect.map(bytesAt("look at", path), (bytes) => bytes.length),
    list: (path) =>
      Effect.map(pathsBelow("list", path), (paths) => {
        const start = path === "" || path === "." ? 0 : path.length + 1
        return [...new Set(paths.flatMap((one) => one.slice(start).split("/")[0] || []))].sort()
      }),
    remove,
    writeDirectory: Effect.fnUntraced(function* (path, files, last = () => ({})) {
      const parts = Object.entries(files).map(([name, contents]) => [name, wholeOf(contents)] as const)
      yield* remove(path)
      for (const [name, bytes] of [...parts, ...Object.entries(last())]) yield* write(`${path}/${name}`, bytes)
    }),
    link: (path, target) => write(path, utf8.encode(target)),
    target: (path) =>
      Effect.map(doing("read", path, folder.read(path)), (bytes) =>
        bytes === undefined ? undefined : utf8.decode(bytes),
      ),
    repair: () => Effect.void,
  }
}

/** Returns the function that opens a folder in memory. `files` maps `directory/path` of each file to its bytes. */
export const inMemory =
  (files: Map<string, Uint8Array>) =>
  (directory: string): Folder => {
    const at = (path: string): string => `${directory}/${path}`
    return {
      read: (path) => Effect.sync(() => files.get(at(path))),
      write: (path, bytes) => Effect.sync(() => void files.set(at(path), bytes)),
      append: (path, bytes) => Effect.sync(() => void files.set(at(path), joined(files.get(at(path)) ?? none, bytes))),
      list: Effect.sync(() =>
        [...files.keys()].flatMap((key) => (key.startsWith(`${directory}/`) ? [key.slice(directory.length + 1)] : [])),
      ),
      remove: (path) => Effect.sync(() => void files.delete(at(path))),
    }
  }
