/**
 * Keeps the models of a Tinker server on disk, so that all that the server has acknowledged survives a kill:
 *
 *     models/MODEL/model.json               the model's settings
 *     models/MODEL/requests/000000000007    an accepted request, until it needs no repetition
 *     models/MODEL/results/000000000007     the outcome of a request
 *     models/MODEL/state/                   the adapter and the moments after the last update
 *
 * A request is written before it is acknowledged, and an update is saved before its outcome can be retrieved. After a kill, the
 * server repeats the requests since the last update; a gradient depends only on its request, so the results are the same.
 */
import { Effect, Schema } from "effect"
import { joined } from "../../../base/text/bytes.ts"
import { parsedJson, prettyJson } from "../../../base/text/text.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import type { FileTree } from "../../../run/store/FileTree.ts"
import { RunStoreError } from "../../../run/store/RunStoreError.ts"
import { Outcome } from "../wire/outcomes.ts"
import { stateFile } from "./AdapterInTraining.ts"

export const ModelRecord = Schema.Struct({
  id: Schema.String,
  session: Schema.String,
  /** The name of the API key to which the model belongs. */
  owner: Schema.String,
  rank: Schema.Int,
  /** The seed of the adapter's first numbers. */
  seed: Schema.Int,
  trains_attention: Schema.Boolean,
  trains_mlp: Schema.Boolean,
  user_metadata: Schema.NullOr(Schema.Record(Schema.String, Schema.Unknown)),
  /** The time of the request, for lists. */
  created_at: Schema.String,
  is_unloaded: Schema.Boolean,
})
export type ModelRecord = typeof ModelRecord.Type

const requestKinds = [
  "forward",
  "forward_backward",
  "optim_step",
  "save_weights",
  "save_weights_for_sampler",
  "load_weights",
] as const
export type RequestKind = (typeof requestKinds)[number]

const RequestHead = Schema.Struct({
  kind: Schema.Literals(requestKinds),
  encoding: Schema.Literals(["json", "protobuf"]),
  /** The digest of the body, by which a repeated request is recognised. */
  digest: Schema.String,
  /** Says why the request fails when its turn comes. Then it has no body. */
  refusal: Schema.optionalKey(Schema.String),
})
type RequestHead = typeof RequestHead.Type

export interface AcceptedRequest extends RequestHead {
  readonly body: Uint8Array
}

const SavedResult = Schema.Struct({ digest: Schema.String, outcome: Outcome })
export type SavedResult = typeof SavedResult.Type

const Progress = Schema.Struct({
  /** The number of the last request that the state contains. */
  last_seq: Schema.Int,
  steps: Schema.Int,
  /** The outcome of that request. */
  result: SavedResult,
})

/** The state of a model after an update. */
interface SavedState {
  readonly progress: typeof Progress.Type
  readonly bytes: Uint8Array
}

const models = "models"
const folderOf = (model: string): string => `${models}/${model}`
const numbered = (model: string, kind: "requests" | "results", seq: number): string =>
  `${folderOf(model)}/${kind}/${String(seq).padStart(12, "0")}`
const recordFile = (model: string): string => `${folderOf(model)}/model.json`
const stateFolder = (model: string): string => `${folderOf(model)}/state`

/** The number of outcomes of a model that are kept. */
const keptResults = 512

const damaged = (files: FileTree, path: string): RunStoreError =>
  new RunStoreError({
    path: files.pathOf(path),
    message: `${files.pathOf(path)}: expected a file of this server, found others`,
  })

/** Reads a JSON file by its Schema. */
const readJson = Effect.fnUntraced(function* <S extends Schema.Codec<unknown, unknown>>(
  files: FileTree,
  path: string,
  schema: S,
): Effect.fn.Return<S["Type"], RunStoreError> {
  const value = parsedJson(yield* files.readText(path))
  return yield* Effect.mapError(Schema.decodeUnknownEffect(schema)(value), () => damaged(files, path))
})

export const writeRecord = (files: FileTree, record: ModelRecord): Effect.Effect<void, RunStoreError> =>
  files.write(recordFile(record.id), prettyJson(record))

/** Reads the settings of a model; undefined if there is none with this id. */
export const readRecord = Effect.fnUntraced(function* (files: FileTree, id: string) {
  // The id may be a client's, so it must not lead to another folder.
  if (!/^[\w-]+$/.test(id)) return undefined
  return (yield* files.exists(recordFile(id))) ? yield* readJson(files, recordFile(id), ModelRecord) : undefined
})

/** Reads the settings of all models. */
export const readRecords = Effect.fnUntraced(function* (files: FileTree) {
  const records: Array<ModelRecord> = []
  for (const model of yield* files.list(models)) {
    const record = yield* readRecord(files, model)
    if (record !== undefined) records.push(record)
  }
  return records
})

/** Writes a request before it is acknowledged. */
export const writeRequest = (files: FileTree, model: string, seq: number, request: AcceptedRequest) => {
  const { body, ...head } = request
  return files.write(numbered(model, "requests", seq), joined([utf8.encode(`${JSON.stringify(head)}\n`), body]))
}

export const readRequest = Effect.fnUntraced(function* (
  files: FileTree,
  model: string,
  seq: number,
): Effect.fn.Return<AcceptedRequest, RunStoreError> {
  const path = numbered(model, "requests", seq)
  const bytes = yield* files.read(path)
  const end = bytes.indexOf(10)
  const head = yield* Effect.mapError(
    Schema.decodeUnknownEffect(RequestHead)(parsedJson(utf8.decode(bytes.subarray(0, Math.max(end, 0))))),
    () => damaged(files, path),
  )
  return { ...head, body: bytes.subarray(end + 1) }
})

/** Lists the numbers of a model's requests or outcomes on disk, in ascending order. */
const numbersOf = (files: FileTree, model: string, kind: "requests" | "results") =>
  Effect.map(files.list(`${folderOf(model)}/${kind}`), (names) =>
    names.filter((name) => /^\d{12}$/.test(name)).map(Number),
  )

export const resultsOf = (files: FileTree, model: string) => numbersOf(files, model, "results")
export const removeRequest = (files: FileTree, model: string, seq: number) =>
  files.remove(numbered(model, "requests", seq))
export const requestsOf = (files: FileTree, model: string) => numbersOf(files, model, "requests")

const removeAll = (files: FileTree, model: string, kind: "requests" | "results", seqs: ReadonlyArray<number>) =>
  Effect.forEach(seqs, (seq) => files.remove(numbered(model, kind, seq)), { discard: true })

/** Removes the requests that the saved state contains, and the oldest outcomes. */
export const tidyModel = Effect.fnUntraced(function* (files: FileTree, model: string, lastSeq: number) {
  const requests = yield* requestsOf(files, model)
  yield* removeAll(
    files,
    model,
    "requests",
    requests.filter((seq) => seq <= lastSeq),
  )
  const results = yield* resultsOf(files, model)
  yield* removeAll(files, model, "results", results.slice(0, Math.max(0, results.length - keptResults)))
})

export const writeResult = (files: FileTree, model: string, seq: number, result: SavedResult) =>
  files.write(numbered(model, "results", seq), JSON.stringify(result))

/** Removes the outcome that is too old to be kept, after that of the request `seq` was written. */
export const removeOldResult = (files: FileTree, model: string, seq: number) =>
  seq > keptResults ? files.remove(numbered(model, "results", seq - keptResults)) : Effect.void

/** Reads the outcome of a request; undefined if there is none. */
export const readResult = Effect.fnUntraced(function* (files: FileTree, model: string, seq: number) {
  const path = numbered(model, "results", seq)
  return (yield* files.exists(path)) ? yield* readJson(files, path, SavedResult) : undefined
})

/** Saves the state of a model as a whole or not at all. */
export const writeState = (files: FileTree, model: string, { progress, bytes }: SavedState) =>
  files.writeDirectory(stateFolder(model), {
    [stateFile]: bytes,
    "progress.json": utf8.encode(prettyJson(progress)),
  })

/** Reads the state of a model; undefined if it was never updated. */
export const readState = Effect.fnUntraced(function* (files: FileTree, model: string) {
  yield* files.repair(folderOf(model))
  if (!(yield* files.exists(`${stateFolder(model)}/progress.json`))) return undefined
  const saved: SavedState = {
    progress: yield* readJson(files, `${stateFolder(model)}/progress.json`, Progress),
    bytes: yield* files.read(`${stateFolder(model)}/${stateFile}`),
  }
  return saved
})

/** Removes the state, the requests and the outcomes of a model that was unloaded. Its checkpoints stay. */
export const removeState = Effect.fnUntraced(function* (files: FileTree, model: string) {
  yield* files.remove(stateFolder(model))
  yield* files.remove(`${folderOf(model)}/requests`)
  yield* files.remove(`${folderOf(model)}/results`)
})
