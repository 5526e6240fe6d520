/** Performs the requests of models, each model's in the order of their numbers and each request exactly once. */
import { Clock, Effect } from "effect"
import { isMachineFault } from "../../../base/files/files.ts"
import { messageOf, parsedJson } from "../../../base/text/text.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import { ApiError, badRequest } from "../../../decoder/serve/ApiError.ts"
import { decoderOf, failedBy, outcomeOfRefusal } from "../answers.ts"
import { clearGradient, encodeState, restoreState, updateAdapter } from "./AdapterInTraining.ts"
import {
  addressOf,
  type Checkpoint,
  checkName,
  checkpointsOf,
  infoOf,
  isName,
  isExpired,
  placeOf,
  readTraining,
  removeCheckpoint,
  saveCheckpoint,
} from "./checkpoints.ts"
import { DatumProblem } from "../training/Datum.ts"
import { lossRequestOf } from "../wire/lossBodies.ts"
import { performLoss } from "../training/losses.ts"
import * as ModelFiles from "./modelFiles.ts"
import { saveSession } from "../sessions.ts"
import {
  findSession,
  requestIdOf,
  type Session,
  timestamp,
  type TinkerModel,
  type TinkerState,
} from "../TinkerState.ts"
import { attempt } from "../../../base/config/attempt.ts"
import type { RunStoreError } from "../../../run/store/RunStoreError.ts"
import type { Outcome } from "../wire/outcomes.ts"
import { decodeLossRequest } from "../wire/protobuf.ts"
import { LoadWeights, OptimStep, SaveWeights } from "../wire/requests.ts"

/** A request of a model whose turn has come. */
interface CurrentRequest extends ModelFiles.AcceptedRequest {
  readonly seq: number
}

const jsonOf = ({ body }: Pick<ModelFiles.AcceptedRequest, "body">): unknown => parsedJson(utf8.decode(body))

/** Decodes the body of a request to compute a loss. */
export const decodedLoss = (request: Pick<ModelFiles.AcceptedRequest, "encoding" | "body" | "kind">) =>
  request.encoding === "json"
    ? lossRequestOf(jsonOf(request), { forwardOnly: request.kind === "forward" })
    : Effect.mapBoth(
        attempt(() => decodeLossRequest(request.body), RangeError, DatumProblem),
        {
          onFailure: (error) => badRequest(error.message, error instanceof DatumProblem ? error.key : null),
          // A request to `forward` adds no gradient, whatever its body says.
          onSuccess: (decoded) => ({ ...decoded, forwardOnly: decoded.forwardOnly || request.kind === "forward" }),
        },
      )

const decodeOptimStep = decoderOf(OptimStep)
const decodeSave = decoderOf(SaveWeights)
const decodeLoad = decoderOf(LoadWeights)

/** Saves the state of a model with the outcome of the request that changed it. */
const commit = (
  { files }: TinkerState,
  { record, adapter }: TinkerModel,
  { seq, digest }: CurrentRequest,
  outcome: Outcome,
) =>
  ModelFiles.writeState(files, record.id, {
    progress: { last_seq: seq, steps: adapter.steps, result: { digest, outcome } },
    bytes: encodeState(adapter),
  })

/** Updates a model. The update is undone if it cannot be saved, so that no acknowledged update is ever lost. */
const optimStep = Effect.fnUntraced(function* (state: TinkerState, model: TinkerModel, request: CurrentRequest) {
  const { adam_params: adam } = yield* decodeOptimStep(jsonOf(request))
  const learningRate = adam.learning_rate ?? 1e-4
  const settings = {
    learningRate,
    beta1: adam.beta1 ?? 0.9,
    beta2: adam.beta2 ?? 0.95,
    epsilon: adam.eps ?? 1e-12,
    weightDecay: adam.weight_decay ?? 0,
    maxNorm: adam.grad_clip_norm ?? 0,
  }
  const { adapter, record } = model
  const updating = updateAdapter({ adapter, place: record.id, steps: state.adamSteps, settings })
  const updated = yield* Effect.catchTag(updating, "TrainerError", ({ message }) => badRequest(message))
  const { steps } = adapter
  const metrics = { "grad_norm:mean": updated.norm, "learning_rate:mean": learningRate, "step:max": steps }
  const outcome: Outcome = { _tag: "Other", value: { type: "optim_step", metrics } }
  yield* Effect.tapError(commit(state, model, request, outcome), () => Effect.sync(updated.undo))
  clearGradient(adapter)
  return outcome
})

/** The number of checkpoints without a name that a model keeps for sampling. */
const keptUnnamed = 16

/** Removes those of a model's checkpoints that expired, and the oldest ones without a name. The next save tries again. */
const tidyCheckpoints = Effect.fnUntraced(
  function* ({ files, samplers }: TinkerState, all: ReadonlyArray<Checkpoint>) {
    const now = yield* Clock.currentTimeMillis
    const unnamed = all.filter(({ info }) => !info.is_named).sort((a, b) => a.info.seq - b.info.seq)
    const old = new Set(unnamed.slice(0, Math.max(0, unnamed.length - keptUnnamed)))
    for (const one of all)
      if (old.has(one) || isExpired(one.info, now)) {
        yield* removeCheckpoint(files, one.place)
        yield* samplers.forget(one.place)
      }
  },
  Effect.catch(({ message }) => Effect.logWarning(message)),
)

/** Returns the other checkpoints of a model. Fails if this one may not be saved, because of its name or its size. */
const checkSave = Effect.fnUntraced(function* (
  { files, limits }: TinkerState,
  place: Parameters<typeof infoOf>[1],
  { seq, overwrite }: { readonly seq: number; readonly overwrite: boolean },
) {
  const before = yield* infoOf(files, place)
  // The same request may have saved it, before the server was killed.
  if (before !== undefined && before.seq !== seq && !overwrite)
    return yield* badRequest(
      `path: the checkpoint ${addressOf(place)} exists; use another name or set overwrite`,
      "path",
    )
  const all = yield* checkpointsOf(files, place.model)
  const bytes = all.reduce((sum, { info }) => sum + info.size_bytes, 0)
  if (bytes > limits.checkpointBytes)
    return yield* badRequest(
      `path: the checkpoints of this model have ${bytes} bytes, more than its ${limits.checkpointBytes}; delete some`,
      "path",
    )
  return all.filter((one) => addressOf(one.place) !== addressOf(place))
})

/** Fails because the sampling session of a checkpoint cannot be written. The checkpoint is saved all the same. */
const sessionNotSaved = Effect.fnUntraced(function* (
  { samplers }: Session,
  { id, path }: { readonly id: string; readonly path: string },
  error: RunStoreError,
) {
  samplers.delete(id)
  yield* Effect.logError(`${id}: ${error.message}`)
  const reason = isMachineFault(error) ? messageOf(error) : "its log says why"
  return yield* new ApiError({
    status: 500,
    code: null,
    param: null,
    message: `the server saved ${path}, but could not save its sampling session: ${reason}; create one with this path`,
  })
})

const saveWeights = Effect.fnUntraced(function* (state: TinkerState, model: TinkerModel, request: CurrentRequest) {
  const { seq, kind } = request
  const { record, adapter } = model
  const body = yield* decodeSave(jsonOf(request))
  const isSampler = kind === "save_weights_for_sampler"
  const isNamed = (body.path ?? null) !== null
  const fallback = isSampler ? `unnamed-${seq}` : `step-${adapter.steps}-request-${seq}`
  const name = yield* checkName(body.path ?? fallback)
  const place = { model: record.id, kind: isSampler ? ("sampler_weights" as const) : ("weights" as const), name }
  const others = yield* checkSave(state, place, { seq, overwrite: isSampler || body.overwrite === true })
  const life = body.ttl_seconds ?? null
  const info = yield* saveCheckpoint(state.files, {
    place,
    adapter,
    decoder: state.base.decoder,
    base: state.base.name,
    info: {
      seq,
      is_named: isNamed || !isSampler,
      saved_at: yield* timestamp(),
      expires_at: life === null ? null : yield* timestamp(life),
    },
  })
  yield* state.samplers.renew(place)
  yield* tidyCheckpoints(state, [...others, { place, info }])
  const path = addressOf(place)
  const outcome = (value: Readonly<Record<string, unknown>>): Outcome => ({
    _tag: "Other",
    value: { type: kind, ...value },
  })
  const sampler = body.sampling_session_seq_id ?? null
  if (!isSampler || sampler === null) return outcome({ path })
  const session = yield* findSession(state, record.session, record.owner)
  const id = samplerIdOf(session.id, sampler)
  session.samplers.set(id, path)
  yield* Effect.catch(saveSession(state.files, session), (error) => sessionNotSaved(session, { id, path }, error))
  return outcome({ path: isNamed ? path : null, sampling_session_id: id })
})

export const samplerIdOf = (session: string, seq: number): string => `${session}-sampler-${seq}`

const loadWeights = Effect.fnUntraced(function* (state: TinkerState, model: TinkerModel, request: CurrentRequest) {
  const { adapter, record } = model
  const { path, optimizer } = yield* decodeLoad(jsonOf(request))
  const place = yield* placeOf(path, "path")
  yield* checkOwner(state, place.model, record.owner, "path")
  if (place.kind !== "weights") {
    const problem = "expected tinker://MODEL/weights/NAME; sampler_weights have no optimizer to continue with"
    return yield* badRequest(`path: ${problem}`, "path")
  }
  const { info, bytes } = yield* readTraining(state.files, place, "path")
  if (info.rank !== adapter.choice.rank)
    return yield* badRequest(
      `path: expected an adapter of rank ${adapter.choice.rank}, found rank ${info.rank}`,
      "path",
    )
  const { trainsAttention, trainsMlp } = adapter.choice
  if (info.trains_attention !== trainsAttention || info.trains_mlp !== trainsMlp) {
    const found = `train_attn ${info.trains_attention} and train_mlp ${info.trains_mlp}`
    return yield* badRequest(`path: expected an adapter with the settings of this model, found ${found}`, "path")
  }
  const undo = yield* Effect.mapError(
    restoreState(adapter, bytes, { steps: info.steps, moments: optimizer === true }),
    ({ message }) => badRequest(`path: ${message}`, "path"),
  )
  const outcome: Outcome = { _tag: "Other", value: { type: "load_weights", path, model_id: record.id } }
  yield* Effect.tapError(commit(state, model, request, outcome), () => Effect.sync(undo))
  clearGradient(adapter)
  return outcome
})

/** Fails if a model belongs to another API key, as if it did not exist. */
export const checkOwner = Effect.fnUntraced(function* (
  { files, records }: TinkerState,
  id: string,
  owner: string,
  param: string,
) {
  const record = records.get(id) ?? (isName(id) ? yield* ModelFiles.readRecord(files, id) : undefined)
  if (record?.owner === owner) return record
  return yield* new ApiError({ status: 404, code: "not_found", param, message: `${param}: there is no model "${id}"` })
})

const perform = Effect.fnUntraced(function* (state: TinkerState, model: TinkerModel, request: CurrentRequest) {
  if (request.refusal !== undefined) return yield* badRequest(request.refusal)
  switch (request.kind) {
    case "forward":
    case "forward_backward":
      return yield* performLoss(state, model, yield* decodedLoss(request))
    case "optim_step":
      return yield* optimStep(state, model, request)
    case "save_weights":
    case "save_weights_for_sampler":
      return yield* saveWeights(state, model, request)
    case "load_weights":
      return yield* loadWeights(state, model, request)
  }
})

/** Converts any failure to an outcome. The client learns the details of its own mistakes; the log has those of the server. */
const outcomeOf = (state: TinkerState, model: TinkerModel, request: CurrentRequest) =>
  perform(state, model, request).pipe(
    Effect.catch((error) => {
      if (error instanceof ApiError) return Effect.succeed(outcomeOfRefusal(error))
      const reason = isMachineFault(error) ? messageOf(error) : "its log says why"
      const shown = failedBy("server", `the server could not perform ${request.kind}: ${reason}; nothing was changed`)
      return Effect.as(Effect.logError(`${requestIdOf(model.record.id, request.seq)}: ${error.message}`), shown)
    }),
    Effect.catchDefect((defect) =>
      Effect.as(
        Effect.logError("a request failed", defect),
        failedBy("server", `the server failed to perform ${request.kind}; its log says why`),
      ),
    ),
  )

/**
 * Tells whether a previous process has performed a request for good. A gradient that was not yet part of an update is computed
 * again, because sums of gradients are not saved.
 */
const isFinal = (kind: ModelFiles.RequestKind, { outcome }: ModelFiles.SavedResult): boolean =>
  kind !== "forward_backward" || outcome._tag === "Failed"

/** Performs a model's next request, and saves its outcome. */
const performNext = Effect.fnUntraced(function* (state: TinkerState, model: TinkerModel, seq: number) {
  const { files } = state
  const { id } = model.record
  const request = { ...(yield* ModelFiles.readRequest(files, id, seq)), seq }
  const saved = seq <= model.repeatedUpTo ? yield* ModelFiles.readResult(files, id, seq) : undefined
  const isDone = saved !== undefined && isFinal(request.kind, saved)
  const outcome = isDone ? saved.outcome : yield* outcomeOf(state, model, request)
  const changesState = request.kind === "optim_step" || request.kind === "load_weights"
  const isFailure = outcome._tag === "Failed"
  const result = { digest: request.digest, outcome }
  const isWritten =
    isDone ||
    (yield* Effect.matchEffect(ModelFiles.writeResult(files, id, seq, result), {
      onFailure: ({ message }) => Effect.as(Effect.logWarning(message), false),
      onSuccess: () => Effect.succeed(true),
    }))
  const isUpdate = changesState && !isFailure
  // A failure that cannot be written must not become a success after a restart. Anything else would have the same outcome.
  const needsNoRepetition = isWritten ? isFinal(request.kind, result) : isFailure
  const tidy = Effect.gen(function* () {
    if (isWritten) yield* ModelFiles.removeOldResult(files, id, seq)
    if (isUpdate) yield* ModelFiles.tidyModel(files, id, seq)
    else if (needsNoRepetition) yield* ModelFiles.removeRequest(files, id, seq)
    // The removed request has made room. Without either file, the model would wait for this request after a restart.
    if (!isWritten && isFailure) yield* ModelFiles.writeResult(files, id, seq, result)
  })
  yield* Effect.catch(tidy, ({ message }) => Effect.logWarning(message))
  if (isUpdate) for (const one of model.onDisk.keys()) if (one <= seq) model.onDisk.delete(one)
  if (needsNoRepetition) model.onDisk.delete(seq)
  return outcome
})

/** Performs the requests of a model until it is unloaded or dropped. */
export const performAll = Effect.fnUntraced(function* (state: TinkerState, model: TinkerModel) {
  while (!model.isClosed) {
    const seq = model.lastSeq + 1
    const isPending = model.pending.has(seq)
    if (!isPending && seq > model.performedUpTo) {
      model.work.closeUnsafe()
      state.becameIdle.openUnsafe()
      yield* model.work.await
      continue
    }
    const outcome = isPending
      ? yield* Effect.catch(performNext(state, model, seq), (error) =>
          Effect.as(Effect.logError(error.message), failedBy("server", `the request cannot be read: ${error.message}`)),
        ).pipe(
          // The model performs its next requests all the same.
          Effect.catchDefect((defect) =>
            Effect.as(
              Effect.logError("a request failed", defect),
              failedBy("server", "the server failed; its log says why"),
            ),
          ),
        )
      : undefined
    model.lastSeq = seq
    model.pending.delete(seq)
    if (outcome !== undefined) state.futures.settle(requestIdOf(model.record.id, seq), outcome)
  }
})
