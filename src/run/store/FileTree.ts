/**
 * A folder of files, by paths relative to it (with `/`). What is written is whole or not there at all, also when the
 * machine stops in the middle: contents go to a temporary name, are flushed to disk, and renamed into place.
 *
 * Temporary names begin with a dot: `.NAME.tmp` is on its way in or out, `.NAME.old` makes room for a new NAME.
 */
import { Effect, FileSystem, Path, type PlatformError, Scope, Stream } from "effect"
import { checkFile, FileError, makeFolder, mostBytes, readBytes } from "../../config/files.ts"
import { runStoreError, type RunStoreError } from "./RunStoreError.ts"
import { utf8 } from "../../config/utf8.ts"

/**
 * What a file is to hold: bytes, or bytes that are made part by part as they are written. A part is done with when the
 * next one is asked for, so that one buffer may serve for all.
 */
export type Contents = Uint8Array | Iterable<Uint8Array>

export const partsOf = (contents: Contents): Iterable<Uint8Array> =>
  contents instanceof Uint8Array ? [contents] : contents

/** Some of a file's bytes. */
export interface Part {
  readonly offset: number
  readonly bytes: number
}

export interface FileTree {
  /** For people. */
  readonly root: string
  readonly read: (path: string) => Effect.Effect<Uint8Array, RunStoreError>
  /** The same in parts, for files that are better not in memory as a whole; of a part of the file alone, if asked. */
  readonly stream: (path: string, part?: Part) => Stream.Stream<Uint8Array, RunStoreError>
  readonly readText: (path: string) => Effect.Effect<string, RunStoreError>
  /** Whole or not at all. What isn't `durable` is sure to outlive the process, but not the machine, and costs far less. */
  readonly write: (
    path: string,
    contents: Uint8Array | string,
    how?: { readonly durable: boolean },
  ) => Effect.Effect<void, RunStoreError>
  /** Adds to the end; not atomic: a reader may meet half a line at the end of a file. */
  readonly append: (path: string, contents: Uint8Array | string) => Effect.Effect<void, RunStoreError>
  /** The same for a file that grows often: it is opened by the first append, and closed with the scope. */
  readonly appending: (path: string) => Effect.Effect<Append, never, Scope.Scope>
  readonly truncate: (path: string, size: number) => Effect.Effect<void, RunStoreError>
  /** Returns when a file's contents are on disk. What `append` wrote is only in the system's hands before. */
  readonly sync: (path: string) => Effect.Effect<void, RunStoreError>
  readonly exists: (path: string) => Effect.Effect<boolean, RunStoreError>
  readonly size: (path: string) => Effect.Effect<number, RunStoreError>
  /** Names in a folder, sorted; none where there is no such folder. */
  readonly list: (path: string) => Effect.Effect<ReadonlyArray<string>, RunStoreError>
  /** A file or a folder with all in it, all or nothing; nothing happens where there is none. */
  readonly remove: (path: string) => Effect.Effect<void, RunStoreError>
  /**
   * A new folder with these files, all or nothing; one that is in the way is replaced. `last` is asked for more files when
   * these are written: for what is only known then.
   */
  readonly writeDirectory: (
    path: string,
    files: Readonly<Record<string, Contents>>,
    last?: () => Readonly<Record<string, Uint8Array>>,
  ) => Effect.Effect<void, RunStoreError>
  /** Makes `path` a symbolic link to its sibling `target`, replacing one that is there, atomically. */
  readonly link: (path: string, target: string) => Effect.Effect<void, RunStoreError>
  /** What a link points to; undefined where there is none. */
  readonly target: (path: string) => Effect.Effect<string | undefined, RunStoreError>
  /** Finishes or undoes what a process that was killed left half done in a folder. */
  readonly repair: (path: string) => Effect.Effect<void, RunStoreError>
}

export type Append = (contents: Uint8Array | string) => Effect.Effect<void, RunStoreError>

export const bytesOf = (contents: Uint8Array | string): Uint8Array =>
  typeof contents === "string" ? utf8.encode(contents) : contents

type Failure = PlatformError.PlatformError | FileError

const isMissing = (error: Failure): boolean =>
  error instanceof FileError ? error.missing : error.reason._tag === "NotFound"

/** A tree on disk. */
export const onDisk = Effect.fnUntraced(function* (
  root: string,
): Effect.fn.Return<FileTree, never, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const context = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
  // Some of a run's files may be wanted in a place outside of it.
  const at = (relative: string): string => (path.isAbsolute(relative) ? relative : path.join(root, relative))
  const hidden = (final: string, ending: "tmp" | "old"): string =>
    path.join(path.dirname(final), `.${path.basename(final)}.${ending}`)

  /** What every operation has in common: it is not stopped half-way, and fails with a line for people. */
  const doing = <A>(operation: string, relative: string, effect: Effect.Effect<A, Failure, Scope.Scope>) =>
    Effect.scoped(effect).pipe(
      Effect.uninterruptible,
      Effect.mapError((error) => runStoreError(operation, at(relative), error)),
    )

  const makeDirectory = (folder: string) => Effect.provideContext(makeFolder(folder), context)

  /** Else a pipe would be waited for until somebody writes into it, and a device has no end. */
  const reading = <A>(relative: string, most: number, effect: Effect.Effect<A, PlatformError.PlatformError>) =>
    doing("read", relative, Effect.andThen(Effect.provideContext(checkFile(at(relative), most), context), effect))

  const syncFile = (file: string) =>
    Effect.scoped(Effect.flatMap(fs.open(file, { flag: "r+" }), (handle) => handle.sync))

  /** A rename is only safe once the folder that holds the name is on disk too. */
  const syncDirectory = (directory: string) =>
    Effect.scoped(Effect.flatMap(fs.open(directory, { flag: "r" }), (handle) => handle.sync)).pipe(
      // Some systems don't let a folder be flushed; files there are not less safe for it.
      Effect.ignore,
    )

  const writeSynced = (file: string, contents: Contents) =>
    Effect.scoped(
      Effect.gen(function* () {
        const handle = yield* fs.open(file, { flag: "w" })
        for (const part of partsOf(contents)) yield* handle.writeAll(part)
        yield* handle.sync
      }),
    )

  const erase = (file: string) => fs.remove(file, { recursive: true, force: true })

  /** A folder that is half removed must not look like one that is damaged: it goes by another name. */
  const remove = (final: string) => {
    const temporary = hidden(final, "tmp")
    return erase(temporary).pipe(
      Effect.andThen(fs.rename(final, temporary)),
      Effect.andThen(erase(temporary)),
      Effect.catchIf(isMissing, () => Effect.void),
    )
  }

  /** Makes the folder of a file where there is none yet. */
  const inFolder = <A, R>(file: string, effect: Effect.Effect<A, PlatformError.PlatformError, R>) =>
    Effect.catchIf(effect, isMissing, () => Effect.andThen(makeDirectory(path.dirname(file)), effect))

  const openToAppend = (file: string) => inFolder(file, fs.open(file, { flag: "a" }))

  const appending = Effect.fnUntraced(function* (relative: string): Effect.fn.Return<Append, never, Scope.Scope> {
    // A scope from now on, though there is nothing in it yet: what is added to the outer one after this is done first.
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
          const temporary = hidden(final, "tmp")
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
          const temporary = hidden(final, "tmp")
          yield* erase(temporary)
          yield* makeDirectory(temporary)
          const writeAll = (some: Readonly<Record<string, Contents>>) =>
            Effect.forEach(
              Object.entries(some),
              ([name, contents]) => writeSynced(path.join(temporary, name), contents),
              // Flushes that wait together share the disk's time.
              { concurrency: "unbounded", discard: true },
            )
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
          const temporary = hidden(final, "tmp")
          yield* erase(temporary)
          yield* fs.symlink(target, temporary)
          yield* fs.rename(temporary, final)
          yield* syncDirectory(path.dirname(final))
        }).pipe(
          // Where links cannot be had (some file systems, Windows without the privilege), `latest.json` says the same.
          Effect.catchIf(
            (error) => error.reason._tag === "PermissionDenied",
            () => Effect.void,
          ),
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
            const wanted = ending === "old" && !(yield* fs.exists(path.join(folder, original)))
            yield* wanted
              ? fs.rename(path.join(folder, name), path.join(folder, original))
              : erase(path.join(folder, name))
          }
        }),
      ),
  }
})
