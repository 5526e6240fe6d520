/**
 * The interface of a folder of files, and its implementation on disk. Paths are relative to the folder, with `/`. A file
 * is written as a whole or not at all, even if the machine stops meanwhile: the content goes to a temporary name, is
 * flushed to disk, and is renamed into place.
 *
 * Temporary names start with a dot: `.NAME.tmp` or `.NAME.WRITER.tmp` is being written or removed, `.NAME.old` was replaced by a
 * new NAME.
 */
import { Effect, FileSystem, Path, type PlatformError, Scope, Stream } from "effect"
import { checkFile, FileError, makeFolder, mostBytes, readBytes } from "../../base/config/files.ts"
import { runStoreError, type RunStoreError } from "./RunStoreError.ts"
import { utf8 } from "../../base/config/utf8.ts"

/**
 * The content of a file: bytes, or parts that are made while they are written. The writer asks for the next part only
 * after it has written the previous one, so all parts can share one buffer.
 */
export type Contents = Uint8Array | Iterable<Uint8Array>

export const partsOf = (contents: Contents): Iterable<Uint8Array> =>
  contents instanceof Uint8Array ? [contents] : contents

const blockSize = 1 << 20

/**
 * Joins small parts to blocks of at most one MiB, because a write takes a while, however few bytes it has. Larger parts are
 * left as they are. The caller has to be done with a block before it asks for the next one.
 *
 * @example
 * ```ts
 * [...blocksOf([Uint8Array.of(1, 2), Uint8Array.of(3)])] // one block: 1, 2, 3
 * ```
 */
export function* blocksOf(parts: Iterable<Uint8Array>): Generator<Uint8Array, void> {
  const block = new Uint8Array(blockSize)
  let used = 0
  for (const part of parts) {
    if (used > 0 && used + part.length > blockSize) {
      yield block.subarray(0, used)
      used = 0
    }
    if (part.length > blockSize) yield part
    else {
      block.set(part, used)
      used += part.length
    }
  }
  if (used > 0) yield block.subarray(0, used)
}

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
   * may begin with folders. `last` returns more files after the others are written, for content that is not known before.
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
  /** Completes or undoes the writes to a folder that a killed process left unfinished, as its temporary names tell. */
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

/**
 * Makes the `FileTree` of a folder on disk. The folder need not exist yet. Where another process may write the same folder, a
 * different `writer` keeps its temporary files apart.
 */
export const onDisk = Effect.fnUntraced(function* (
  root: string,
  writer?: number,
): Effect.fn.Return<FileTree, never, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const context = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
  // A config can place some of a run's files at absolute paths.
  const at = (relative: string): string => (path.isAbsolute(relative) ? relative : path.join(root, relative))
  /** Returns the name of a file or folder with a dot before it and an ending. */
  const hidden = (final: string, ending: string): string =>
    path.join(path.dirname(final), `.${path.basename(final)}.${ending}`)
  const temporaryOf = (final: string): string => hidden(final, writer === undefined ? "tmp" : `${writer}.tmp`)

  /** Makes an Effect uninterruptible, and converts its failure to the error "cannot `operation` `relative`: …". */
  const doing = <A>(operation: string, relative: string, effect: Effect.Effect<A, Failure, Scope.Scope>) =>
    Effect.scoped(effect).pipe(
      Effect.uninterruptible,
      Effect.mapError((error) => runStoreError(operation, at(relative), error)),
    )

  const makeDirectory = (folder: string) => Effect.provideContext(makeFolder(folder), context)

  /**
   * Runs `effect`, which reads a file. Fails if the file has more than `most` bytes or is not regular: reading a pipe
   * or a device may never end.
   */
  const reading = <A>(relative: string, most: number, effect: Effect.Effect<A, PlatformError.PlatformError>) =>
    doing("read", relative, Effect.andThen(Effect.provideContext(checkFile(at(relative), most), context), effect))

  const syncFile = (file: string) =>
    Effect.scoped(Effect.flatMap(fs.open(file, { flag: "r+" }), (handle) => handle.sync))

  /** Flushes a folder to disk, so that a rename within it survives a crash. */
  const syncDirectory = (directory: string) =>
    Effect.scoped(Effect.flatMap(fs.open(directory, { flag: "r" }), (handle) => handle.sync)).pipe(
      // Some systems can't flush folders; on these, renames are safe without it.
      Effect.ignore,
    )

  const writeSynced = (file: string, contents: Contents) =>
    Effect.scoped(
      Effect.gen(function* () {
        const handle = yield* fs.open(file, { flag: "w" })
        for (const block of contents instanceof Uint8Array ? [contents] : blocksOf(contents))
          yield* handle.writeAll(block)
        yield* handle.sync
      }),
    )

  const erase = (file: string) => fs.remove(file, { recursive: true, force: true })

  /** Removes a file or folder. Renames it first, because a half-removed folder would look like a damaged one. */
  const remove = (final: string) => {
    const temporary = temporaryOf(final)
    return erase(temporary).pipe(
      Effect.andThen(fs.rename(final, temporary)),
      Effect.andThen(erase(temporary)),
      Effect.catchIf(isMissing, () => Effect.void),
    )
  }

  /** Runs an operation on a file, and creates the file's folder if it is missing. */
  const inFolder = <A, R>(file: string, effect: Effect.Effect<A, PlatformError.PlatformError, R>) =>
    Effect.catchIf(effect, isMissing, () => Effect.andThen(makeDirectory(path.dirname(file)), effect))

  const openToAppend = (file: string) => inFolder(file, fs.open(file, { flag: "a" }))

  const appending = Effect.fnUntraced(function* (relative: string): Effect.fn.Return<Append, never, Scope.Scope> {
    // Register now that the file will be closed, though it is opened later. Finalizers run in reverse order, so those
    // that the caller adds after this run while the file is still open.
    const scope = yield* Effect.acquireRelease(Scope.make(), (scope, exit) => Scope.close(scope, exit))
    let opened: FileSystem.File | undefined
    return (contents) =>
      doing(
        "append to",
        relative,
        Effect.gen(function* () {
          opened ??= yield* Scope.provide(openToAppend(at(relative)), scope)
          yield* opened.writeAll(bytesOf(contents))
        }),
      )
  })

  return {
    root,
    // A path that the user typed is shown as it is, without resolving it.
    pathOf: (relative) => shownBelow(root, relative),
    read: (relative) =>
      doing("read", relative, Effect.provideContext(readBytes(at(relative), mostBytes.binary), context)),
    stream: (relative, part) =>
      Stream.unwrap(
        Effect.as(
          reading(relative, Infinity, Effect.void),
          fs
            .stream(at(relative), part === undefined ? {} : { offset: part.offset, bytesToRead: part.bytes })
            .pipe(Stream.mapError((error) => runStoreError("read", at(relative), error))),
        ),
      ),
    readText: (relative) => reading(relative, mostBytes.text, fs.readFileString(at(relative))),
    write: (relative, contents, { durable } = { durable: true }) =>
      doing(
        "write",
        relative,
        Effect.gen(function* () {
          const final = at(relative)
          const temporary = temporaryOf(final)
          const bytes = bytesOf(contents)
          yield* inFolder(final, durable ? writeSynced(temporary, bytes) : fs.writeFile(temporary, bytes)).pipe(
            Effect.onError(() => Effect.ignore(erase(temporary))),
          )
          yield* fs.rename(temporary, final)
          if (durable) yield* syncDirectory(path.dirname(final))
        }),
      ),
    append: (relative, contents) => Effect.scoped(Effect.flatMap(appending(relative), (append) => append(contents))),
    appending,
    truncate: (relative, size) => doing("cut", relative, fs.truncate(at(relative), size)),
    sync: (relative) => doing("flush", relative, syncFile(at(relative))),
    exists: (relative) => doing("look for", relative, fs.exists(at(relative))),
    size: (relative) =>
      doing(
        "look at",
        relative,
        Effect.map(fs.stat(at(relative)), (info) => Number(info.size)),
      ),
    list: (relative) =>
      doing(
        "list",
        relative,
        fs.readDirectory(at(relative)).pipe(
          Effect.catchIf(isMissing, (): Effect.Effect<ReadonlyArray<string>> => Effect.succeed([])),
          Effect.map((names) => [...names].sort()),
        ),
      ),
    remove: (relative) => doing("remove", relative, remove(at(relative))),
    writeDirectory: (relative, files, last = () => ({})) =>
      doing(
        "write",
        relative,
        Effect.gen(function* () {
          const final = at(relative)
          const parent = path.dirname(final)
          const temporary = temporaryOf(final)
          yield* erase(temporary)
          yield* makeDirectory(temporary)
          const writeAll = Effect.fnUntraced(function* (some: Readonly<Record<string, Contents>>) {
            const folders = new Set(Object.keys(some).map((name) => path.dirname(path.join(temporary, name))))
            folders.delete(temporary)
            yield* Effect.forEach(folders, makeDirectory, { discard: true })
            yield* Effect.forEach(
              Object.entries(some),
              ([name, contents]) => writeSynced(path.join(temporary, name), contents),
              // Flush concurrently: many flushes at once take hardly longer than one.
              { concurrency: "unbounded", discard: true },
            )
            yield* Effect.forEach(folders, syncDirectory, { discard: true })
          })
          yield* writeAll(files).pipe(
            Effect.andThen(Effect.suspend(() => writeAll(last()))),
            Effect.onError(() => Effect.ignore(erase(temporary))),
          )
          yield* syncDirectory(temporary)
          const replaces = yield* fs.exists(final)
          const old = hidden(final, "old")
          if (replaces) {
            yield* erase(old)
            yield* fs.rename(final, old)
          }
          yield* fs.rename(temporary, final)
          yield* syncDirectory(parent)
          if (replaces) yield* erase(old)
        }),
      ),
    link: (relative, target) =>
      doing(
        "link",
        relative,
        Effect.gen(function* () {
          const final = at(relative)
          const temporary = temporaryOf(final)
          yield* erase(temporary)
          yield* fs.symlink(target, temporary)
          yield* fs.rename(temporary, final)
          yield* syncDirectory(path.dirname(final))
        }).pipe(
          // Some file systems, and Windows without the privilege, refuse links. Readers then use `latest.json`.
          Effect.catchReason("PlatformError", "PermissionDenied", () => Effect.void),
        ),
      ),
    target: (relative) =>
      fs.readLink(at(relative)).pipe(
        Effect.map((target): string | undefined => target),
        Effect.catch(() => Effect.succeed(undefined)),
      ),
    repair: (relative) =>
      doing(
        "repair",
        relative,
        Effect.gen(function* () {
          const folder = at(relative)
          if (!(yield* fs.exists(folder))) return
          for (const name of yield* fs.readDirectory(folder)) {
            const [, original, ending] = /^\.(.+)\.(tmp|old)$/.exec(name) ?? []
            if (original === undefined) continue
            // Restore `.NAME.old` if the process was killed before it renamed the new folder to NAME.
            const isNeeded = ending === "old" && !(yield* fs.exists(path.join(folder, original)))
            yield* isNeeded
              ? fs.rename(path.join(folder, name), path.join(folder, original))
              : erase(path.join(folder, name))
          }
        }),
      ),
  }
})
