/**
 * Opens the folder of a run for writing, although the user may delete the folder at any moment. If the folder has vanished,
 * or was deleted and made again, a write fails as gone (`isGone`) and leaves nothing behind: it never creates the folder.
 *
 * @example
 * ```ts
 * const folder = yield* openRunFolder({ id: "run_a", directory: "out/run_a" })
 * yield* folder.guarded(folder.tree.write("note.txt", "trained"))
 * ```
 */
import { Effect, FileSystem, Option, Path, PlatformError } from "effect"
import { lostLease, mostBytes, type PlatformFailure, readText } from "../../base/files/files.ts"
import { type FileTree, onDisk } from "../../run/store/FileTree.ts"
import { RunStoreError, runStoreError } from "../../run/store/RunStoreError.ts"
import * as Layout from "../Layout.ts"
import { TrainerError } from "../TrainerError.ts"

/** The folder of a run that exists. */
export interface RunFolder {
  readonly id: string
  readonly directory: string
  /** The files in the folder. A write fails if the folder is no longer the one that was opened. */
  readonly tree: FileTree
  /** Runs an operation on the tree. If it fails because the folder is no longer the same, it fails as gone; see `isGone`. */
  readonly guarded: <A, E>(operation: Effect.Effect<A, E>) => Effect.Effect<A, E | TrainerError>
}

/** A run's folder with its identity. */
interface Guard {
  readonly directory: string
  /** The absolute path of the folder. */
  readonly root: string
  /** Reads the identity of the folder that is at this path now; undefined if there is none. */
  readonly now: Effect.Effect<string | undefined, RunStoreError>
  /** The identity of the folder when it was opened. A folder that was made again has another one. */
  readonly identity: string
  readonly gone: TrainerError
}

/** Opens the folder of a run; fails if it does not exist. */
export const openRunFolder = Effect.fnUntraced(function* ({
  id,
  directory,
}: Pick<RunFolder, "id" | "directory">): Effect.fn.Return<
  RunFolder,
  RunFolderError,
  FileSystem.FileSystem | Path.Path
> {
  const root = (yield* Path.Path).resolve(directory)
  const now = yield* identityOf(root)
  const gone = new TrainerError({
    reason: "gone",
    message: `${directory}: expected the folder of ${id}, which was deleted or replaced`,
  })
  const identity = yield* now
  if (identity === undefined) return yield* gone
  const guard: Guard = { directory, root, now, identity, gone }
  return {
    id,
    directory,
    tree: yield* guardedTree(guard),
    guarded: (operation) =>
      Effect.catch(operation, (error) =>
        Effect.matchEffect(now, {
          onSuccess: (current) => Effect.fail(current === identity ? error : gone),
          onFailure: () => Effect.fail(error),
        }),
      ),
  }
})

/**
 * Returns the Effect that reads the identity of a folder: its token or, without a token, its inode. A folder that was made
 * again may have the same inode, but not the token. Only the trainer writes tokens, so before that only the inode is known.
 */
const identityOf = Effect.fnUntraced(function* (root: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const context = yield* Effect.context<FileSystem.FileSystem>()
  const unreadable = Effect.mapError((error: PlatformFailure) => runStoreError("look at", root, error))
  // Only a missing file shows that there is no token; a file that cannot be read at the moment is an error.
  const token = readText(path.join(root, Layout.token), mostBytes.config).pipe(
    Effect.catchIf(
      ({ missing }) => missing,
      () => Effect.succeed(undefined),
    ),
    Effect.provideContext(context),
    unreadable,
  )
  const inode = fs.stat(root).pipe(
    Effect.map((info) => (info.type === "Directory" ? `${info.dev} ${Option.getOrNull(info.ino)}` : undefined)),
    Effect.catchReason("PlatformError", "NotFound", () => Effect.succeed(undefined)),
    unreadable,
  )
  return (yield* token) === undefined ? inode : token
})

/** Makes the failure of a change of the disk that was not made. */
const unchanged = (
  { directory }: Guard,
  method: string,
  {
    description,
    ...failure
  }: { readonly _tag: "NotFound" | "Unknown"; readonly description: string; readonly cause?: unknown },
) =>
  Effect.fail(
    PlatformError.systemError({ ...failure, module: "FileSystem", method, pathOrDescriptor: directory, description }),
  )

const refused = (guard: Guard, method: string) =>
  unchanged(guard, method, { _tag: "NotFound", description: guard.gone.message })

/** Makes a change of the disk only if the folder is still the same. */
const checked = <A>(guard: Guard, method: string, change: Effect.Effect<A, PlatformError.PlatformError>) =>
  Effect.matchEffect(guard.now, {
    onSuccess: (current) => (current === guard.identity ? change : refused(guard, method)),
    // If it is unknown whether the folder is the same, nothing is changed.
    onFailure: ({ code, message }) =>
      unchanged(guard, method, { _tag: "Unknown", description: message, cause: { code } }),
  })

/** Opens the files of a folder for changes that are made only while the folder is the same. */
const guardedTree = Effect.fnUntraced(function* (guard: Guard) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const { root, now, identity, gone } = guard
  const disk = yield* onDisk(root).pipe(
    Effect.provideService(FileSystem.FileSystem, {
      ...fs,
      makeDirectory: (folder, options) =>
        path.resolve(folder).startsWith(`${root}${path.sep}`)
          ? checked(guard, "makeDirectory", fs.makeDirectory(folder, options))
          : refused(guard, "makeDirectory"),
      // Every file is written under a temporary name and then renamed. If the folder is replaced after this check, the
      // temporary file vanishes with the old folder, so the rename fails.
      rename: (from, to) => checked(guard, "rename", fs.rename(from, to)),
    }),
  )
  /**
   * Checks the folder before each append. Growing files stay open, so without this check, writes would continue after another
   * process has taken over the folder.
   */
  const checkNow = Effect.flatMap(now, (current) =>
    current === identity
      ? Effect.void
      : Effect.fail(
          new RunStoreError({
            path: root,
            operation: "write",
            code: lostLease,
            message: `${gone.message}, or is trained by another process`,
          }),
        ),
  )
  return {
    ...disk,
    append: (file, contents) => Effect.andThen(checkNow, disk.append(file, contents)),
    appending: (file) =>
      Effect.map(disk.appending(file), (append) => (contents) => Effect.andThen(checkNow, append(contents))),
    truncate: (file, size) => Effect.andThen(checkNow, disk.truncate(file, size)),
    remove: (file) => Effect.andThen(checkNow, disk.remove(file)),
    link: (file, target) => Effect.andThen(checkNow, disk.link(file, target)),
  } satisfies FileTree
})

/** The errors of a write into the folder of a run. */
export type RunFolderError = TrainerError | RunStoreError
