/**
 * The service that opens the folder of a run, with Layers for the disk, for memory and for a custom store.
 *
 * @example
 * ```ts
 * const { layer, files } = RunStore.memory()
 * const result = yield* training.pipe(Effect.provide(layer))
 * new TextDecoder().decode(files.get(`${result.runDir}/metrics.json`))
 * ```
 */
import { Clock, Context, Effect, Layer, Path, type PlatformError, type Scope } from "effect"
import * as FileSystem from "effect/FileSystem"
import * as Schema from "effect/Schema"
import { type FileError, makeFolder } from "../../base/files/files.ts"
import { fenced, takeFence } from "./fence.ts"
import { type FileTree, onDisk } from "./FileTree.ts"
import { type Folder, inMemory, treeOf } from "./Folder.ts"
import { timeOf, toFlatPath, toPath, type RunIdentity } from "../identifier.ts"
import { indexRun } from "./indexFile.ts"
import { refuseLinksIn } from "./links.ts"
import { holdLock, type Owner, refuseHeld } from "./lock.ts"
import { foldersIn, ObjectStore } from "./objects/ObjectStore.ts"
import { makeRunFiles, type RunFiles } from "./RunFiles.ts"
import { RunStoreError, runStoreError } from "./RunStoreError.ts"
import * as Layout from "../Layout.ts"
import { prettyJson } from "../../base/text/text.ts"

export type { RunFiles } from "./RunFiles.ts"
export { RunStoreError } from "./RunStoreError.ts"

export interface FileSystemOptions {
  readonly resultsDir: string
  /** The start of the run, which is a part of its path. */
  readonly time: Date
  /** The commit of the code: seven hex digits, or `no-hash`. */
  readonly commit: string
  /** The layout of paths (see `identifier.ts`); `rltools` if left out. */
  readonly layout?: "rltools" | "flat"
  /** The folder of a run to resume, instead of a new one. */
  readonly resume?: string
  /** The name of this process. With it, the run is locked, and a run that another process writes is refused. */
  readonly owner?: Owner
  /** Whether to keep `index.txt` in the results folder. A page on a static web server finds the runs by this file. */
  readonly indexed?: boolean
  /** Whether to open the run to `resume` without a lock and without repairing its files. */
  readonly readOnly?: boolean
  /** The origin of the code, for `git.json` and `git.diff`; undefined outside of git. */
  readonly provenance?: Code | undefined
  /** The program that makes the run, which is saved in `code/`. */
  readonly code?: SavedCode | undefined
  /** Whether a config may choose its own results folder; true if left out. */
  readonly ownPlaces?: boolean
  /** Wraps the files of the run's folder, for example to copy them elsewhere as well. */
  readonly wrap?: (tree: FileTree, directory: string) => Effect.Effect<FileTree, RunStoreError, Scope.Scope>
  /** An Effect that runs as soon as the path of the run's folder is known. */
  readonly onOpen?: (directory: string) => Effect.Effect<void>
}

/** The origin of the code that made a run. */
export const Provenance = Schema.Struct({
  commit: Schema.String,
  /** Whether the code was changed since that commit, or git does not track a file of the program. */
  dirty: Schema.Boolean,
  /** The SHA-256 of the output of `git diff HEAD`; null if no tracked file was changed. */
  diff_sha256: Schema.NullOr(Schema.String),
  /** The files of the program by their paths in `code/`; left out for a run that no program made. */
  code: Schema.optionalKey(
    Schema.Array(Schema.Struct({ path: Schema.String, sha256: Schema.String, tracked: Schema.Boolean })),
  ),
})
export type Provenance = typeof Provenance.Type

/** The origin of the code, with its uncommitted changes as a patch for `git apply`. */
export interface Code extends Provenance {
  readonly diff?: string | undefined
}

/** A file of the program that makes a run. */
export interface CodeFile {
  /** The path below `code/`. */
  readonly path: string
  readonly content: Uint8Array
}

export interface SavedCode {
  readonly files: ReadonlyArray<CodeFile>
  /** How many files are left out, because they are too many or too large. */
  readonly leftOut: number
}

/** Describes the saved code for `run.log`. */
const codeNote = ({ files, leftOut }: SavedCode, provenance: Provenance | undefined): string => {
  const untracked = (provenance?.code ?? []).flatMap(({ path, tracked }) => (tracked ? [] : [path]))
  const others = files.length === 2 ? "1 file that it imports" : `${files.length - 1} files that it imports`
  return [
    `${Layout.code}/ has a copy of ${files[0].path}${files.length === 1 ? "" : ` and of ${others}`}`,
    ...(leftOut === 0 ? [] : [`${leftOut} more are left out, because they are too many or too large`]),
    ...(untracked.length === 0 ? [] : [`git does not track ${untracked.join(", ")}`]),
  ].join("; ")
}

const notARun = (directory: string): RunStoreError =>
  new RunStoreError({
    path: directory,
    operation: "resume",
    message: `${directory}: expected the folder of a run, found no config.yaml in it`,
  })

/** Options of a store that keeps runs elsewhere than in folders on disk. */
interface CustomOptions {
  /** The path of a run to resume, instead of a new one. */
  readonly resume?: string
  /** The start of a new run, which is a part of its path; the current time if left out. */
  readonly time?: Date
}

/** The results folder that a config chooses. The path of the run is then `{resultsDir}/{YYYYMMDD_HHMMSS}`. */
export interface OwnPlace {
  readonly resultsDir: string
}

/** Returns the path of a new run that starts `second` seconds after the time in the options. */
const pathOf = (
  options: Pick<FileSystemOptions, "time" | "commit" | "layout">,
  identity: RunIdentity,
  second: number,
) => {
  const time = timeOf(new Date(options.time.getTime() + second * 1000))
  return options.layout === "flat" ? toFlatPath({ time }) : toPath({ ...identity, time, commit: options.commit })
}

/** The functions that lock the folders of a store. Without an owner, they do nothing. */
interface FolderLocks {
  /** Locks a folder until the scope closes. */
  readonly lock: (directory: string) => Effect.Effect<void, RunStoreError, Scope.Scope>
  /** Fails if another living process holds the lock of a folder; changes nothing. */
  readonly refuseLocked: (directory: string) => Effect.Effect<void, RunStoreError>
  /** Declares a process of another machine dead, so that its locks are taken over. */
  readonly takeForDead: (holder: string) => void
}

const makeFolderLocks = Effect.fnUntraced(function* ({
  owner,
}: FileSystemOptions): Effect.fn.Return<FolderLocks, never, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  if (owner === undefined) return { lock: () => Effect.void, refuseLocked: () => Effect.void, takeForDead: () => {} }
  const dead = new Set<string>()
  const knowing: Owner = {
    name: owner.name,
    // A lease may name a process of this machine that lives and only left the run, or a stranger wrote it.
    isAlive: (name) => (dead.has(name) && owner.isLocal?.(name) !== true ? Effect.succeed(false) : owner.isAlive(name)),
  }
  return {
    // Only the file system is provided, and no scope: the scope of the run removes the lock when the run ends.
    lock: (directory) =>
      Effect.provideService(holdLock(path.join(directory, Layout.lock), knowing), FileSystem.FileSystem, fs),
    refuseLocked: (directory) =>
      Effect.provideService(refuseHeld(path.join(directory, Layout.lock), knowing), FileSystem.FileSystem, fs),
    takeForDead: (holder) => void dead.add(holder),
  }
})

/** Opens a folder that this process has locked. */
const openFenced = Effect.fnUntraced(function* (directory: string, locks: FolderLocks, owner: Owner | undefined) {
  if (owner === undefined) return yield* onDisk(directory)
  const fence = yield* takeFence(directory, owner.name)
  // The earlier processes held the lock of this folder, which we hold now, so they must be dead. Of those that died on another
  // machine, other locks are still there.
  fence.before.forEach(locks.takeForDead)
  return yield* fenced(directory, fence)
})

/** Makes the function that opens the folder of a run on disk: a new folder, or the one of the run to resume. */
const openOnDisk = Effect.fnUntraced(function* (defaults: FileSystemOptions, locks: FolderLocks) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const context = yield* Effect.context<FileSystem.FileSystem | Path.Path>()

  /** Creates the folder of a new run. If another run started in the same second, the next second is tried. */
  const claim = Effect.fnUntraced(function* (identity: RunIdentity, options: FileSystemOptions) {
    for (let second = 0; ; second++) {
      const relative = pathOf(options, identity, second)
      const directory = path.join(options.resultsDir, relative)
      const failing = Effect.mapError((error: PlatformError.PlatformError | FileError) =>
        runStoreError("create", directory, error),
      )
      yield* Effect.provideContext(makeFolder(path.dirname(directory)), context).pipe(failing)
      const isNew = yield* fs.makeDirectory(directory).pipe(
        Effect.as(true),
        Effect.catchReason("PlatformError", "AlreadyExists", () => Effect.succeed(false)),
        failing,
      )
      if (isNew) return directory
    }
  })

  const existing = Effect.fnUntraced(function* (directory: string) {
    const isRun = fs.exists(path.join(directory, Layout.config))
    if (!(yield* Effect.mapError(isRun, (error) => runStoreError("resume", directory, error))))
      return yield* notARun(directory)
    if (defaults.readOnly !== true) yield* Effect.provideContext(refuseLinksIn(directory), context)
    return directory
  })

  return Effect.fnUntraced(function* (identity: RunIdentity, place?: OwnPlace) {
    const options: FileSystemOptions =
      place === undefined || defaults.ownPlaces === false ? defaults : { ...defaults, ...place, layout: "flat" }
    const { resume, owner, onOpen, readOnly = false } = options
    const directory = yield* resume === undefined ? claim(identity, options) : existing(resume)
    // When the run ends or fails, update `index.txt`. A failure to update it does not fail the run.
    if (options.indexed === true)
      yield* Effect.addFinalizer(() => Effect.ignore(Effect.provideContext(indexRun(directory, owner), context)))
    if (readOnly) {
      const tree = yield* Effect.provideContext(onDisk(directory), context)
      return makeRunFiles({ ...tree, repair: () => Effect.void }, identity, true)
    }
    yield* locks.lock(directory)
    const disk = yield* Effect.provideContext(openFenced(directory, locks, owner), context)
    const tree = options.wrap === undefined ? disk : yield* options.wrap(disk, directory)
    if (resume !== undefined) yield* tree.repair("")
    if (onOpen !== undefined) yield* onOpen(directory)
    // A resumed run keeps the code, and the `git.json` and `git.diff`, that its first process wrote.
    if (resume !== undefined) return makeRunFiles(tree, identity, true)
    const { provenance, code } = options
    if (provenance !== undefined) {
      const { diff, ...rest } = provenance
      if (diff !== undefined) yield* tree.write(Layout.provenanceDiff, diff)
      yield* tree.write(Layout.provenance, prettyJson(rest))
    }
    if (code === undefined || code.files.length === 0) return makeRunFiles(tree, identity, false)
    yield* tree.writeDirectory(Layout.code, Object.fromEntries(code.files.map(({ path, content }) => [path, content])))
    return makeRunFiles(tree, identity, false, [codeNote(code, provenance)])
  })
})

/** The service that opens the folder of a run: of a new run, or of the run to resume, as the options of its Layer say. */
export class RunStore extends Context.Service<
  RunStore,
  {
    /** Whether `open` resumes a run instead of making a new one. */
    readonly resumes: boolean
    readonly open: (identity: RunIdentity, place?: OwnPlace) => Effect.Effect<RunFiles, RunStoreError, Scope.Scope>
    /**
     * Locks a folder for this process, as `open` locks the run. Fails if another living process holds the lock. The process
     * that had opened the run before it was resumed counts as dead.
     */
    readonly lock: (directory: string) => Effect.Effect<void, RunStoreError, Scope.Scope>
    /** Fails if another living process holds the lock of a folder, as `lock` does, but changes nothing. */
    readonly refuseLocked: (directory: string) => Effect.Effect<void, RunStoreError>
    /** Opens any folder of the store, such as the folder of another run, to read from it. */
    readonly folderAt: (path: string) => Effect.Effect<FileTree>
  }
>()("effect-rl/run/RunStore") {
  /** Makes the Layer that keeps runs in folders on disk. */
  static readonly layerFileSystem = (
    options: FileSystemOptions,
  ): Layer.Layer<RunStore, never, FileSystem.FileSystem | Path.Path> =>
    Layer.effect(
      RunStore,
      Effect.gen(function* () {
        const context = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
        const folderAt = (path: string) => Effect.provideContext(onDisk(path), context)
        const locks = yield* makeFolderLocks(options)
        const open = yield* openOnDisk(options, locks)
        const { lock, refuseLocked } = locks
        return RunStore.of({ open, lock, refuseLocked, resumes: options.resume !== undefined, folderAt })
      }),
    )

  /**
   * Makes the Layer that keeps runs in a custom store. `folderAt` opens the folder of a run by the run's path.
   *
   * @example
   * ```ts
   * const files = new Map<string, Uint8Array>()
   * const store = RunStore.layer(Folder.inMemory(files))
   * ```
   */
  static readonly layer = (
    folderAt: (directory: string) => Folder,
    { resume, time }: CustomOptions = {},
  ): Layer.Layer<RunStore> => {
    const open = Effect.fnUntraced(function* (identity: RunIdentity) {
      if (resume !== undefined) {
        const tree = treeOf(resume, folderAt(resume))
        return (yield* tree.exists(Layout.config)) ? makeRunFiles(tree, identity, true) : yield* notARun(resume)
      }
      const start = time ?? new Date(yield* Clock.currentTimeMillis)
      for (let second = 0; ; second++) {
        const directory = pathOf({ time: start, commit: "no-hash" }, identity, second)
        const tree = treeOf(directory, folderAt(directory))
        if ((yield* tree.list("")).length === 0) return makeRunFiles(tree, identity, false)
      }
    })
    const folderOf = (path: string) => Effect.sync(() => treeOf(path, folderAt(path)))
    const unlocked = { lock: () => Effect.void, refuseLocked: () => Effect.void }
    return Layer.succeed(RunStore, { resumes: resume !== undefined, open, ...unlocked, folderAt: folderOf })
  }

  /**
   * Makes the Layer that keeps runs in an object store: a browser's database, a bucket of R2, or any `KeyValueStore`.
   *
   * @example
   * ```ts
   * const stored = RunStore.layerObjects().pipe(Layer.provide(ObjectStore.layerMemory))
   * ```
   */
  static readonly layerObjects = (options?: CustomOptions): Layer.Layer<RunStore, never, ObjectStore> =>
    Layer.unwrap(Effect.map(ObjectStore, (store) => RunStore.layer(foldersIn(store), options)))

  /**
   * Keeps runs in memory, for tests and for programs that keep nothing. Returns the Layer, and the map of all files by
   * their paths. `resume` is the path of a run in `files` to resume.
   */
  static readonly memory = ({
    files = new Map<string, Uint8Array>(),
    resume,
  }: { readonly files?: Map<string, Uint8Array>; readonly resume?: string } = {}) => ({
    files,
    layer: RunStore.layer(inMemory(files), { ...(resume === undefined ? {} : { resume }), time: new Date(0) }),
  })

  static readonly layerMemory: Layer.Layer<RunStore> = Layer.suspend(() => RunStore.memory().layer)
}
