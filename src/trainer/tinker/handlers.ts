/** Answers the requests of Tinker's protocol that train and sample. `lists.ts` answers those about saved models. */
import { Effect } from "effect"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { ApiError, badRequest } from "../../decoder/serve/ApiError.ts"
import { json } from "../../decoder/serve/responses.ts"
import { decoderOf, notFound, notImplemented } from "./answers.ts"
import { infoOf, placeOf } from "./models/checkpoints.ts"
import { awaited } from "./waiting/Futures.ts"
import { usingModel } from "./models/loadedModels.ts"
import * as ModelFiles from "./models/modelFiles.ts"
import { acceptRequest, createModel, unloadModel } from "./models/models.ts"
import { checkOwner, decodedLoss, samplerIdOf } from "./models/performing.ts"
import type { RequestBody } from "./wire/requestBody.ts"
import { jsonIn } from "./wire/requestBody.ts"
import { performSample } from "./sampling/sampling.ts"
import { createSession, saveSession } from "./sessions.ts"
import { clientOf, findRecord, findSession, missingSeq, requestIdOf, type TinkerState } from "./TinkerState.ts"
import type { Outcome } from "./wire/outcomes.ts"
import { encodeLossOutput, encodeSampleOutput } from "./wire/protobuf.ts"
import * as Bodies from "./wire/requests.ts"

/** A request whose key was checked. */
export interface TinkerRequest {
  readonly state: TinkerState
  /** The name of the API key. */
  readonly owner: string
  readonly body: RequestBody
}

const decode = {
  session: decoderOf(Bodies.SessionBody),
  createModel: decoderOf(Bodies.CreateModel),
  model: decoderOf(Bodies.ModelBody),
  sampler: decoderOf(Bodies.CreateSamplingSession),
  sample: decoderOf(Bodies.Sample),
  future: decoderOf(Bodies.RetrieveFuture),
}

const bodyBy = <A>({ body }: TinkerRequest, decode: (value: unknown) => Effect.Effect<A, ApiError>) =>
  Effect.flatMap(jsonIn(body), decode)

/** The settings of the client: plain HTTP, keys without tokens, and models that are created before weights are loaded. */
export const clientConfig = Effect.succeed(
  json({
    pjwt_auth_enabled: false,
    use_pyqwest_transport: false,
    parallel_fwdbwd_chunks: true,
    proto_compress_fwdbwd: true,
    create_model_via_load_weights: false,
  }),
)

export const capabilities = ({ baseName, maxLength }: TinkerState) =>
  json({ supported_models: [{ model_name: baseName, max_context_length: maxLength }] })

export const openSession = Effect.fnUntraced(function* ({ state, owner }: TinkerRequest) {
  const { id } = yield* createSession(state, owner)
  return json({
    type: "create_session",
    session_id: id,
    info_message: null,
    warning_message: null,
    error_message: null,
  })
})

export const heartbeat = Effect.fnUntraced(function* (request: TinkerRequest) {
  const { session_id } = yield* bodyBy(request, decode.session)
  yield* findSession(request.state, session_id, request.owner)
  return json({ type: "session_heartbeat" })
})

/** The numbers of a model's own requests begin at 1; 0 stands for its creation. */
const creation = 0

export const newModel = Effect.fnUntraced(function* (request: TinkerRequest) {
  const body = yield* bodyBy(request, decode.createModel)
  const { id } = yield* createModel(request.state, body, request.owner)
  return json({ request_id: requestIdOf(id, creation), model_id: id })
})

export const modelInfo = Effect.fnUntraced(function* (request: TinkerRequest) {
  const { model_id } = yield* bodyBy(request, decode.model)
  const { state, owner } = request
  const { rank } = yield* findRecord(state, model_id, owner)
  const { baseName, base } = state
  return json({
    type: "get_info",
    model_id,
    model_name: baseName,
    is_lora: true,
    lora_rank: rank,
    model_data: { arch: base.decoder.architecture, model_name: baseName, tokenizer_id: base.name },
  })
})

export const unload = Effect.fnUntraced(function* (request: TinkerRequest) {
  const { model_id } = yield* bodyBy(request, decode.model)
  const { state, owner } = request
  // A client that lost the answer sends the request again.
  const { is_unloaded } = yield* checkOwner(state, model_id, owner, "model_id")
  if (!is_unloaded) yield* usingModel(state, { id: model_id, owner }, (model) => unloadModel(state, model))
  const id = `${model_id}/unload`
  state.futures.ensure(id, owner)
  state.futures.settle(id, { _tag: "Other", value: { type: "unload_model", model_id } })
  return json({ request_id: id, model_id })
})

const accepted = Effect.fnUntraced(function* (
  { state, owner, body }: TinkerRequest,
  id: string,
  { kind, seqId }: { readonly kind: ModelFiles.RequestKind; readonly seqId: number | null },
) {
  const request = { kind, encoding: body.encoding, body: body.bytes, seqId }
  const seq = yield* usingModel(state, { id, owner }, (model) => acceptRequest(state, model, request))
  return json({ request_id: requestIdOf(id, seq), model_id: id })
})

/** Accepts a request that JSON describes. */
export const trainingRequest = (kind: ModelFiles.RequestKind) =>
  Effect.fnUntraced(function* (request: TinkerRequest) {
    const value = yield* jsonIn(request.body)
    if (typeof value === "object" && value !== null && "session_id" in value && value.session_id !== null)
      return yield* notImplemented("session_id", "create the model first, then load its weights")
    const { model_id, seq_id = null } = yield* decode.model(value)
    return yield* accepted(request, model_id, { kind, seqId: seq_id })
  })

/** Accepts a request to compute a loss: as protobuf, or as JSON, whose numbers are checked only when its turn comes. */
export const lossRequest = (kind: "forward" | "forward_backward") =>
  Effect.fnUntraced(function* (request: TinkerRequest) {
    const { body } = request
    if (body.encoding === "json") return yield* trainingRequest(kind)(request)
    const { modelId, seqId, forwardOnly } = yield* decodedLoss({ kind, encoding: body.encoding, body: body.bytes })
    return yield* accepted(request, modelId, { kind: forwardOnly ? "forward" : kind, seqId })
  })

/** Fails if the weights of a path cannot be sampled from. */
const checkPath = Effect.fnUntraced(function* (state: TinkerState, owner: string, path: string) {
  const place = yield* placeOf(path, "model_path")
  yield* checkOwner(state, place.model, owner, "model_path")
  if (yield* state.samplers.isLoaded(place)) return
  if ((yield* infoOf(state.files, place)) === undefined)
    return yield* notFound("model_path", `there is no checkpoint ${path}`)
})

/** Returns the address of the weights that a request names; null for the base model. */
const weightsOf = Effect.fnUntraced(function* (
  state: TinkerState,
  owner: string,
  { model_path = null, base_model = null }: Pick<typeof Bodies.Sample.Type, "model_path" | "base_model">,
) {
  if (model_path !== null) {
    yield* checkPath(state, owner, model_path)
    return model_path
  }
  if (base_model === state.baseName) return null
  const found = base_model === null ? "neither base_model nor model_path" : `"${base_model}"`
  return yield* notFound("base_model", `expected "${state.baseName}" or a model_path, found ${found}`)
})

export const openSampler = Effect.fnUntraced(function* (request: TinkerRequest) {
  const { state, owner } = request
  const body = yield* bodyBy(request, decode.sampler)
  const session = yield* findSession(state, body.session_id, owner)
  const path = yield* weightsOf(state, owner, body)
  const id = samplerIdOf(session.id, body.sampling_session_seq_id)
  if (session.samplers.has(id) && session.samplers.get(id) !== path)
    return yield* badRequest(`sampling_session_seq_id: ${id} samples from other weights`, "sampling_session_seq_id")
  session.samplers.set(id, path)
  yield* saveSession(state.files, session)
  return json({ type: "create_sampling_session", sampling_session_id: id })
})

/** Finds a sampling session of an owner. */
export const findSampler = Effect.fnUntraced(function* (state: TinkerState, owner: string, id: string) {
  const session = state.sessions.get(/^(session-\d+)-sampler-\d+$/.exec(id)?.[1] ?? "")
  const path = session?.owner === owner ? session.samplers.get(id) : undefined
  if (session === undefined || path === undefined)
    return yield* notFound("sampling_session_id", `there is no sampling session "${id}"; create a new one`)
  return { session, path }
})

export const sample = Effect.fnUntraced(function* (request: TinkerRequest) {
  const { state, owner } = request
  const body = yield* bodyBy(request, decode.sample)
  const samples = body.num_samples ?? 1
  const { futures, limits } = state
  if (samples > limits.samplesOfKey)
    return yield* badRequest(`num_samples: expected at most ${limits.samplesOfKey}, found ${samples}`, "num_samples")
  const sampler = body.sampling_session_id ?? null
  const found = sampler === null ? undefined : yield* findSampler(state, owner, sampler)
  const path = found === undefined ? yield* weightsOf(state, owner, body) : found.path
  const numbered = sampler !== null && typeof body.seq_id === "number" ? `${sampler}/${body.seq_id}` : undefined
  const known = numbered === undefined ? undefined : futures.find(numbered)
  // A client that lost the answer sends the same request again.
  if (known !== undefined && numbered !== undefined) return json({ request_id: numbered })
  if (state.samplesInProgress.of(owner) + samples > limits.samplesOfKey)
    return yield* new ApiError({
      status: 429,
      code: "rate_limit_exceeded",
      param: null,
      message: `this API key waits for ${state.samplesInProgress.of(owner)} samples; try again later`,
    })
  const seedPath = numbered ?? `sample-${++state.unnumberedSamples}`
  // Outcomes of samples do not survive the process, so another process must not use the same id.
  const id = numbered ?? `${state.startMillis}-${seedPath}`
  futures.ensure(id, owner)
  const client = clientOf(state, owner, found?.session.id ?? owner)
  const work = performSample(state, { body, path, client, seedPath })
  yield* Effect.forkIn(
    state.samplesInProgress.counting(
      owner,
      samples,
      Effect.map(work, (outcome) => futures.settle(id, outcome)),
    ),
    state.scope,
  )
  return json({ request_id: id })
})

/** How long a client waits for an outcome before it must ask again, in seconds. */
const patience = 20

const outcomeResponse = (outcome: Outcome, wantsProtobuf: boolean): HttpServerResponse.HttpServerResponse => {
  if (outcome._tag === "Failed") return json({ error: outcome.error, category: outcome.category })
  if (!wantsProtobuf || outcome._tag === "Other") return json(outcome.value)
  const bytes = outcome._tag === "Loss" ? encodeLossOutput(outcome.value) : encodeSampleOutput(outcome.value)
  return HttpServerResponse.uint8Array(bytes, { contentType: "application/x-protobuf" })
}

/** Returns the outcome of a request that a previous process has performed, or that is no longer in memory. */
const savedOutcome = Effect.fnUntraced(function* ({ state, owner }: TinkerRequest, id: string) {
  const [, model, number] = /^([\w-]+)\/(\d+)$/.exec(id) ?? []
  const record = state.records.get(model ?? "")
  if (model === undefined || record === undefined || record.owner !== owner) return undefined
  const seq = Number(number)
  if (seq !== creation) return (yield* ModelFiles.readResult(state.files, model, seq))?.outcome
  const created: Outcome = { _tag: "Other", value: { type: "create_model", model_id: model } }
  return created
})

const gone = new ApiError({
  status: 410,
  code: "expired",
  param: "request_id",
  message: "request_id: there is no such request, or its outcome expired; send the request again",
})

/** Tells a client why a request has no outcome yet. */
const reasonToWait = ({ models, records, turns }: TinkerState, id: string): string => {
  const [, name = "", number] = /^([\w-]+)\/(\d+)$/.exec(id) ?? []
  const model = models.get(name)
  if (model === undefined && records.has(name))
    return "the model waits for a request with a lower seq_id that has not arrived, or for room in memory"
  const missing = model === undefined ? undefined : missingSeq(model)
  return missing !== undefined && missing < Number(number)
    ? `the request of this model with seq_id ${missing} has not arrived; the later ones wait for it`
    : `${turns.waiting()} pieces of work wait for their turn`
}

export const retrieve = Effect.fnUntraced(function* (request: TinkerRequest) {
  const { state, owner } = request
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const { request_id } = yield* bodyBy(request, decode.future)
  const future = state.futures.find(request_id)
  if (future !== undefined && future.owner !== owner) return yield* gone
  const outcome = future === undefined ? yield* savedOutcome(request, request_id) : yield* awaited(future, patience)
  if (outcome === undefined && future === undefined) return yield* gone
  if (outcome === undefined) {
    const reason = reasonToWait(state, request_id)
    return json({ type: "try_again", request_id, queue_state: "active", queue_state_reason: reason }, 408)
  }
  return outcomeResponse(outcome, /application\/x-protobuf/i.test(headers["accept"] ?? ""))
})
