/**
 * Attaches bytes to a job of a cluster, such as the weights of a policy or the memory of an agent. A small number of bytes is
 * sent in the job itself. More bytes are written to a file in the run's folder, which must then be in a results folder that
 * all machines share.
 *
 * @example
 * ```ts
 * const attachment = yield* attach(runFiles, "0001", bytes) // where the job is asked for, in a scope that lasts until its answer
 * const same = yield* readAttachment("validation", attachment) // where the job is done
 * ```
 */
import { Effect, type FileSystem, type Scope } from "effect"
import * as Schema from "effect/Schema"
import { WorkerError } from "../../spread/workers/WorkerError.ts"
import { readBytes } from "../../base/files/files.ts"
import { sha256 } from "../../base/text/sha256.ts"
import * as Layout from "../Layout.ts"
import type { RunFiles } from "../store/RunFiles.ts"
import type { RunStoreError } from "../store/RunStoreError.ts"

export const Attachment = Schema.Union([
  Schema.TaggedStruct("Inline", { bytes: Schema.Uint8ArrayFromBase64 }),
  Schema.TaggedStruct("InFile", { path: Schema.String, sha256: Schema.String }),
])
export type Attachment = typeof Attachment.Type

/** The largest number of bytes that is sent in the job itself. The database keeps several copies of each job. */
export const mostInline = 256 << 10
/** The size of the largest file, in bytes, that a worker reads. */
const mostInFile = 2 ** 31

/**
 * Attaches bytes to a job. `run` identifies the run or evaluation; see `runIdOf`. The scope removes the attachment's file
 * when it closes, so it must last until the job is answered.
 */
export const attach = Effect.fnUntraced(function* (
  files: RunFiles,
  run: string,
  bytes: Uint8Array,
): Effect.fn.Return<Attachment, RunStoreError, Scope.Scope> {
  if (bytes.length <= mostInline) return { _tag: "Inline", bytes }
  const digest = yield* sha256(bytes)
  const folder = Layout.sent(run)
  const name = `${folder}/${digest}`
  yield* Effect.acquireRelease(files.write(name, bytes, { durable: false }), () => Effect.ignore(files.remove(folder)))
  return { _tag: "InFile", path: `${files.directory}/${name}`, sha256: digest }
})

/** Returns the bytes of an attachment. */
export const readAttachment = Effect.fnUntraced(function* (
  job: string,
  attachment: Attachment,
): Effect.fn.Return<Uint8Array, WorkerError, FileSystem.FileSystem> {
  if (attachment._tag === "Inline") return attachment.bytes
  const { path, sha256: expected } = attachment
  const refuse = (problem: string): WorkerError => WorkerError.dispatch(job, `${path}: ${problem}`)
  const bytes = yield* Effect.mapError(readBytes(path, mostInFile), ({ message }) =>
    refuse(
      `${message}; more than ${mostInline >> 10} KiB of weights or memory are sent by the run's folder, so mount the same results folder (no bucket) on all machines, at the same path`,
    ),
  )
  return (yield* sha256(bytes)) === expected
    ? bytes
    : yield* refuse("expected the file that the job names, found another content")
})
