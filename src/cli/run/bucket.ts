/**
 * Lets `effect run` save a run in a bucket of S3, for `--results-dir s3://BUCKET/PREFIX`. The run works in a temporary folder,
 * whose files are copied to the bucket; to resume a run, its files are first copied from there.
 */
import { join, relative } from "node:path"
import { Context, Effect, FileSystem, Layer, Option, type Path, Redacted } from "effect"
import { makeFolder } from "../../config/files.ts"
import { httpClient } from "../../node.ts"
import * as Layout from "../../run/Layout.ts"
import type { FileTree } from "../../run/store/FileTree.ts"
import { mirrored } from "../../run/store/objects/mirrored.ts"
import { ObjectStore, type ObjectStoreError } from "../../run/store/objects/ObjectStore.ts"
import * as S3 from "../../run/store/objects/s3.ts"
import { RunStoreError } from "../../run/store/RunStoreError.ts"
import { usageError } from "../output/output.ts"
import type { RunFlags } from "./flags.ts"

export const notForTrainers =
  "--results-dir s3://… does not work for multi-run trainers, whose ranks share a folder; use a folder on disk"

/** The bucket in which a run is saved, and the folder on disk that stands for it while the run is open. */
export interface Bucket {
  /** The flags of the user, for the folder on disk. */
  readonly input: RunFlags
  /** Returns the address in the bucket of a run in the folder. */
  readonly addressOf: (directory: string) => string
  /** Copies the files of a run from the bucket, of which only some may be in the folder. */
  readonly complete: (directory: string) => Effect.Effect<void, BucketError, FileSystem.FileSystem | Path.Path>
  readonly wrap: (
    tree: FileTree,
    directory: string,
  ) => Effect.Effect<FileTree, RunStoreError, Effect.Services<ReturnType<typeof mirrored>>>
}

type BucketError = Effect.Error<ReturnType<typeof optionsOf>>

/** Reads the bucket from its address, and the server and the key from the variables that Amazon's tools read. */
const optionsOf = Effect.fnUntraced(function* (address: string, env: NodeJS.ProcessEnv) {
  const [, bucket, , prefix = ""] = /^s3:\/\/([a-z0-9][a-z0-9.-]+)(\/(.*?))?\/*$/.exec(address) ?? []
  if (bucket === undefined) {
    return yield* usageError(`--results-dir: expected s3://BUCKET or s3://BUCKET/PREFIX, found ${address}`)
  }
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secret, AWS_SESSION_TOKEN: sessionToken } = env
  const absent = accessKeyId === undefined ? "AWS_ACCESS_KEY_ID" : secret === undefined ? "AWS_SECRET_ACCESS_KEY" : ""
  if (accessKeyId === undefined || secret === undefined) {
    return yield* usageError(`--results-dir ${address}: set ${absent}, the key of the bucket's server`)
  }
  const endpoint = env.AWS_ENDPOINT_URL_S3 ?? env.AWS_ENDPOINT_URL
  const region = env.AWS_REGION ?? env.AWS_DEFAULT_REGION
  const options: S3.S3Options = {
    bucket,
    accessKeyId,
    secretAccessKey: Redacted.make(secret),
    prefix: prefix === "" ? "" : `${prefix}/`,
    ...(sessionToken === undefined ? {} : { sessionToken }),
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(region === undefined ? {} : { region }),
  }
  return { options, root: `s3://${bucket}${prefix === "" ? "" : `/${prefix}`}` }
})

/** Matches the keys of files that are large and only needed to resume: checkpoints, and evaluations of single steps. */
const large = /\/(checkpoints|steps)\//

/** Opens the bucket. For `--resume`, it copies the runs that may be meant into a temporary folder, without large files. */
export const openBucket = Effect.fnUntraced(function* (typed: RunFlags) {
  const { options, root } = yield* optionsOf(typed.resultsDir, process.env)
  const layer = S3.layer(options).pipe(Layer.provide(httpClient))
  const failing = Effect.mapError(({ message }: ObjectStoreError) => usageError(`${root}: ${message}`))
  const store = Context.get(yield* failing(Layer.build(layer)), ObjectStore)
  const fs = yield* FileSystem.FileSystem
  const folder = yield* Effect.orDie(fs.makeTempDirectoryScoped({ prefix: "effect-s3-" }))

  const copy = Effect.fnUntraced(function* (key: string) {
    const file = join(folder, key)
    const bytes = yield* failing(store.get(key))
    if (bytes === undefined) return
    yield* Effect.orDie(makeFolder(join(file, "..")))
    yield* Effect.orDie(fs.writeFile(file, bytes))
  })
  const copyAll = (keys: ReadonlyArray<string>) =>
    Effect.forEach(
      // A key with `..`, which no run has, would be a file outside of the folder.
      keys.filter((key) => !key.endsWith("/") && !key.split(/[/\\]/).includes("..")),
      copy,
      { concurrency: 8, discard: true },
    )
  const keyOf = (directory: string): string => relative(folder, directory).replaceAll("\\", "/")
  const addressOf = (directory: string): string => `${root}/${keyOf(directory)}`

  const resume = Option.getOrUndefined(typed.resume)
  const run = resume?.startsWith(`${root}/`) === true ? resume.slice(root.length + 1).replace(/\/+$/, "") : undefined
  if (resume !== undefined) {
    const keys = yield* failing(store.list(run === undefined ? "" : `${run}/`))
    if (run !== undefined && !keys.includes(`${run}/${Layout.config}`)) {
      return yield* usageError(`--resume ${resume}: expected the address of a run, found no ${Layout.config} there`)
    }
    yield* copyAll(keys.filter((key) => !large.test(key)))
  } else {
    // Fail before the training begins if the bucket is missing or the key is wrong.
    yield* failing(store.get(Layout.config))
  }

  const bucket: Bucket = {
    input: {
      ...typed,
      resultsDir: folder,
      resume: run === undefined ? typed.resume : Option.some(join(folder, run)),
    },
    addressOf,
    complete: (directory) =>
      Effect.flatMap(failing(store.list(`${keyOf(directory)}/`)), (keys) =>
        copyAll(keys.filter((key) => large.test(key))),
      ),
    wrap: Effect.fnUntraced(function* (tree, directory) {
      const key = keyOf(directory)
      const address = addressOf(directory)
      if (resume === undefined) {
        const keys = yield* Effect.mapError(
          store.list(`${key}/`),
          ({ message }) =>
            new RunStoreError({ path: address, operation: "create", message: `cannot create ${address}: ${message}` }),
        )
        if (keys.length > 0) {
          const message = `${address}: another run has started there in the same second; start this one again`
          return yield* new RunStoreError({ path: address, operation: "create", message })
        }
      }
      const copied = yield* mirrored(tree, { store, key, address })
      // Programs say only now that they are trainers, by the config that they save.
      const refused = new RunStoreError({ path: address, operation: "create", message: notForTrainers })
      return {
        ...copied,
        write: (path, contents, how) =>
          path === Layout.config && /^kind: "?multirun/m.test(String(contents))
            ? Effect.fail(refused)
            : copied.write(path, contents, how),
      }
    }),
  }
  return bucket
})
