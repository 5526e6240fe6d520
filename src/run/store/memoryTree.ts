import { Effect, Stream } from "effect"
import { bytesOf, type Contents, type FileTree, partsOf } from "./FileTree.ts"
import { runStoreError, type RunStoreError } from "./RunStoreError.ts"
import { utf8 } from "../../config/utf8.ts"

/** Bytes with more after them, in the room that is left behind them where it suffices. */
const extended = (bytes: Uint8Array, more: Uint8Array): Uint8Array => {
  const size = bytes.length + more.length
  const roomy = bytes.byteOffset === 0 && bytes.buffer.byteLength >= size
  const after = roomy ? new Uint8Array(bytes.buffer, 0, size) : new Uint8Array(new ArrayBuffer(2 * size), 0, size)
  if (!roomy) after.set(bytes)
  after.set(more, bytes.length)
  return after
}

/** A copy of what a file is to hold. */
const joined = (contents: Contents): Uint8Array => {
  let bytes: Uint8Array = new Uint8Array(0)
  for (const part of partsOf(contents)) bytes = extended(bytes, part)
  return bytes.slice()
}

/** A tree in memory: `root/path` to bytes, in a map that several trees may share. A link is a file that holds a name. */
export const inMemory = (root: string, files: Map<string, Uint8Array>): FileTree => {
  const at = (path: string): string => (path === "" || path === "." ? root : `${root}/${path}`)
  const keys = (): ReadonlyArray<string> => [...files.keys()]
  const isBelow = (folder: string) => (key: string) => key === folder || key.startsWith(`${folder}/`)

  const bytesAt = (operation: string, path: string): Effect.Effect<Uint8Array, RunStoreError> =>
    Effect.suspend(() => {
      const bytes = files.get(at(path))
      if (bytes !== undefined) return Effect.succeed(bytes)
      return Effect.fail(runStoreError(operation, at(path), { message: "no such file or directory" }))
    })
  const removeNow = (path: string): void => {
    for (const key of keys().filter(isBelow(at(path)))) files.delete(key)
  }

  const append: FileTree["append"] = (path, contents) =>
    Effect.sync(() => void files.set(at(path), extended(files.get(at(path)) ?? new Uint8Array(0), bytesOf(contents))))

  return {
    root,
    read: (path) => Effect.map(bytesAt("read", path), (bytes) => bytes.slice()),
    stream: (path, { offset, bytes: length } = { offset: 0, bytes: Infinity }) =>
      Stream.fromEffect(Effect.map(bytesAt("read", path), (bytes) => bytes.slice(offset, offset + length))),
    readText: (path) => Effect.map(bytesAt("read", path), (bytes) => utf8.decode(bytes)),
    write: (path, contents) => Effect.sync(() => void files.set(at(path), bytesOf(contents).slice())),
    append,
    appending: (path) => Effect.succeed((contents) => append(path, contents)),
    truncate: (path, size) =>
      Effect.map(bytesAt("cut", path), (bytes) => {
        const cut = new Uint8Array(size)
        cut.set(bytes.subarray(0, size))
        files.set(at(path), cut)
      }),
    sync: (path) => Effect.asVoid(bytesAt("flush", path)),
    exists: (path) => Effect.sync(() => keys().some(isBelow(at(path)))),
    size: (path) => Effect.map(bytesAt("look at", path), (bytes) => bytes.length),
    list: (path) =>
      Effect.sync(() => {
        const prefix = `${at(path)}/`
        const below = keys().filter((key) => key.startsWith(prefix))
        return [...new Set(below.map((key) => key.slice(prefix.length).split("/")[0]))].sort()
      }),
    remove: (path) => Effect.sync(() => removeNow(path)),
    writeDirectory: (path, contents, last = () => ({})) =>
      Effect.sync(() => {
        const written = Object.entries(contents).map(([name, given]) => [name, joined(given)] as const)
        const rest = Object.entries(last()).map(([name, given]) => [name, joined(given)] as const)
        removeNow(path)
        for (const [name, bytes] of [...written, ...rest]) files.set(at(`${path}/${name}`), bytes)
      }),
    link: (path, target) => Effect.sync(() => void files.set(at(path), bytesOf(target))),
    target: (path) =>
      Effect.sync(() => {
        const bytes = files.get(at(path))
        return bytes === undefined ? undefined : utf8.decode(bytes)
      }),
    repair: () => Effect.void,
  }
}
