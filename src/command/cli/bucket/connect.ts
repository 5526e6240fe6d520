/** Connects the commands with a bucket of S3 by the address that the user typed: `s3://BUCKET` or `s3://BUCKET/PREFIX`. */
import { Context, Effect, Layer, Redacted } from "effect"
import type { RunStoreError } from "../../../run/store/RunStoreError.ts"
import { httpClient } from "../../../node.ts"
import { ObjectStore, type Versions } from "../../../run/store/objects/ObjectStore.ts"
import * as S3 from "../../../run/store/objects/s3.ts"
import { usageError } from "../output/output.ts"

/** A part of a bucket: the objects whose keys begin with the prefix of the address. The keys in this API lack that prefix. */
export interface Connected {
  readonly store: ObjectStore["Service"] & { readonly versions: Versions }
  /** The address without a slash at its end. */
  readonly root: string
  /** The address of the server with the bucket and the prefix, which identifies these objects. */
  readonly id: string
}

/**
 * Reads the bucket from its address, and the server and the access key from the environment variables that Amazon's tools
 * read.
 */
const optionsOf = Effect.fnUntraced(function* (address: string, flag: string | undefined, env: NodeJS.ProcessEnv) {
  const [, bucket, , prefix = ""] = /^s3:\/\/([a-z0-9][a-z0-9.-]+)(\/(.*?))?\/*$/.exec(address) ?? []
  if (bucket === undefined) {
    const where = flag === undefined ? "" : `${flag}: `
    return yield* usageError(`${where}expected s3://BUCKET or s3://BUCKET/PREFIX, found ${address}`)
  }
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secret, AWS_SESSION_TOKEN: sessionToken } = env
  const absent = accessKeyId === undefined ? "AWS_ACCESS_KEY_ID" : secret === undefined ? "AWS_SECRET_ACCESS_KEY" : ""
  if (accessKeyId === undefined || secret === undefined) {
    const where = flag === undefined ? address : `${flag} ${address}`
    return yield* usageError(`${where}: set ${absent}, the key of the bucket's server`)
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

/** Converts an error of the bucket to an error of the command. */
export const failingAt = (root: string) =>
  Effect.mapError(({ message }: RunStoreError) => usageError(`${root}: ${message}`))

/**
 * Connects with the bucket of an address, without a request to the server. `flag` is the flag with which the user named the
 * address.
 */
export const connect = Effect.fnUntraced(function* (address: string, flag?: string) {
  const { options, root } = yield* optionsOf(address, flag, process.env)
  const layer = S3.layer(options).pipe(Layer.provide(httpClient))
  const store = Context.get(yield* failingAt(root)(Layer.build(layer)), ObjectStore)
  const { versions } = store
  if (versions === undefined) return yield* Effect.die("a store of S3 has versions")
  const connected: Connected = {
    store: { ...store, versions },
    root,
    id: `${options.endpoint ?? options.region ?? ""} ${root}`,
  }
  return connected
})
