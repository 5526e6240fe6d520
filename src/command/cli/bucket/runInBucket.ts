/**
 * Lets `effect run` save a run in a bucket of S3, for `--results-dir s3://BUCKET/PREFIX`. The run works in a temporary folder,
 * whose files are copied to the bucket; to resume a run, its files are first copied from there. A lock in the bucket keeps
 * processes on other machines from writing the same run.
 */
import { join, relative } from "node:path"
import { Config, Effect, FileSystem, Option, type Path, Schema, Scope } from "effect"
import { makeFolder } from "../../../base/files/files.ts"
import * as Layout from "../../../run/Layout.ts"
import { isFile } from "../../../run/read/objectSource.ts"
import type { FileTree } from "../../../run/store/FileTree.ts"
import { guarded, holdLease, type Lease, leaseSeconds } from "../../../run/store/objects/lease.ts"
import { mirrored } from "../../../run/store/objects/mirrored.ts"
import type { ObjectInfo } from "../../../run/store/objects/ObjectStore.ts"
import { owner } from "../../../run/store/owner-node.ts"
import { RunStoreError } from "../../../run/store/RunStoreError.ts"
import { usageError, writeError } from "../output/output.ts"
import type { RunFlags } from "../run/flags.ts"
import { connect, type Connected, failingAt } from "./connect.ts"
import { cachedGet } from "./cache.ts"
import { type CommandError } from "../../CommandError.ts"

export const notForTrainers =
  "--results-dir s3://… does not work for multi-run trainers, whose ranks share a folder; use a folder on disk"

/** The bucket in which a run is saved, and the folder on disk that is used in its stead while the run is open. */
export interface RunBucket {
  /** The user's flags, in which the folder on disk replaces the bucket. */
  readonly input: RunFlags
  /** The address in the bucket that corresponds to the folder. */
  readonly root: string
  /** Returns the address in the bucket of a run in the folder. */
  readonly addressOf: (directory: string) => string
  /** Copies the remaining files of a run from the bucket; before this call, the folder may have only some of them. */
  readonly complete: (directory: string) => Effect.Effect<void, BucketError, FileSystem.FileSystem | Path.Path>
  readonly wrap: (
    tree: FileTree,
    directory: string,
  ) => Effect.Effect<FileTree, RunStoreError, Effect.Services<ReturnType<typeof mirrored>>>
}

type BucketError = CommandError | RunStoreError

/** The files from which the command finds out which run is to be resumed. */
const identifying: ReadonlySet<string> = new Set([Layout.config, Layout.returns, Layout.sweepCommand])

/**
 * Returns the checkpoint to which an object belongs, by the beginning of its key; undefined if it belongs to no checkpoint.
 */
const checkpointOf = (key: string): string | undefined => {
  const names = key.split("/")
  const at = names.findLastIndex((name) => Layout.checkpointOf(name) !== undefined)
  return at < 0 || at === names.length - 1 ? undefined : names.slice(0, at + 1).join("/")
}

/** Leaves out locks, and checkpoints that were not completely uploaded and therefore have no manifest. */
const wholeOnly = (objects: ReadonlyArray<ObjectInfo>): ReadonlyArray<ObjectInfo> => {
  const keys = new Set(objects.map(({ key }) => key))
  return objects.filter(({ key }) => {
    const checkpoint = checkpointOf(key)
    const isWhole = checkpoint === undefined || keys.has(`${checkpoint}/${Layout.inCheckpoint.manifest}`)
    return isFile(key) && isWhole && !Layout.isOfWriter(Layout.fileName(key))
  })
}

/** Returns how many seconds the lock of a dead process still keeps other processes from the run. */
const secondsOfLease = Effect.gen(function* () {
  const seconds = Config.schema(Schema.Finite.check(Schema.isGreaterThan(0)), "EFFECT_RL_LEASE_SECONDS")
  return yield* Config.withDefault(seconds, leaseSeconds)
}).pipe(Effect.mapError(() => usageError("EFFECT_RL_LEASE_SECONDS: expected a number of seconds above 0")))

/** Takes the lock with this key in a bucket until the scope closes. */
export const lockIn = Effect.fnUntraced(function* ({ store, root }: Connected, key: string) {
  const seconds = yield* secondsOfLease
  const onWait = (message: string) => writeError(`${message}\n`)
  return yield* holdLease({ store, key, address: `${root}/${key}`, owner, seconds, onWait })
})

/** An open bucket, and the folder on disk that is used in its stead. */
interface BucketFolder extends Connected {
  readonly folder: string
  /** The locks of runs are held until this scope closes. */
  readonly scope: Scope.Scope
  readonly get: ReturnType<typeof cachedGet>
  /** The versions of the objects that are in the folder. */
  readonly copied: Map<string, string>
  lease: { readonly key: string; readonly held: Lease } | undefined
}

const keyIn = ({ folder }: BucketFolder, directory: string): string => relative(folder, directory).replaceAll("\\", "/")

/** Opens the bucket. For `--resume`, it first copies the files that identify each run to a temporary folder. */
export const openBucket = Effect.fnUntraced(function* (typed: RunFlags) {
  const connected = yield* connect(typed.resultsDir, "--results-dir")
  const { store, root } = connected
  const failing = failingAt(root)
  const fs = yield* FileSystem.FileSystem
  const state: BucketFolder = {
    ...connected,
    folder: yield* Effect.orDie(fs.makeTempDirectoryScoped({ prefix: "effect-s3-" })),
    scope: yield* Effect.scope,
    get: cachedGet(connected),
    copied: new Map(),
    lease: undefined,
  }
  const resume = Option.getOrUndefined(typed.resume)
  const run = resume?.startsWith(`${root}/`) === true ? resume.slice(root.length + 1).replace(/\/+$/, "") : undefined
  if (resume !== undefined) {
    const objects = yield* failing(store.versions.list(run === undefined ? "" : `${run}/`))
    if (run !== undefined && !objects.some(({ key }) => key === `${run}/${Layout.config}`)) {
      return yield* usageError(`--resume ${resume}: expected the address of a run, found no ${Layout.config} there`)
    }
    const chosen = objects.filter(({ key }) => identifying.has(Layout.fileName(key)))
    yield* copyAll(state, chosen)
  } else {
    // Fail before the training begins if the bucket is missing or the access key is wrong.
    yield* failing(store.get(Layout.config))
  }
  const bucket: RunBucket = {
    input: {
      ...typed,
      resultsDir: state.folder,
      resume: run === undefined ? typed.resume : Option.some(join(state.folder, run)),
    },
    root,
    addressOf: (directory) => `${root}/${keyIn(state, directory)}`,
    complete: (directory) => complete(state, directory),
    wrap: (tree, directory) => wrap(state, tree, directory),
  }
  return bucket
})

/** Copies objects into the folder, except those that the folder already has. */
const copyAll = (state: BucketFolder, objects: ReadonlyArray<ObjectInfo>) =>
  Effect.forEach(wholeOnly(objects), (object) => copy(state, object), { concurrency: 16, discard: true })

const copy = Effect.fnUntraced(function* ({ root, folder, get, copied }: BucketFolder, object: ObjectInfo) {
  const { key, version } = object
  if (version !== "" && copied.get(key) === version) return
  const file = join(folder, key)
  const bytes = yield* failingAt(root)(get(object))
  if (bytes === undefined) return
  yield* Effect.orDie(makeFolder(join(file, "..")))
  yield* Effect.orDie((yield* FileSystem.FileSystem).writeFile(file, bytes))
  copied.set(key, version)
})

/** Takes the lock of a run, and copies its files. */
const complete = Effect.fnUntraced(function* (state: BucketFolder, directory: string) {
  const { root, store, folder, copied } = state
  const fs = yield* FileSystem.FileSystem
  const key = keyIn(state, directory)
  state.lease = { key, held: yield* Scope.provide(lockIn(state, `${key}/${Layout.lock}`), state.scope) }
  // Another process may have written the run before this process got the lock.
  const objects = yield* failingAt(root)(store.versions.list(`${key}/`))
  const keys = new Set(objects.map((object) => object.key))
  const gone = [...copied.keys()].filter((one) => one.startsWith(`${key}/`) && !keys.has(one))
  for (const one of gone) yield* Effect.orDie(fs.remove(join(folder, one), { force: true }))
  yield* copyAll(state, objects)
})

/** Locks the folder of a new run in the bucket. Fails if another run has started there. */
const lockNew = Effect.fnUntraced(function* (connected: Connected, key: string) {
  const { store, root } = connected
  const address = `${root}/${key}`
  const creating = Effect.mapError(
    ({ message }: RunStoreError) =>
      new RunStoreError({ path: address, operation: "create", message: `cannot create ${address}: ${message}` }),
  )
  const refuseOther = Effect.gen(function* () {
    const keys = yield* creating(store.list(`${key}/`))
    if (!keys.includes(`${key}/${Layout.config}`)) return keys
    const message = `${address}: another run has started there in the same second; start this one again`
    return yield* new RunStoreError({ path: address, operation: "create", message })
  })
  yield* refuseOther
  const held = yield* lockIn(connected, `${key}/${Layout.lock}`)
  // A run that was stopped before it wrote its config can't be resumed, so its files are removed for this one.
  const left = (yield* refuseOther).filter((one) => one !== `${key}/${Layout.lock}`)
  yield* Effect.forEach(left, (one) => creating(guarded(store, held).remove(one)), { discard: true })
  return held
})

/** Wraps the file tree of a run's folder, so that each file is also copied into the bucket when it is written. */
const wrap = Effect.fnUntraced(function* (state: BucketFolder, tree: FileTree, directory: string) {
  const { store, root, lease } = state
  const key = keyIn(state, directory)
  const address = `${root}/${key}`
  const held =
    lease?.key === key
      ? lease.held
      : yield* Effect.mapError(lockNew(state, key), (error) =>
          error instanceof RunStoreError
            ? error
            : new RunStoreError({ path: address, operation: "lock", message: error.message }),
        )
  const mirror = yield* mirrored(tree, { store: guarded(store, held), key, address })
  // Only the config that a program saves shows that it is a trainer.
  const refused = new RunStoreError({ path: address, operation: "create", message: notForTrainers })
  const write: FileTree["write"] = (path, contents, how) => {
    if (path === Layout.config && /^kind: "?multirun/m.test(String(contents))) return Effect.fail(refused)
    // Only this file contains the run's own path.
    const isResult = path === Layout.metrics && typeof contents === "string"
    const shown = isResult ? contents.replaceAll(JSON.stringify(directory), JSON.stringify(address)) : contents
    return mirror.write(path, shown, how)
  }
  return { ...mirror, write }
})
