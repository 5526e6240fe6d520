/**
 * Keeps copies of a bucket's small objects on this machine, so that a second listing of the same runs fetches only what has
 * changed. A copy is used only for the version that the listing names. The folder can be deleted at any time.
 */
import { createHash, randomUUID } from "node:crypto"
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { isOwnFile, userCache } from "../../../../bin/userCache.js"
import { utf8 } from "../../../base/text/utf8.ts"
import type { Part } from "../../../run/store/FileTree.ts"
import type { ObjectInfo } from "../../../run/store/objects/ObjectStore.ts"
import type { Connected } from "./connect.ts"

/** The largest object that is kept, in bytes. */
const mostBytes = 1024 * 1024

/** Opens the cache of a bucket in `folder`. */
const openCache = (folder: string, bucket: string) => {
  const fileOf = ({ key }: ObjectInfo): string =>
    join(folder, createHash("sha256").update(`${bucket}\n${key}`).digest("hex"))
  const isKept = ({ bytes, version }: ObjectInfo): boolean => bytes <= mostBytes && version !== ""
  /** Makes the first line of a copy, which holds the version. */
  const heading = ({ version }: ObjectInfo): Uint8Array => utf8.encode(`${version}\n`)

  return {
    /** Reads the copy of an object; undefined if there is none of this version. */
    read: (object: ObjectInfo): Effect.Effect<Uint8Array | undefined> =>
      Effect.sync(() => {
        if (!isKept(object)) return undefined
        try {
          if (!isOwnFile(fileOf(object))) return undefined
          const file = readFileSync(fileOf(object))
          const head = heading(object)
          const isSame = file.length === head.length + object.bytes && head.every((byte, at) => file[at] === byte)
          return isSame ? new Uint8Array(file.subarray(head.length)) : undefined
        } catch {
          return undefined
        }
      }),
    /** Keeps a copy of an object, which replaces the copy of an earlier version. */
    write: (object: ObjectInfo, bytes: Uint8Array): Effect.Effect<void> =>
      Effect.sync(() => {
        if (!isKept(object) || bytes.length !== object.bytes) return
        const file = fileOf(object)
        const temporary = `${file}.${randomUUID()}`
        try {
          writeFileSync(temporary, Buffer.concat([heading(object), bytes]), { mode: 0o600 })
          renameSync(temporary, file)
        } catch {
          rmSync(temporary, { force: true })
        }
      }),
  }
}

/**
 * Returns the function that reads an object of a listing, or a part of it: from its copy if there is one, otherwise from the
 * bucket. If there is no folder that only the user can write to, nothing is kept.
 */
export const cachedGet = ({ store, id }: Connected) => {
  const folder = userCache("buckets")
  const cache = folder === undefined ? undefined : openCache(folder, id)
  return Effect.fnUntraced(function* (object: ObjectInfo, part?: Part) {
    if (part !== undefined) return (yield* store.versions.get(object.key, part))?.bytes
    const kept = cache && (yield* cache.read(object))
    if (kept !== undefined) return kept
    const read = yield* store.versions.get(object.key)
    // The object may have been replaced since it was listed.
    if (cache !== undefined && read?.version === object.version) yield* cache.write(object, read.bytes)
    return read?.bytes
  })
}
