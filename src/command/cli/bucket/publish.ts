/**
 * Publishes a finished run in a bucket, as a whole: its `return.json` is written last, and a run without that file is not
 * finished. If two machines publish the same run, the second machine sees that it is finished.
 */
import { join } from "node:path"
import { Effect, FileSystem } from "effect"
import { readBytes } from "../../../base/files/files.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import * as Layout from "../../../run/Layout.ts"
import { guarded } from "../../../run/store/objects/lease.ts"
import { connect, type Connected, failingAt } from "./connect.ts"
import { lockIn } from "./runInBucket.ts"

/** Opens the folder of a run in a bucket: the folder `path` below the address `resultsDir`. */
export const openPublished = Effect.fnUntraced(function* (resultsDir: string, path: string) {
  const connected = yield* connect(resultsDir)
  return {
    address: `${connected.root}/${path}`,
    /** Returns the text of the run's `metrics.json`; undefined if the run is not finished. */
    metrics: metricsOf(connected, path),
    /** Publishes the run in a folder, unless the bucket already has the finished run. */
    publish: (directory: string) => Effect.scoped(publish(connected, path, directory)),
  }
})

const metricsOf = Effect.fnUntraced(function* ({ store, root }: Connected, path: string) {
  const failing = failingAt(root)
  if ((yield* failing(store.get(`${path}/${Layout.returns}`))) === undefined) return undefined
  const bytes = yield* failing(store.get(`${path}/${Layout.metrics}`))
  return bytes === undefined ? undefined : utf8.decode(bytes)
})

const publish = Effect.fnUntraced(function* (connected: Connected, path: string, directory: string) {
  const { store, root } = connected
  const failing = failingAt(root)
  const lock = `${path}/${Layout.lock}`
  const writer = guarded(store, yield* lockIn(connected, lock))
  if ((yield* metricsOf(connected, path)) !== undefined) return
  const fs = yield* FileSystem.FileSystem
  const files: Array<string> = []
  /** The targets of links by their names. A link is published as a text with its target, and nothing behind it. */
  const targets = new Map<string, string>()
  const folders = [""]
  for (const folder of folders) {
    for (const { name, type } of yield* fs.readDirectoryEntries(join(directory, folder))) {
      const below = folder === "" ? name : `${folder}/${name}`
      if (type === "Directory") folders.push(below)
      else if (type === "SymbolicLink") targets.set(below, yield* fs.readLink(join(directory, below)))
      else if (type === "File" && !Layout.isOfWriter(below)) files.push(below)
    }
  }
  // Another machine may have published a part of this run before it died: remove the files that this run does not have.
  const kept = new Set([lock, ...[...files, ...targets.keys()].map((name) => `${path}/${name}`)])
  const left = (yield* failing(store.list(`${path}/`))).filter((key) => !kept.has(key))
  yield* Effect.forEach(left, (key) => failing(writer.remove(key)), { discard: true })
  for (const [name, target] of targets) yield* failing(writer.put(`${path}/${name}`, utf8.encode(target)))
  const put = (name: string) =>
    Effect.flatMap(readBytes(join(directory, name), Infinity), (bytes) => failing(writer.put(`${path}/${name}`, bytes)))
  yield* Effect.forEach(
    files.filter((name) => name !== Layout.returns),
    put,
    { concurrency: 8, discard: true },
  )
  yield* put(Layout.returns)
})
