/** The files of one run. It hashes the growing files (scores, logs …), so that a resume can check them. */
import { Effect } from "effect"
import { shownPath } from "../../base/files/files.ts"
import { type Appended, hashPrefix, type Prefix } from "./appended.ts"
import type { FileTree } from "./FileTree.ts"
import { config, growingFolders, growingLogs, locate, type Places } from "../Layout.ts"
import type { RunIdentity } from "../identifier.ts"
import { RunStoreError } from "./RunStoreError.ts"

/** The folder of one run. A growing file is one that the run appends to, such as a file of scores. */
export interface RunFiles extends FileTree {
  /** The path of the folder. `--resume` accepts it. */
  readonly directory: string
  readonly identity: RunIdentity
  /** Whether the folder has files of an earlier process, and the run is resumed. */
  readonly resumed: boolean
  /** Notes about the folder, which are written to `run.log` at the start of the run. */
  readonly notes: ReadonlyArray<string>
  /** The sizes of the growing files now. */
  readonly sizes: Effect.Effect<Appended["sizes"], RunStoreError>
  /**
   * Flushes the growing files to disk, and returns these sizes with the digests of the content up to them. The files may grow
   * meanwhile. Reads only bytes that are new since the last call. It must not be called again before it has returned.
   */
  readonly appendedAt: (sizes: Appended["sizes"]) => Effect.Effect<Appended, RunStoreError>
  /** Lists the growing files that, up to their sizes in `moment`, no longer have the content that they had then. */
  readonly changedSince: (moment: Appended) => Effect.Effect<ReadonlyArray<Changed>, RunStoreError>
  /**
   * Cuts the growing files back to their sizes in `moment`, and removes those created since. `run.log` does not count
   * as a growing file, so it stays whole.
   */
  readonly cutBack: (moment: Pick<Appended, "sizes">) => Effect.Effect<void, RunStoreError>
  /** Returns the files of this run for a config that moves some of them to other paths. Callers use the usual paths. */
  readonly placed: (places: Places) => RunFiles
}

/** A growing file that differs from its state at a checkpoint. */
export interface Changed {
  readonly file: string
  /** The difference, e.g. `expected at least 20 bytes, found 3`. */
  readonly problem: string
}

/** The number of files that are examined or flushed at the same time: several at once take hardly longer than one. */
const concurrency = 8

/** Lists the growing files that a run has now. */
const growingFilesIn = (tree: FileTree) => {
  const inFolders = Effect.forEach(
    Object.entries(growingFolders),
    ([folder, names]) =>
      Effect.map(tree.list(folder), (files) =>
        files.filter((name) => !name.startsWith(".") && names.test(name)).map((name) => `${folder}/${name}`),
      ),
    { concurrency },
  )
  const logs = Effect.filter(growingLogs, (file) => tree.exists(file), { concurrency })
  return Effect.zipWith(inFolders, logs, (folders, files) => [...folders.flat(), ...files], {
    concurrent: true,
  })
}

/** Makes the files of a run from the tree of its folder. Hashes of growing files are kept in memory. */
export const makeRunFiles = (
  tree: FileTree,
  identity: RunIdentity,
  resumed: boolean,
  notes: ReadonlyArray<string> = [],
): RunFiles => {
  /** The hash of each file, up to the size to which it has been hashed. */
  const hashed = new Map<string, Prefix>()

  const growingFiles = growingFilesIn(tree)

  const hash = Effect.fnUntraced(function* (file: string, size: number) {
    const before = hashed.get(file)
    if (before?.size === size) return before
    const prefix = yield* hashPrefix(tree, file, size, before)
    hashed.set(file, prefix)
    return prefix
  })

  /** Forgets the hash of a file (or of each file in a folder) that covers more than its first `size` bytes. */
  const forget = (path: string, size = -1) =>
    Effect.sync(() => {
      for (const [file, prefix] of hashed) {
        if ((file === path || file.startsWith(`${path}/`)) && prefix.size > size) hashed.delete(file)
      }
    })

  const problemOf = Effect.fnUntraced(function* (file: string, size: number, digest: string | undefined) {
    const now = (yield* tree.exists(file)) ? yield* tree.size(file) : 0
    if (now < size) return `expected at least ${size} bytes, found ${now}`
    if (digest === undefined) return "the checkpoint has no digest of it"
    if (digest === (yield* hash(file, size)).digest) return undefined
    return `its first ${size} bytes were changed`
  })

  return {
    ...tree,
    write: (path, contents, how) => Effect.andThen(forget(path), tree.write(path, contents, how)),
    truncate: (path, size) => Effect.andThen(forget(path, size), tree.truncate(path, size)),
    remove: (path) => Effect.andThen(forget(path), tree.remove(path)),
    placed: (places) => makeRunFiles(relocated(tree, places), identity, resumed, notes),
    directory: tree.root,
    identity,
    resumed,
    notes,
    sizes: Effect.gen(function* () {
      const sizeOf = (file: string) => Effect.map(tree.size(file), (size) => [file, size] as const)
      return Object.fromEntries(yield* Effect.forEach(yield* growingFiles, sizeOf, { concurrency }))
    }),
    appendedAt: Effect.fnUntraced(function* (sizes) {
      const flush = Effect.fnUntraced(function* ([file, size]: readonly [string, number]) {
        // Flush the file, except if it was flushed and hashed at this size before.
        if (hashed.get(file)?.size !== size) yield* tree.sync(file)
        return [file, (yield* hash(file, size)).digest] as const
      })
      const digests = yield* Effect.forEach(Object.entries(sizes), flush, { concurrency })
      return { sizes, digests: Object.fromEntries(digests) }
    }),
    changedSince: Effect.fnUntraced(function* ({ sizes, digests }) {
      const changed: Array<Changed> = []
      for (const [file, size] of Object.entries(sizes)) {
        const problem = yield* problemOf(file, size, Object.hasOwn(digests, file) ? digests[file] : undefined)
        if (problem !== undefined) changed.push({ file, problem })
      }
      return changed
    }),
    cutBack: Effect.fnUntraced(function* ({ sizes }) {
      for (const file of yield* growingFiles) {
        if (!Object.hasOwn(sizes, file)) yield* tree.remove(file)
        else if ((yield* tree.size(file)) > sizes[file]) yield* tree.truncate(file, sizes[file])
      }
    }),
  }
}

/** Wraps a tree so that some files and folders are stored elsewhere. Callers still use the usual paths. */
export const relocated = (tree: FileTree, places: Places): FileTree => {
  if (Object.keys(places).length === 0) return tree
  const at = (path: string): string => locate(places, path)
  return {
    root: tree.root,
    pathOf: (path) => tree.pathOf(at(path)),
    read: (path) => tree.read(at(path)),
    stream: (path, part) => tree.stream(at(path), part),
    readText: (path) => tree.readText(at(path)),
    write: (path, contents, how) => tree.write(at(path), contents, how),
    append: (path, contents) => tree.append(at(path), contents),
    appending: (path) => tree.appending(at(path)),
    truncate: (path, size) => tree.truncate(at(path), size),
    sync: (path) => tree.sync(at(path)),
    exists: (path) => tree.exists(at(path)),
    size: (path) => tree.size(at(path)),
    list: (path) => tree.list(at(path)),
    remove: (path) => tree.remove(at(path)),
    writeDirectory: (path, files, last) => tree.writeDirectory(at(path), files, last),
    link: (path, target) => tree.link(at(path), target),
    target: (path) => tree.target(at(path)),
    repair: (path) => tree.repair(at(path)),
  }
}

/**
 * Fails if the run's folder was moved or deleted. Otherwise, the open files of scores and logs would grow in the moved
 * folder, while checkpoints would create a second folder at the old path.
 */
export const refuseIfMoved = Effect.fnUntraced(function* ({ directory, exists }: RunFiles) {
  if (yield* exists(config)) return
  const message = `cannot write ${shownPath(directory)}: the folder was moved or deleted during the run; resume the run where its folder is now`
  return yield* new RunStoreError({ path: directory, operation: "write", message })
})
