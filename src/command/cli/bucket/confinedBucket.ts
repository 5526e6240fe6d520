/** Lets `effect ui` show the runs in a bucket of S3. The bucket is listed again while a page is open. */
import { dirname, join } from "node:path"
import { Clock, Effect, FileSystem, type Path, Semaphore } from "effect"
import { makeFolder } from "../../../base/files/files.ts"
import { isRunFolder } from "../../ui/runIndex.ts"
import type { Confined } from "../../../run/read/confined-node.ts"
import { warn } from "../findRun.ts"
import { writeError } from "../output/output.ts"
import { openBucketSource } from "./readBucket.ts"

/** The time between two listings of the bucket, in milliseconds. */
const listedEvery = 10_000

/** Opens the folder of runs, or the single run, at an address. Files are copied to a temporary folder to be served. */
export const confinedToBucket = Effect.fnUntraced(function* (address: string) {
  const onError = ({ message }: { readonly message: string }) => Effect.as(warn(message), undefined)
  const top = yield* openBucketSource(address, () => Effect.void, onError)
  const isRun = isRunFolder(yield* top.source.entries(top.root))
  const slash = top.root.lastIndexOf("/")
  const only = isRun ? top.root.slice(slash + 1) : ""
  // As on disk, a single run is named by its path.
  const bucket = isRun ? yield* openBucketSource(top.root.slice(0, slash), () => Effect.void, onError, only) : top
  const { source, root, fetch } = bucket

  const context = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
  const fs = yield* FileSystem.FileSystem
  const folder = yield* Effect.orDie(fs.makeTempDirectoryScoped({ prefix: "effect-s3-" }))
  const versions = new Map<string, string>()
  /** Copies a file to the temporary folder, unless this version of it is there. Returns the path of the copy. */
  const copied = Effect.fnUntraced(function* (path: string) {
    const object = source.infoAt(path)
    if (object === undefined) return undefined
    const file = join(folder, object.key)
    if (versions.get(object.key) === object.version) return file
    const bytes = yield* fetch(path)
    // A file that was replaced since the listing has another size; the next listing has the new size.
    if (bytes?.length !== object.bytes) return undefined
    yield* makeFolder(dirname(file))
    // Another request may be reading the file.
    const temporary = `${file}.${crypto.randomUUID()}`
    yield* fs.writeFile(temporary, bytes)
    yield* fs.rename(temporary, file)
    versions.set(object.key, object.version)
    return file
  })

  const turn = Semaphore.makeUnsafe(1)
  let listedAt = yield* Clock.currentTimeMillis
  const refresh = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    if (now - listedAt < listedEvery) return
    listedAt = now
    yield* Effect.catch(source.refresh, ({ message }) => writeError(`${root}: ${message}; the page stays as it is\n`))
  }).pipe(turn.withPermit)

  const files: Confined = {
    ...source,
    root,
    only,
    refresh,
    locate: (path) =>
      copied(path).pipe(
        Effect.provideContext(context),
        Effect.catch((error) => onError(error)),
      ),
    stamp: (path) =>
      Effect.gen(function* () {
        const object = source.infoAt(path)
        if (object !== undefined) return `${object.bytes}:${object.version}`
        const { files, folders } = yield* source.entries(path)
        return [...files.map((name) => source.infoAt(`${path}/${name}`)?.version), ...folders].join(" ")
      }),
  }
  return files
})
