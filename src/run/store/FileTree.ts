/**
 * The interface of a folder of files, and its implementation on disk. Paths are relative to the folder, with `/`. A file
 * is written as a whole or not at all, even if the machine stops meanwhile: the content goes to a temporary name, is
 * flushed to disk, and is renamed into place.
 *
 * Temporary names start with a dot: `.NAME.tmp` or `.NAME.WRITER.tmp` is being written or removed, `.NAME.old` was replaced by a
 * new NAME.
 */
import { type Context, Effect, Path, type PlatformError, Scope } from "effect"
import * as FileSystem from "effect/FileSystem"
import * as Stream from "effect/Stream"
import { checkFile, FileError, makeFolder, mostBytes, readBytes } from "../../base/files/files.ts"
import { blocksOf } from "./blocks.ts"
import { type RefusedLinks, refuseLinkOnPath } from "./links.ts"
import { runStoreError, type RunStoreError } from "./RunStoreError.ts"
import { utf8 } from "../../base/text/utf8.ts"

/**
 * The content of a file: bytes, or parts that are made while they are written. The writer asks for the next part only
 * after it has written the previous one, so all parts can share one buffer.
 */
export type Contents = Uint8Array | Iterable<Uint8Array>

/** A range of bytes in a file. */
export interface Part {
  readonly offset: number
  readonly bytes: number
}

/**
 * A folder of files. Its implementations are `onDisk` here and `treeOf` in `Folder.ts`, for custom stores. Several files may be
 * read, written or flushed at the same time.
 */
export interface FileTree {
  /** The path of the folder, for messages. */
  readonly root: string
  /** Returns the whole path of a file or folder, for messages. */
  readonly pathOf: (path: string) => string
  readonly read: (path: string) => Effect.Effect<Uint8Array, RunStoreError>
  /** Reads a file in parts, for large files; `part` selects a range of its bytes. */
  readonly stream: (path: string, part?: Part) => Stream.Stream<Uint8Array, RunStoreError>
  readonly readText: (path: string) => Effect.Effect<string, RunStoreError>
  /**
   * Writes a file as a whole or not at all. With `durable: false`, it is cheaper but can be lost if the machine stops.
   */
  readonly write: (
    path: string,
    contents: Uint8Array | string,
    how?: { readonly durable: boolean },
  ) => Effect.Effect<void, RunStoreError>
  /** Appends to a file. This is not atomic: a reader may see an incomplete line at the end. */
  readonly append: (path: string, contents: Uint8Array | string) => Effect.Effect<void, RunStoreError>
  /** Returns a function for many appends to a file. Its first call opens the file, and the scope closes it. */
  readonly appending: (path: string) => Effect.Effect<Append, never, Scope.Scope>
  readonly truncate: (path: string, size: number) => Effect.Effect<void, RunStoreError>
  /** Flushes the content of a file to disk. `append` does not do that. */
  readonly sync: (path: string) => Effect.Effect<void, RunStoreError>
  readonly exists: (path: string) => Effect.Effect<boolean, RunStoreError>
  readonly size: (path: string) => Effect.Effect<number, RunStoreError>
  /** Lists the names in a folder, sorted. For a missing folder the list is empty. */
  readonly list: (path: string) => Effect.Effect<ReadonlyArray<string>, RunStoreError>
  /** Removes a file, or a folder with its content, as a whole or not at all. Succeeds if it is missing. */
  readonly remove: (path: string) => Effect.Effect<void, RunStoreError>
  /**
   * Writes a folder with these files, as a whole or not at all, and replaces a folder with the same name. A name in `files`
   * may begin with folders. `last` is called after the others are written, and returns more files, whose content is known
   * only then.
   */
  readonly writeDirectory: (
    path: string,
    files: Readonly<Record<string, Contents>>,
    last?: () => Readonly<Record<string, Uint8Array>>,
  ) => Effect.Effect<void, RunStoreError>
  /** Makes `path` a symbolic link to its sibling `target`, and replaces an earlier link atomically. */
  readonly link: (path: string, target: string) => Effect.Effect<void, RunStoreError>
  /** Returns the target of a link; undefined if there is no link at the path. */
  readonly target: (path: string) => Effect.Effect<string | undefined, RunStoreError>
  /** Completes or undoes changes in a folder that a killed process left unfinished. Their temporary names show what to do. */
  readonly repair: (path: string) => Effect.Effect<void, RunStoreError>
}

export type Append = (contents: Uint8Array | string) => Effect.Effect<void, RunStoreError>

export const bytesOf = (contents: Uint8Array | string): Uint8Array =>
  typeof contents === "string" ? utf8.encode(contents) : contents

/** Joins the path of a folder with a path in it, for messages; an absolute path stays. */
export const shownBelow = (root: string, path: string): string =>
  path.startsWith("/") ? path : path === "." || path === "" ? root : `${root}/${path}`

type Failure = PlatformError.PlatformError | FileError

const isMissing = (error: Failure): boolean =>
  error instanceof FileError ? error.missing : error.reason._tag === "NotFound"

/** A folder on disk, and the file system through which it is read and written. */
interface DiskFolder {
  readonly root: string
  /** A number in the names of temporary files, which separates this process's files from those of another process. */
  readonly writer: number | undefined
  readonly followsLinks: boolean
  readonly fs: FileSystem.FileSystem
  readonly path: Path.Path
  readonly context: Context.Context<FileSystem.FileSystem | Path.Path>
}

/** Returns the path of a file on disk. A config can place some of a run's files at absolute paths. */
const at = (folder: DiskFolder, relative: string): string =>
  folder.path.isAbsolute(relative) ? relative : folder.path.join(folder.root, relative)
/** Returns the name of a file or folder with a dot before it and an ending. */
const hidden = (folder: DiskFolder, final: string, ending: string): string =>
  folder.path.join(folder.path.dirname(final), `.${folder.path.basename(final)}.${ending}`)
const temporaryOf = (folder: DiskFolder, final: string): string =>
  hidden(folder, final, folder.writer === undefined ? "tmp" : `${folder.writer}.tmp`)

const refuseLinks = (folder: DiskFolder, relative: string, refused: RefusedLinks): Effect.Effect<void, FileError> =>
  folder.followsLinks ? Effect.void : refuseLinkOnPath(folder, folder.root, at(folder, relative), refused)

/** Makes an Effect uninterruptible, and converts its failure to the error "cannot `operation` `relative`: …". */
const doing = <A>(
  folder: DiskFolder,
  operation: string,
  relative: string,
  effect: Effect.Effect<A, Failure, Scope.Scope>,
  refused: RefusedLinks = "any",
) =>
  Effect.scoped(Effect.andThen(refuseLinks(folder, relative, refused), effect)).pipe(
    Effect.uninterruptible,
    Effect.mapError((error) => runStoreError(operation, at(folder, relative), error)),
  )

const makeDirectory = (folder: DiskFolder, directory: string) =>
  Effect.provideContext(makeFolder(directory), folder.context)

/**
 * Runs `effect`, which reads a file. Fails if the file has more than `most` bytes or is not regular: reading a pipe
 * or a device may never end.
 */
const reading = <A>(
  folder: DiskFolder,
  relative: string,
  most: number,
  effect: Effect.Effect<A, PlatformError.PlatformError>,
) =>
  doing(
    folder,
    "read",
    relative,
    Effect.andThen(Effect.provideContext(checkFile(at(folder, relative), most), folder.context), effect),
  )

const syncFile = (folder: DiskFolder, file: string) =>
  Effect.scoped(Effect.flatMap(folder.fs.open(file, { flag: "r+" }), (handle) => handle.sync))

/** Flushes a folder to disk, so that a rename within it survives a crash. */
const syncDirectory = (folder: DiskFolder, directory: string) =>
  Effect.scoped(Effect.flatMap(folder.fs.open(directory, { flag: "r" }), (handle) => handle.sync)).pipe(
    // Some systems can't flush folders; on these, renames are safe without it.
    Effect.ignore,
  )

/** Writes a new file, and flushes it to disk. */
const writeSynced = (folder: DiskFolder, file: string, contents: Contents) =>
  Effect.scoped(
    Effect.gen(function* () {
      const handle = yield* folder.fs.open(file, { flag: "wx" })
      for (const block of contents instanceof Uint8Array ? [contents] : blocksOf(contents))
        yield* handle.writeAll(block)
      yield* handle.sync
    }),
  )

const erase = (folder: DiskFolder, file: string) => folder.fs.remove(file, { recursive: true, force: true })

/** Removes a temporary file or folder if what makes it, or puts it into place, fails. */
const cleaned =
  (folder: DiskFolder, temporary: string) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.onError(effect, () => Effect.ignore(erase(folder, temporary)))

/** Writes a new file. If something has its name, which may be a link to a file elsewhere, removes that and tries again. */
const replacing = <A, R>(folder: DiskFolder, file: string, write: Effect.Effect<A, PlatformError.PlatformError, R>) =>
  Effect.catchReason(write, "PlatformError", "AlreadyExists", () => Effect.andThen(erase(folder, file), write))

/** Removes a file or folder. Renames it first, because a half-removed folder would look like a damaged one. */
const remove = (folder: DiskFolder, final: string) => {
  const temporary = temporaryOf(folder, final)
  return erase(folder, temporary).pipe(
    Effect.andThen(folder.fs.rename(final, temporary)),
    Effect.andThen(erase(folder, temporary)),
    Effect.catchIf(isMissing, () => Effect.void),
  )
}

/** Runs an operation on a file. If the file's folder is missing, creates it and tries again. */
const inFolder = <A, R>(folder: DiskFolder, file: string, effect: Effect.Effect<A, PlatformError.PlatformError, R>) =>
  Effect.catchIf(effect, isMissing, () => Effect.andThen(makeDirectory(folder, folder.path.dirname(file)), effect))

const openToAppend = (folder: DiskFolder, file: string) => inFolder(folder, file, folder.fs.open(file, { flag: "a" }))

const appending = Effect.fnUntraced(function* (
  folder: DiskFolder,
  relative: string,
): Effect.fn.Return<Append, never, Scope.Scope> {
  // Acquire the scope that closes the file now, although the file is opened later. Finalizers run in reverse order, so those
  // that the caller adds after this run while the file is still open.
  const scope = yield* Effect.acquireRelease(Scope.make(), (scope, exit) => Scope.close(scope, exit))
  let opened: FileSystem.File | undefined
  return (contents) =>
    doing(
      folder,
      "append to",
      relative,
      Effect.gen(function* () {
        if (opened === undefined) {
          yield* refuseLinks(folder, relative, "any")
          opened = yield* Scope.provide(openToAppend(folder, at(folder, relative)), scope)
        }
        yield* opened.writeAll(bytesOf(contents))
      }),
      // The links are refused when the file is opened, not at each append.
      "none",
    )
})

/** Writes a file under a temporary name, and renames it into place. */
const writeFile = Effect.fnUntraced(function* (
  folder: DiskFolder,
  relative: string,
  contents: Uint8Array | string,
  { durable }: { readonly durable: boolean },
) {
  const final = at(folder, relative)
  const temporary = temporaryOf(folder, final)
  const bytes = bytesOf(contents)
  const write = durable ? writeSynced(folder, temporary, bytes) : folder.fs.writeFile(temporary, bytes, { flag: "wx" })
  yield* inFolder(folder, final, replacing(folder, temporary, write)).pipe(
    Effect.andThen(folder.fs.rename(temporary, final)),
    cleaned(folder, temporary),
  )
  if (durable) yield* syncDirectory(folder, folder.path.dirname(final))
})

/** Writes files into a new folder, and flushes them. */
const writeAll = Effect.fnUntraced(function* (
  folder: DiskFolder,
  temporary: string,
  some: Readonly<Record<string, Contents>>,
) {
  const folders = new Set(Object.keys(some).map((name) => folder.path.dirname(folder.path.join(temporary, name))))
  folders.delete(temporary)
  yield* Effect.forEach(folders, (directory) => makeDirectory(folder, directory), { discard: true })
  yield* Effect.forEach(
    Object.entries(some),
    ([name, contents]) => writeSynced(folder, folder.path.join(temporary, name), contents),
    // Flush concurrently: many flushes at once take hardly longer than one.
    { concurrency: "unbounded", discard: true },
  )
  yield* Effect.forEach(folders, (directory) => syncDirectory(folder, directory), { discard: true })
})
/** Writes a folder under a temporary name, and renames it into place. A folder with the same name is renamed first. */
const writeFolder = Effect.fnUntraced(function* (
  folder: DiskFolder,
  relative: string,
  files: Readonly<Record<string, Contents>>,
  last: () => Readonly<Record<string, Uint8Array>>,
) {
  const final = at(folder, relative)
  const temporary = temporaryOf(folder, final)
  const placing = cleaned(folder, temporary)
  yield* inFolder(folder, final, replacing(folder, temporary, folder.fs.makeDirectory(temporary)))
  yield* writeAll(folder, temporary, files).pipe(
    Effect.andThen(Effect.suspend(() => writeAll(folder, temporary, last()))),
    placing,
  )
  yield* syncDirectory(folder, temporary)
  const replaces = yield* folder.fs.exists(final)
  const old = hidden(folder, final, "old")
  if (replaces) {
    yield* erase(folder, old)
    yield* placing(folder.fs.rename(final, old))
  }
  yield* placing(folder.fs.rename(temporary, final))
  yield* syncDirectory(folder, folder.path.dirname(final))
  if (replaces) yield* erase(folder, old)
})

/** Makes a link under a temporary name, and renames it into place. */
const makeLink = Effect.fnUntraced(
  function* (folder: DiskFolder, relative: string, target: string) {
    const final = at(folder, relative)
    const temporary = temporaryOf(folder, final)
    yield* replacing(folder, temporary, folder.fs.symlink(target, temporary))
    yield* cleaned(folder, temporary)(folder.fs.rename(temporary, final))
    yield* syncDirectory(folder, folder.path.dirname(final))
  },
  // Links may be refused by file systems, or by Windows without the privilege. Readers then use `latest.json`.
  Effect.catchReason("PlatformError", "PermissionDenied", () => Effect.void),
)

/** Restores or removes the files with temporary names in a folder. */
const repairFolder = Effect.fnUntraced(function* (folder: DiskFolder, relative: string) {
  const directory = at(folder, relative)
  if (!(yield* folder.fs.exists(directory))) return
  for (const name of yield* folder.fs.readDirectory(directory)) {
    const [, original, ending] = /^\.(.+)\.(tmp|old)$/.exec(name) ?? []
    if (original === undefined) continue
    // Restore `.NAME.old` if the process was killed before it renamed the new folder to NAME.
    const isNeeded = ending === "old" && !(yield* folder.fs.exists(folder.path.join(directory, original)))
    yield* isNeeded
      ? folder.fs.rename(folder.path.join(directory, name), folder.path.join(directory, original))
      : erase(folder, folder.path.join(directory, name))
  }
})

/** How a folder on disk is opened. */
interface DiskOptions {
  /** A number that keeps the temporary files of this process apart from those of another process that writes the folder. */
  readonly writer?: number
  /** Whether the content of files is also read and written through symbolic links below the folder. @default false */
  readonly followsLinks?: boolean
}

/**
 * Makes the `FileTree` of a folder on disk. The folder need not exist yet. The path of the folder may contain links, but
 * operations on files below it fail if a link leads to them, because somebody else may have made the folder.
 */
export const onDisk = Effect.fnUntraced(function* (
  root: string,
  { writer, followsLinks = false }: DiskOptions = {},
): Effect.fn.Return<FileTree, never, FileSystem.FileSystem | Path.Path> {
  const folder: DiskFolder = {
    root,
    writer,
    followsLinks,
    fs: yield* FileSystem.FileSystem,
    path: yield* Path.Path,
    context: yield* Effect.context<FileSystem.FileSystem | Path.Path>(),
  }
  return {
    root,
    // A path that the user typed is shown as it is, without resolving it.
    pathOf: (relative) => shownBelow(root, relative),
    read: (relative) =>
      doing(
        folder,
        "read",
        relative,
        Effect.provideContext(readBytes(at(folder, relative), mostBytes.binary), folder.context),
      ),
    stream: (relative, part) =>
      Stream.unwrap(
        Effect.as(
          reading(folder, relative, Infinity, Effect.void),
          folder.fs
            .stream(at(folder, relative), part === undefined ? {} : { offset: part.offset, bytesToRead: part.bytes })
            .pipe(Stream.mapError((error) => runStoreError("read", at(folder, relative), error))),
        ),
      ),
    readText: (relative) => reading(folder, relative, mostBytes.text, folder.fs.readFileString(at(folder, relative))),
    write: (relative, contents, { durable } = { durable: true }) =>
      doing(folder, "write", relative, writeFile(folder, relative, contents, { durable }), "inFolders"),
    append: (relative, contents) =>
      Effect.scoped(Effect.flatMap(appending(folder, relative), (append) => append(contents))),
    appending: (relative) => appending(folder, relative),
    truncate: (relative, size) => doing(folder, "cut", relative, folder.fs.truncate(at(folder, relative), size)),
    sync: (relative) => doing(folder, "flush", relative, syncFile(folder, at(folder, relative)), "none"),
    exists: (relative) => doing(folder, "look for", relative, folder.fs.exists(at(folder, relative)), "none"),
    size: (relative) =>
      doing(
        folder,
        "look at",
        relative,
        Effect.map(folder.fs.stat(at(folder, relative)), (info) => Number(info.size)),
        "none",
      ),
    list: (relative) =>
      doing(
        folder,
        "list",
        relative,
        folder.fs.readDirectory(at(folder, relative)).pipe(
          Effect.catchIf(isMissing, (): Effect.Effect<ReadonlyArray<string>> => Effect.succeed([])),
          Effect.map((names) => [...names].sort()),
        ),
      ),
    remove: (relative) => doing(folder, "remove", relative, remove(folder, at(folder, relative)), "inFolders"),
    writeDirectory: (relative, files, last = () => ({})) =>
      doing(folder, "write", relative, writeFolder(folder, relative, files, last), "inFolders"),
    link: (relative, target) => doing(folder, "link", relative, makeLink(folder, relative, target), "inFolders"),
    target: (relative) =>
      folder.fs.readLink(at(folder, relative)).pipe(
        Effect.map((target): string | undefined => target),
        Effect.catch(() => Effect.succeed(undefined)),
      ),
    repair: (relative) => doing(folder, "repair", relative, repairFolder(folder, relative)),
  }
})
