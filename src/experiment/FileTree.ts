import { Effect, FileSystem, Path } from "effect"
import { runStoreError, type RunStoreError } from "./RunStoreError.ts"

/**
 * A folder of files, by paths relative to it (with `/`). What is written is whole or not there at all, also when the
 * machine stops in the middle: contents go to a temporary name, are flushed to disk, and renamed into place.
 */
export interface FileTree {
  /** For people. */
  readonly root: string
  readonly read: (path: string) => Effect.Effect<Uint8Array, RunStoreError>
  readonly write: (path: string, bytes: Uint8Array) => Effect.Effect<void, RunStoreError>
  /** Adds to the end; not atomic: a reader may meet half a line at the end of a file. */
  readonly append: (path: string, bytes: Uint8Array) => Effect.Effect<void, RunStoreError>
  readonly truncate: (path: string, size: number) => Effect.Effect<void, RunStoreError>
  readonly exists: (path: string) => Effect.Effect<boolean, RunStoreError>
  readonly size: (path: string) => Effect.Effect<number, RunStoreError>
  /** Names in a folder, sorted; none where there is no such folder. */
  readonly list: (path: string) => Effect.Effect<ReadonlyArray<string>, RunStoreError>
  /** A file or a folder with all in it; nothing happens where there is none. */
  readonly remove: (path: string) => Effect.Effect<void, RunStoreError>
  /** A new folder with these files, all or nothing; one that is in the way is replaced. */
  readonly writeDirectory: (path: string, files: Readonly<Record<string, Uint8Array>>) => Effect.Effect<void, RunStoreError>
  /** Makes `path` a symbolic link to its sibling `target`, replacing one that is there, atomically. */
  readonly link: (path: string, target: string) => Effect.Effect<void, RunStoreError>
  /** What a link points to; undefined where there is none. */
  readonly target: (path: string) => Effect.Effect<string | undefined, RunStoreError>
}

/** A tree on disk. */
export const onDisk = Effect.fnUntraced(function* (
  root: string,
): Effect.fn.Return<FileTree, never, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const at = (relative: string): string => path.join(root, relative)

  const failing =
    (operation: string, relative: string) =>
    <A, E extends { readonly message: string; readonly cause?: unknown }, R>(effect: Effect.Effect<A, E, R>) =>
      Effect.mapError(effect, (error) => runStoreError(operation, at(relative), error))

  /** A rename is only safe once the folder that holds the name is on disk too. */
  const syncDirectory = (directory: string) =>
    Effect.scoped(Effect.flatMap(fs.open(directory, { flag: "r" }), (file) => file.sync)).pipe(
      // Some file systems don't let a folder be flushed; they are not less safe for it.
      Effect.ignore,
    )

  const writeSynced = (file: string, bytes: Uint8Array) =>
    Effect.scoped(
      Effect.flatMap(fs.open(file, { flag: "w" }), (handle) => Effect.andThen(handle.writeAll(bytes), handle.sync)),
    )

  const write = (relative: string, bytes: Uint8Array) =>
    Effect.gen(function* () {
      const final = at(relative)
      const directory = path.dirname(final)
      yield* fs.makeDirectory(directory, { recursive: true })
      const temporary = path.join(directory, `.${path.basename(final)}.tmp`)
      yield* writeSynced(temporary, bytes).pipe(Effect.onError(() => Effect.ignore(fs.remove(temporary))))
      yield* fs.rename(temporary, final)
      yield* syncDirectory(directory)
    }).pipe(Effect.uninterruptible, failing("write", relative))

  return {
    root,
    write,
    read: (relative) => fs.readFile(at(relative)).pipe(failing("read", relative)),
    append: (relative, bytes) =>
      fs.makeDirectory(path.dirname(at(relative)), { recursive: true }).pipe(
        Effect.andThen(fs.writeFile(at(relative), bytes, { flag: "a" })),
        Effect.uninterruptible,
        failing("append to", relative),
      ),
    truncate: (relative, size) => fs.truncate(at(relative), size).pipe(failing("cut", relative)),
    exists: (relative) => fs.exists(at(relative)).pipe(failing("look for", relative)),
    size: (relative) => Effect.map(fs.stat(at(relative)), (info) => Number(info.size)).pipe(failing("look at", relative)),
    list: (relative) =>
      fs.exists(at(relative)).pipe(
        Effect.flatMap((exists) => (exists ? fs.readDirectory(at(relative)) : Effect.succeed([]))),
        Effect.map((names) => [...names].sort()),
        failing("list", relative),
      ),
    remove: (relative) => fs.remove(at(relative), { recursive: true, force: true }).pipe(failing("remove", relative)),
    writeDirectory: (relative, files) =>
      Effect.gen(function* () {
        const final = at(relative)
        const parent = path.dirname(final)
        const temporary = path.join(parent, `.${path.basename(final)}.tmp`)
        yield* fs.remove(temporary, { recursive: true, force: true })
        yield* fs.makeDirectory(temporary, { recursive: true })
        yield* Effect.gen(function* () {
          for (const [name, bytes] of Object.entries(files)) yield* writeSynced(path.join(temporary, name), bytes)
          yield* syncDirectory(temporary)
        }).pipe(Effect.onError(() => Effect.ignore(fs.remove(temporary, { recursive: true, force: true }))))
        yield* fs.remove(final, { recursive: true, force: true })
        yield* fs.rename(temporary, final)
        yield* syncDirectory(parent)
      }).pipe(Effect.uninterruptible, failing("write", relative)),
    link: (relative, target) =>
      Effect.gen(function* () {
        const final = at(relative)
        const temporary = path.join(path.dirname(final), `.${path.basename(final)}.tmp`)
        yield* fs.remove(temporary, { force: true })
        yield* fs.symlink(target, temporary)
        yield* fs.rename(temporary, final)
        yield* syncDirectory(path.dirname(final))
      }).pipe(Effect.uninterruptible, failing("link", relative)),
    target: (relative) =>
      fs.readLink(at(relative)).pipe(
        Effect.map((target): string | undefined => target),
        Effect.catch(() => Effect.succeed(undefined)),
      ),
  }
})

/** A tree in memory: paths to bytes. Links are entries of their own. */
export const inMemory = (root: string, files: Map<string, Uint8Array>): FileTree => {
  const links = new Map<string, string>()
  const missing = (operation: string, path: string) => runStoreError(operation, `${root}/${path}`, { message: "no such file" })
  const get = (operation: string, path: string): Effect.Effect<Uint8Array, RunStoreError> =>
    Effect.suspend(() => {
      const bytes = files.get(path)
      return bytes === undefined ? Effect.fail(missing(operation, path)) : Effect.succeed(bytes)
    })
  const removeBelow = (path: string): void => {
    for (const key of [...files.keys()]) if (key === path || key.startsWith(`${path}/`)) files.delete(key)
  }
  return {
    root,
    read: (path) => get("read", path),
    write: (path, bytes) => Effect.sync(() => void files.set(path, bytes.slice())),
    append: (path, bytes) =>
      Effect.sync(() => {
        const before = files.get(path) ?? new Uint8Array(0)
        const after = new Uint8Array(before.length + bytes.length)
        after.set(before)
        after.set(bytes, before.length)
        files.set(path, after)
      }),
    truncate: (path, size) => Effect.map(get("cut", path), (bytes) => void files.set(path, bytes.slice(0, size))),
    exists: (path) => Effect.sync(() => [...files.keys(), ...links.keys()].some((key) => key === path || key.startsWith(`${path}/`))),
    size: (path) => Effect.map(get("look at", path), (bytes) => bytes.length),
    list: (path) =>
      Effect.sync(() => {
        const prefix = path === "" || path === "." ? "" : `${path}/`
        const names = [...files.keys(), ...links.keys()].filter((key) => key.startsWith(prefix)).map((key) => key.slice(prefix.length).split("/")[0])
        return [...new Set(names)].sort()
      }),
    remove: (path) =>
      Effect.sync(() => {
        links.delete(path)
        removeBelow(path)
      }),
    writeDirectory: (path, contents) =>
      Effect.sync(() => {
        removeBelow(path)
        for (const [name, bytes] of Object.entries(contents)) files.set(`${path}/${name}`, bytes.slice())
      }),
    link: (path, target) => Effect.sync(() => void links.set(path, target)),
    target: (path) => Effect.sync(() => links.get(path)),
  }
}
