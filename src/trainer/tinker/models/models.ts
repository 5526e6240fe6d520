/** Creates, opens and unloads the models of a Tinker server, and accepts their requests. */
import { Effect, Latch, Semaphore } from "effect"
import { joined } from "../../../base/text/bytes.ts"
import { sha256 } from "../../../base/text/sha256.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import { stream } from "../../../base/rng/Rng.ts"
import * as Decoder from "../../../decoder/networks/Decoder.ts"
import { ApiError, badRequest } from "../../../decoder/serve/ApiError.ts"
import { failedBy, notFound } from "../answers.ts"
import { isOfAttention, makeAdapter, restoreState } from "./AdapterInTraining.ts"
import { type CreateModel, metadataKey } from "../wire/requests.ts"
import * as ModelFiles from "./modelFiles.ts"
import { performAll } from "./performing.ts"
import { findSession, requestIdOf, timestamp, type TinkerModel, type TinkerState } from "../TinkerState.ts"

/** Settles the requests up to the last update that are still on disk, because clients may wait for them already. */
const settleOld = Effect.fnUntraced(function* ({ files, futures }: TinkerState, id: string, lastSeq: number) {
  for (const seq of yield* ModelFiles.requestsOf(files, id)) {
    if (seq > lastSeq) continue
    const result = yield* ModelFiles.readResult(files, id, seq)
    const lost = failedBy("server", "the request was performed, but a previous process could not write its outcome")
    futures.settle(requestIdOf(id, seq), result?.outcome ?? lost)
  }
})

/** Makes the adapter of a model, with its last saved numbers, and starts to perform its requests. */
export const openModel = Effect.fnUntraced(function* (state: TinkerState, record: ModelFiles.ModelRecord) {
  const { base, shape, files, models, scope } = state
  const { id, rank, trains_attention, trains_mlp } = record
  const choice = { rank, trainsAttention: trains_attention, trainsMlp: trains_mlp }
  const named = record.user_metadata?.[metadataKey]
  const path = typeof named === "string" ? ["adapter", named] : ["adapter"]
  const adapter = makeAdapter(base.decoder, shape, choice, stream(record.seed, ...path))
  const saved = yield* ModelFiles.readState(files, id)
  if (saved !== undefined) yield* restoreState(adapter, saved.bytes, { steps: saved.progress.steps, moments: true })
  const lastSeq = saved?.progress.last_seq ?? 0
  if (saved !== undefined) {
    // The process may have been killed between saving the state and writing the outcome.
    yield* ModelFiles.writeResult(files, id, lastSeq, saved.progress.result)
    yield* settleOld(state, id, lastSeq)
    yield* ModelFiles.tidyModel(files, id, lastSeq)
  }
  const pending = new Map<number, string>()
  const onDisk = new Map<number, number>()
  for (const seq of yield* ModelFiles.requestsOf(files, id))
    if (seq > lastSeq) {
      const { body, digest } = yield* ModelFiles.readRequest(files, id, seq)
      pending.set(seq, digest)
      onDisk.set(seq, body.length)
    }
  const model: TinkerModel = {
    record,
    adapter,
    pending,
    onDisk,
    lastSeq,
    repeatedUpTo: Math.max(lastSeq, ...pending.keys()),
    performedUpTo: Math.max(lastSeq, ...(yield* ModelFiles.resultsOf(files, id))),
    isClosed: false,
    users: 0,
    lastUse: 0,
    work: Latch.makeUnsafe(true),
    accepting: yield* Semaphore.make(1),
  }
  models.set(id, model)
  for (const seq of pending.keys()) state.futures.ensure(requestIdOf(id, seq), record.owner)
  yield* Effect.forkIn(performAll(state, model), scope)
  return model
})

const tooMany = (param: string | null, message: string): ApiError =>
  new ApiError({ status: 429, code: "quota_exceeded", param, message })

/** Fails if an API key, or all together, have too many models. */
const checkCount = Effect.fnUntraced(function* ({ records, limits }: TinkerState, owner: string) {
  const own = [...records.values()].filter((record) => record.owner === owner).length
  if (own < limits.modelsOfKey && records.size < limits.models) return
  const most = Math.min(limits.modelsOfKey, limits.models)
  // The status is not 429, after which clients send the request again: only an unloaded model makes room.
  return yield* new ApiError({
    status: 403,
    code: "quota_exceeded",
    param: null,
    message:
      `this server has ${records.size} models, ${own} of this API key, and takes at most ${most} of a key; unload one, or ` +
      "stop the server and remove the folders of old ones in models/ of --tinker-dir",
  })
})

/**
 * Creates a model: a new adapter of its own rank. The same request of the same session returns the same model. One model is
 * created at a time, so that requests at the same time do not pass the limits, or create a model twice.
 */
export const createModel = (state: TinkerState, body: typeof CreateModel.Type, owner: string) =>
  createNext(state, body, owner).pipe(state.creating.withPermits(1))

const createNext = Effect.fnUntraced(function* (state: TinkerState, body: typeof CreateModel.Type, owner: string) {
  const { base, baseName, shape, files, seed } = state
  const session = yield* findSession(state, body.session_id, owner)
  const id = `${session.id}-model-${body.model_seq_id}`
  if (body.base_model !== baseName)
    return yield* notFound("base_model", `this server has "${baseName}", not "${body.base_model}"`)
  const lora = body.lora_config ?? { rank: Math.min(32, shape.rank) }
  if (lora.rank > shape.rank)
    return yield* badRequest(
      `lora_config.rank: expected at most ${shape.rank} (--max-lora-rank of the server), found ${lora.rank}`,
      "lora_config.rank",
    )
  const trainsAttention = lora.train_attn ?? true
  const trainsMlp = lora.train_mlp ?? true
  const own = Decoder.projectionsOf(base.decoder)
  const isTrained = own.some((projection) => (isOfAttention(projection) ? trainsAttention : trainsMlp))
  if (!isTrained)
    return yield* badRequest(
      `lora_config: expected train_attn or train_mlp to be true for projections that the model has: ${own.join(", ")}`,
      "lora_config",
    )
  const record: ModelFiles.ModelRecord = {
    id,
    session: session.id,
    owner,
    rank: lora.rank,
    seed: lora.seed ?? stream(seed, "adapter", id).uint32At(0),
    trains_attention: trainsAttention,
    trains_mlp: trainsMlp,
    user_metadata: body.user_metadata ?? null,
    created_at: yield* timestamp(),
    is_unloaded: false,
  }
  const known = state.records.get(id) ?? (yield* ModelFiles.readRecord(files, id))
  if (known !== undefined) {
    const isSame =
      known.rank === record.rank &&
      known.seed === record.seed &&
      known.trains_attention === record.trains_attention &&
      known.trains_mlp === record.trains_mlp &&
      !known.is_unloaded
    if (isSame) return known
    return yield* badRequest(`model_seq_id: the session already has another model ${body.model_seq_id}`, "model_seq_id")
  }
  yield* checkCount(state, owner)
  yield* ModelFiles.writeRecord(files, record)
  state.records.set(id, record)
  return record
})

/**
 * Unloads a model. Its checkpoints stay; its requests that were not performed fail. No request is accepted meanwhile, because
 * nothing would ever perform it.
 */
export const unloadModel = (state: TinkerState, model: TinkerModel) =>
  unload(state, model).pipe(model.accepting.withPermits(1))

const unload = Effect.fnUntraced(function* (state: TinkerState, model: TinkerModel) {
  const { id } = model.record
  yield* ModelFiles.writeRecord(state.files, { ...model.record, is_unloaded: true })
  model.isClosed = true
  state.models.delete(id)
  state.records.delete(id)
  model.work.openUnsafe()
  for (const seq of model.pending.keys())
    state.futures.settle(requestIdOf(id, seq), failedBy("user", `the model ${id} was unloaded`))
  yield* ModelFiles.removeState(state.files, id)
})

/** A request for a model, as it came. */
interface NewRequest extends Omit<ModelFiles.AcceptedRequest, "digest" | "refusal"> {
  /** The number of the request; null takes the next one. */
  readonly seqId: number | null
}

/** How far ahead of the last request the number of a request may be. */
const farthestAhead = 4096

const usedTwice = (seq: number) =>
  new ApiError({
    status: 422,
    code: "seq_id_used",
    param: "seq_id",
    message: `seq_id: ${seq} was already used by another request of this model`,
  })

/** Returns the digest of the request with a number; undefined if there was none. */
const digestOf = Effect.fnUntraced(function* (
  { files }: TinkerState,
  { pending, record, lastSeq, performedUpTo }: TinkerModel,
  seq: number,
) {
  const waiting = pending.get(seq)
  if (waiting !== undefined || seq > Math.max(lastSeq, performedUpTo)) return waiting
  // The outcomes of older requests are no longer kept: all that is known is that these requests were performed.
  return (yield* ModelFiles.readResult(files, record.id, seq))?.digest ?? ""
})

/**
 * Returns a message if a request to compute a loss would take more room on disk than a model has. An update makes room. Such a
 * request is accepted without its body and fails when its turn comes, because clients give the next number to their next
 * request, which would wait for this one.
 */
const diskProblem = (
  { onDisk }: TinkerModel,
  { kind, body }: Pick<NewRequest, "kind" | "body">,
  { requestBytes, requestsOnDisk }: TinkerState["limits"],
): string | undefined => {
  if (kind !== "forward" && kind !== "forward_backward") return undefined
  const bytes = [...onDisk.values()].reduce((sum, size) => sum + size, body.length)
  if (onDisk.size < requestsOnDisk && bytes <= requestBytes) return undefined
  return (
    `${onDisk.size} requests of this model are not part of an update yet; expected at most ${requestsOnDisk} requests ` +
    `and ${requestBytes} bytes, found ${bytes} bytes; send optim_step`
  )
}

/** Accepts a request of a model: it is on disk before this returns the number of the request. */
export const acceptRequest = (state: TinkerState, model: TinkerModel, { seqId, ...request }: NewRequest) =>
  Effect.gen(function* () {
    const { pending, record } = model
    const { limits, files } = state
    const digest = yield* sha256(joined([utf8.encode(`${request.kind} `), request.body]))
    const seq = seqId ?? Math.max(model.lastSeq, model.performedUpTo, ...pending.keys()) + 1
    const known = yield* digestOf(state, model, seq)
    // Other requests were performed while this one waited, so read it only now.
    const { lastSeq } = model
    if (known === digest) return seq
    if (known !== undefined) return yield* usedTwice(seq)
    if (model.isClosed) return yield* notFound("model_id", `the model "${record.id}" was unloaded`)
    if (seq > lastSeq + farthestAhead)
      return yield* badRequest(`seq_id: expected at most ${lastSeq + farthestAhead}, found ${seq}`, "seq_id")
    // The next request is always accepted: the others wait for it.
    if (pending.size >= limits.pendingOfModel && seq > lastSeq + 1)
      return yield* tooMany("seq_id", `${pending.size} requests of this model wait for their turn; try again later`)
    const refusal = diskProblem(model, request, limits)
    const kept = refusal === undefined ? request : { ...request, body: new Uint8Array(0), refusal }
    yield* ModelFiles.writeRequest(files, record.id, seq, { ...kept, digest })
    model.onDisk.set(seq, kept.body.length)
    pending.set(seq, digest)
    state.futures.ensure(requestIdOf(record.id, seq), record.owner)
    model.work.openUnsafe()
    return seq
  }).pipe(model.accepting.withPermits(1))
