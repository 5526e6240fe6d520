/** Answers the requests of Tinker's protocol about models and checkpoints on disk. */
import { Clock, Effect, Stream } from "effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { badRequest } from "../../decoder/serve/ApiError.ts"
import { json } from "../../decoder/serve/responses.ts"
import { decoderOf, notFound } from "./answers.ts"
import {
  addressOf,
  type CheckpointInfo,
  type CheckpointPlace,
  checkpointsOf,
  folderOfCheckpoint,
  infoOf,
  isExpired,
  placeOf,
  removeCheckpoint,
  writeInfo,
} from "./models/checkpoints.ts"
import { findSampler, type TinkerRequest } from "./handlers.ts"
import { TimeToLive, WeightsInfo } from "./wire/requests.ts"
import { checkpoints } from "../Layout.ts"
import * as ModelFiles from "./models/modelFiles.ts"
import { checkOwner } from "./models/performing.ts"
import { jsonIn } from "./wire/requestBody.ts"
import { endOfArchive, headerOf, paddingOf } from "./tar.ts"
import { type Session, timestamp, type TinkerState } from "./TinkerState.ts"

/** A request without a body. */
export type ListRequest = Omit<TinkerRequest, "body">

interface SavedCheckpoint {
  readonly place: CheckpointPlace
  readonly info: CheckpointInfo
}

const checkpointBody = ({ place, info }: SavedCheckpoint) => ({
  checkpoint_id: `${place.kind}/${place.name}`,
  checkpoint_type: place.kind === "weights" ? "training" : "sampler",
  time: info.saved_at,
  tinker_path: addressOf(place),
  size_bytes: info.size_bytes,
  public: false,
  expires_at: info.expires_at,
})

/** Lists the checkpoints of a model that clients have named, the newest last. */
const namedCheckpoints = Effect.fnUntraced(function* ({ files }: TinkerState, model: string) {
  const now = yield* Clock.currentTimeMillis
  return (yield* checkpointsOf(files, model))
    .filter(({ info }) => info.is_named && !isExpired(info, now))
    .sort((a, b) => a.info.seq - b.info.seq)
})

const runBody = Effect.fnUntraced(function* (state: TinkerState, record: ModelFiles.ModelRecord) {
  const saved = yield* namedCheckpoints(state, record.id)
  const last = (kind: CheckpointPlace["kind"]) => {
    const found = saved.findLast(({ place }) => place.kind === kind)
    return found === undefined ? null : checkpointBody(found)
  }
  const metadata = Object.entries(record.user_metadata ?? {}).map(([key, value]) => [key, String(value)])
  return {
    training_run_id: record.id,
    base_model: state.baseName,
    model_owner: record.owner,
    is_lora: true,
    lora_rank: record.rank,
    corrupted: false,
    last_request_time: record.created_at,
    last_checkpoint: last("weights"),
    last_sampler_checkpoint: last("sampler_weights"),
    user_metadata: record.user_metadata === null ? null : Object.fromEntries(metadata),
  }
})

/** Reads which part of a list a client asks for. */
const pageOf = Effect.map(HttpServerRequest.ParsedSearchParams, ({ limit, offset }) => {
  const number = (text: unknown, otherwise: number): number => {
    const value = Number(text ?? otherwise)
    return Number.isInteger(value) && value >= 0 ? value : otherwise
  }
  return { limit: Math.min(number(limit, 20), 1000), offset: number(offset, 0) }
})

const ownRecords = ({ state, owner }: ListRequest) =>
  Effect.map(ModelFiles.readRecords(state.files), (records) => records.filter((record) => record.owner === owner))

export const trainingRuns = Effect.fnUntraced(function* (request: ListRequest) {
  const { limit, offset } = yield* pageOf
  const records = yield* ownRecords(request)
  const page = records.slice(offset, offset + limit)
  const runs = yield* Effect.forEach(page, (record) => runBody(request.state, record))
  return json({ training_runs: runs, cursor: { offset, limit, total_count: records.length } })
})

/** Returns the model in the path of a request. */
const recordInPath = Effect.fnUntraced(function* ({ state, owner }: ListRequest) {
  const { model = "" } = yield* HttpRouter.params
  return yield* checkOwner(state, model, owner, "training_run_id")
})

export const trainingRun = (request: ListRequest) =>
  Effect.flatMap(recordInPath(request), (record) => Effect.map(runBody(request.state, record), (body) => json(body)))

export const checkpointsOfRun = Effect.fnUntraced(function* (request: ListRequest) {
  const { id } = yield* recordInPath(request)
  return json({ checkpoints: (yield* namedCheckpoints(request.state, id)).map(checkpointBody), cursor: null })
})

export const allCheckpoints = Effect.fnUntraced(function* (request: ListRequest) {
  const { limit, offset } = yield* pageOf
  const records = yield* ownRecords(request)
  const all = (yield* Effect.forEach(records, ({ id }) => namedCheckpoints(request.state, id))).flat()
  all.sort((a, b) => Date.parse(b.info.saved_at) - Date.parse(a.info.saved_at))
  const cursor = { offset, limit, total_count: all.length }
  return json({ checkpoints: all.slice(offset, offset + limit).map(checkpointBody), cursor })
})

/** Returns the checkpoint in the path of a request. */
const checkpointInPath = Effect.fnUntraced(function* (request: ListRequest) {
  const { id } = yield* recordInPath(request)
  const { kind = "", name = "" } = yield* HttpRouter.params
  const place = yield* placeOf(`tinker://${id}/${kind}/${name}`, "checkpoint_id")
  const info = yield* infoOf(request.state.files, place)
  return info === undefined
    ? yield* notFound("checkpoint_id", `there is no checkpoint ${addressOf(place)}`)
    : { place, info }
})

/** Refuses the name of a checkpoint without its kind: weights and sampler_weights may have the same names. */
export const refuseName = Effect.fnUntraced(function* () {
  const { name = "" } = yield* HttpRouter.params
  const expected = `expected weights/${name} or sampler_weights/${name}, found ${name}`
  return yield* badRequest(`checkpoint_id: ${expected}`, "checkpoint_id")
})

const empty = HttpServerResponse.empty({ status: 204 })

export const deleteCheckpoint = Effect.fnUntraced(function* (request: ListRequest) {
  const { place } = yield* checkpointInPath(request)
  yield* removeCheckpoint(request.state.files, place)
  yield* request.state.samplers.forget(place)
  return empty
})

const decodeLife = decoderOf(TimeToLive)
export const setTimeToLive = Effect.fnUntraced(function* (request: TinkerRequest) {
  const { place, info } = yield* checkpointInPath(request)
  const { ttl_seconds = null } = yield* Effect.flatMap(jsonIn(request.body), decodeLife)
  const expires_at = ttl_seconds === null ? null : yield* timestamp(ttl_seconds)
  yield* writeInfo(request.state.files, place, { ...info, expires_at })
  yield* request.state.samplers.renew(place)
  return empty
})

/** How long the address of an archive is shown as valid. It is valid as long as the checkpoint exists. */
const archiveSeconds = 3600

/** Sends a client to the archive of a checkpoint. */
export const archiveAddress = Effect.fnUntraced(function* (request: ListRequest) {
  const { place } = yield* checkpointInPath(request)
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const { model, kind, name } = place
  const path = `/api/v1/training_runs/${model}/${checkpoints}/${kind}/${name}/download`
  const expires = new Date((yield* Clock.currentTimeMillis) + 1000 * archiveSeconds).toUTCString()
  const location = `http://${headers["host"] ?? "localhost"}${path}`
  return HttpServerResponse.empty({ status: 302, headers: { location, expires } })
})

/**
 * Sends the files of a checkpoint as a tar archive. The empty file `checkpoint_complete` is the last one. Files are read while
 * they are sent, so a client that reads slowly takes little memory.
 */
export const download = Effect.fnUntraced(function* (request: ListRequest) {
  const { place } = yield* checkpointInPath(request)
  const { files } = request.state
  const folder = folderOfCheckpoint(place)
  const parts = yield* Effect.forEach(yield* files.list(folder), (name) =>
    Effect.map(files.size(`${folder}/${name}`), (size) => [
      Stream.succeed(headerOf({ name, size })),
      files.stream(`${folder}/${name}`, { offset: 0, bytes: size }),
      Stream.succeed(paddingOf({ size })),
    ]),
  )
  const end = [headerOf({ name: "checkpoint_complete", size: 0 }), endOfArchive()].map((one) => Stream.succeed(one))
  const archive = Stream.flatten(Stream.fromIterable([...parts.flat(), ...end]))
  return HttpServerResponse.stream(archive, { contentType: "application/x-tar" })
})

const decodeWeightsInfo = decoderOf(WeightsInfo)
export const weightsInfo = Effect.fnUntraced(function* (request: TinkerRequest) {
  const { state, owner, body } = request
  const { tinker_path } = yield* Effect.flatMap(jsonIn(body), decodeWeightsInfo)
  const place = yield* placeOf(tinker_path, "tinker_path")
  yield* checkOwner(state, place.model, owner, "tinker_path")
  const info = yield* infoOf(state.files, place)
  if (info === undefined) return yield* notFound("tinker_path", `there is no checkpoint ${tinker_path}`)
  return json({
    base_model: state.baseName,
    is_lora: true,
    lora_rank: info.rank,
    // Adapters here have no part for the unembedding.
    train_unembed: false,
    train_mlp: info.trains_mlp,
    train_attn: info.trains_attention,
  })
})

export const samplerInfo = Effect.fnUntraced(function* ({ state, owner }: ListRequest) {
  const { sampler = "" } = yield* HttpRouter.params
  const { path } = yield* findSampler(state, owner, sampler)
  return json({ sampler_id: sampler, base_model: state.baseName, model_path: path })
})

const sessionBody = ({ records }: TinkerState, { id, samplers }: Session) => ({
  training_run_ids: [...records.values()].filter(({ session }) => session === id).map((record) => record.id),
  sampler_ids: [...samplers.keys()],
})

export const sessions = ({ state, owner }: ListRequest) =>
  Effect.succeed(
    json({ sessions: [...state.sessions.values()].filter((one) => one.owner === owner).map(({ id }) => id) }),
  )

export const session = Effect.fnUntraced(function* ({ state, owner }: ListRequest) {
  const { session: id = "" } = yield* HttpRouter.params
  const found = state.sessions.get(id)
  if (found === undefined || found.owner !== owner) return yield* badRequest(`session_id: there is no session "${id}"`)
  return json(sessionBody(state, found))
})
