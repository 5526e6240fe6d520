/**
 * Reads the files of runs in an object store, for `RunReader`. All names and sizes come from one listing. The content of an
 * object is fetched only when it is needed.
 */
import { Clock, Effect } from "effect"
import type { RunStoreError } from "../store/RunStoreError.ts"
import { mostBytes, textOfRunFile } from "../../base/files/files.ts"
import * as Layout from "../Layout.ts"
import type { Part } from "../store/FileTree.ts"
import { nameOfHolder } from "../store/objects/lease.ts"
import type { ObjectInfo, Versions } from "../store/objects/ObjectStore.ts"
import { type Entries, type FileSource, mostAtOnce, treeOf } from "./FileSource.ts"

interface ObjectSourceOptions {
  /** The prefix of all paths, such as `s3://runs/team`. The rest of a path is the key of its object. */
  readonly root: string
  /** Lists the objects. */
  readonly list: () => ReturnType<Versions["list"]>
  /** Reads an object of the listing, or a part of it. */
  readonly get: (object: ObjectInfo, part?: Part) => Effect.Effect<Uint8Array | undefined, RunStoreError>
  /** Handles the error of a read. It may make another part of the program fail, and never return. */
  readonly onError: (error: RunStoreError) => Effect.Effect<undefined>
  readonly isAlive: FileSource["isAlive"]
  readonly warn: FileSource["warn"]
}

/** A source of the objects in a listing. */
export interface ObjectSource extends FileSource {
  /** Lists the objects again. Before the first call, the source is empty. */
  readonly refresh: Effect.Effect<void, RunStoreError>
  /** Returns the description of the object at a path; undefined if there is none. */
  readonly infoAt: (path: string) => ObjectInfo | undefined
  /** Lists the objects below a folder. */
  readonly below: (folder: string) => ReadonlyArray<ObjectInfo>
}

interface FolderOfObjects {
  readonly files: Map<string, ObjectInfo>
  readonly folders: Set<string>
}

/** Arranges objects in folders by their keys. Keys that are not valid paths of files, such as `a/../b`, are left out. */
const foldersOf = (objects: ReadonlyArray<ObjectInfo>): ReadonlyMap<string, FolderOfObjects> => {
  const folders = new Map<string, FolderOfObjects>()
  const folderAt = (path: string): FolderOfObjects => {
    const known = folders.get(path)
    if (known !== undefined) return known
    const made: FolderOfObjects = { files: new Map(), folders: new Set() }
    folders.set(path, made)
    if (path !== "") {
      const slash = path.lastIndexOf("/")
      folderAt(slash < 0 ? "" : path.slice(0, slash)).folders.add(path.slice(slash + 1))
    }
    return made
  }
  for (const object of objects) {
    if (!isFile(object.key)) continue
    const slash = object.key.lastIndexOf("/")
    folderAt(slash < 0 ? "" : object.key.slice(0, slash)).files.set(object.key.slice(slash + 1), object)
  }
  return folders
}

/** Tells whether a key is the path of a file in a folder. */
export const isFile = (key: string): boolean =>
  key.split(/[/\\]/).every((name) => name !== "" && name !== "." && name !== "..")

/** Makes the source of the objects in a store. */
export const objectSource = ({ root, list, get, onError, isAlive, warn }: ObjectSourceOptions): ObjectSource => {
  let folders: ReadonlyMap<string, FolderOfObjects> = new Map()
  let listedAt = 0

  const keyOf = (path: string): string =>
    (path === root ? "" : path.startsWith(`${root}/`) ? path.slice(root.length + 1) : path).replace(/^\/+|\/+$/g, "")
  const folderAt = (path: string): FolderOfObjects | undefined => folders.get(keyOf(path))
  const infoAt = (path: string): ObjectInfo | undefined => {
    const key = keyOf(path)
    const slash = key.lastIndexOf("/")
    return folders.get(slash < 0 ? "" : key.slice(0, slash))?.files.get(key.slice(slash + 1))
  }
  const below = (folder: string): ReadonlyArray<ObjectInfo> => {
    const found = folderAt(folder)
    if (found === undefined) return []
    const key = keyOf(folder)
    return [
      ...found.files.values(),
      ...[...found.folders].flatMap((name) => below(key === "" ? name : `${key}/${name}`)),
    ]
  }
  const reading = (object: ObjectInfo, part?: Part) => Effect.catch(get(object, part), onError)

  const entries = (folder: string): Effect.Effect<Entries> =>
    Effect.sync(() => {
      const found = folderAt(folder)
      const shown = (names: Iterable<string> = []) => [...names].filter((name) => !name.startsWith(".")).sort()
      return { files: shown(found?.files.keys()), folders: shown(found?.folders) }
    })
  const size = (file: string) => Effect.sync(() => infoAt(file)?.bytes)

  return {
    refresh: Effect.gen(function* () {
      const objects = yield* list()
      listedAt = yield* Clock.currentTimeMillis
      folders = foldersOf(objects)
    }),
    infoAt,
    below,
    list: (folder) =>
      Effect.sync(() => {
        const found = folderAt(folder)
        return [...(found?.files.keys() ?? []), ...(found?.folders ?? [])]
      }),
    folders: (folder) => Effect.sync(() => [...(folderAt(folder)?.folders ?? [])]),
    entries,
    text: Effect.fnUntraced(function* (file) {
      const object = infoAt(file)
      if (object === undefined) return undefined
      if (object.bytes > mostBytes.text)
        return yield* Effect.as(
          warn(`${file}: expected at most ${mostBytes.text} bytes, found ${object.bytes}`),
          undefined,
        )
      const bytes = yield* reading(object)
      if (bytes === undefined) return undefined
      if (Layout.fileName(file) === Layout.lock) {
        const age = object.age + (yield* Clock.currentTimeMillis) - listedAt
        return nameOfHolder({ bytes, age })
      }
      const decoded = textOfRunFile(bytes)
      return "text" in decoded ? decoded.text : yield* Effect.as(warn(`${file}: ${decoded.problem}`), undefined)
    }),
    part: (file, from, most = mostAtOnce) =>
      Effect.suspend(() => {
        const object = infoAt(file)
        if (object === undefined) return Effect.undefined
        const offset = from < 0 ? Math.max(0, object.bytes + from) : Math.min(from, object.bytes)
        const bytes = Math.min(most, object.bytes - offset)
        if (bytes === 0) return Effect.succeed(new Uint8Array(0))
        return bytes === object.bytes ? reading(object) : reading(object, { offset, bytes })
      }),
    size,
    tree: (folder) => treeOf({ entries, size }, folder),
    isAlive,
    warn,
  }
}
