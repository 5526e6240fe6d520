/**
 * Serves Tinker's protocol under `/api/v1/`: clients train adapters of one base model, each its own, and sample from them.
 * All that is acknowledged survives a kill; see `modelFiles.ts`.
 *
 * @example
 * ```ts
 * const { app } = yield* makeTinkerServer({ ...tinkerOptions, slots: 8, maxRank: 16, maxLength: 256, seed: 0 })
 * ```
 */
import { Clock, Effect, Latch, Redacted, type Scope, Semaphore } from "effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerError from "effect/http/HttpServerError"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import type * as HttpServerResponse from "effect/http/HttpServerResponse"
import { type HostGuard, refusedBy, sameKey } from "../../base/trust/hostGuard.ts"
import type { Unzstd } from "../../base/formats/zip/unzip.ts"
import type { EngineService } from "../../decoder/inference/Engine.ts"
import * as Decoder from "../../decoder/networks/Decoder.ts"
import { ApiError, internalError } from "../../decoder/serve/ApiError.ts"
import { json } from "../../decoder/serve/responses.ts"
import type { FileTree } from "../../run/store/FileTree.ts"
import type { Backend } from "../../tensor/backend/Backend.ts"
import type { BaseModel } from "../baseModel.ts"
import { notImplemented, refusal } from "./answers.ts"
import { makeAdamSteps } from "./training/AdamSteps.ts"
import { adapterLayout } from "./models/AdapterInTraining.ts"
import { makeInProgress } from "./waiting/counting.ts"
import { makeFutures } from "./waiting/Futures.ts"
import * as Handlers from "./handlers.ts"
import * as Lists from "./lists.ts"
import * as Layout from "../Layout.ts"
import * as ModelFiles from "./models/modelFiles.ts"
import { openWaiting } from "./models/loadedModels.ts"
import { withBody } from "./wire/requestBody.ts"
import { makeSamplers } from "./sampling/Samplers.ts"
import { readSessions } from "./sessions.ts"
import { defaultLimits, type TinkerLimits, type TinkerState } from "./TinkerState.ts"
import type { TrainingPrograms } from "./training/TrainingPrograms.ts"
import { makeTurns } from "./waiting/turns.ts"

/** An API key, with the name of the client that has it. */
interface ApiKey {
  readonly name: string
  readonly key: Redacted.Redacted
}

export interface TinkerServerOptions {
  readonly base: Pick<BaseModel, "decoder" | "name">
  /** The name of the base model for clients. */
  readonly baseName: string
  /** Compute gradients, for adapters of all projections with the largest rank. */
  readonly programs: TrainingPrograms
  /** Generates for clients. It has adapters for all projections. */
  readonly engine: EngineService
  /** The number of adapters for which the engine has room. */
  readonly slots: number
  /** The largest rank of a model. */
  readonly maxRank: number
  /** The most tokens of an example, and of a prompt with its answer. */
  readonly maxLength: number
  /** The folder of the models. Only this process may write it. */
  readonly files: FileTree
  readonly unzstd: Unzstd
  /** The seed of adapters and samples for which clients set none. */
  readonly seed: number
  /** The keys of clients. If there is none, all clients are the same one, with any key. */
  readonly keys: ReadonlyArray<ApiKey>
  /** Checks the host name with which a client addresses the server. */
  readonly guard?: HostGuard | undefined
  readonly limits?: Partial<TinkerLimits> | undefined
}

type App = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  never,
  HttpServerRequest.HttpServerRequest | Scope.Scope
>

/** Computes how many models may be in memory: each has its numbers, two moments of each, and the gradient. */
const mostLoadedBy = ({ loadedModels, loadedBytes }: TinkerLimits, size: number): number =>
  Math.max(1, Math.min(loadedModels, Math.floor(loadedBytes / (4 * Float32Array.BYTES_PER_ELEMENT * size))))

/** Makes the state of a server, and opens the models on disk that have work. */
const openState = Effect.fnUntraced(function* (options: TinkerServerOptions) {
  const { base, baseName, engine, slots, maxRank, maxLength, files, seed } = options
  const shape = { rank: maxRank, targets: Decoder.projections }
  const limits = { ...defaultLimits, ...options.limits }
  const config = base.decoder
  const layout = adapterLayout(config, shape)
  const saved = yield* readSessions(files)
  const records = (yield* ModelFiles.readRecords(files)).filter(({ is_unloaded }) => !is_unloaded)
  const state: TinkerState = {
    base,
    baseName,
    shape,
    maxLength,
    seed,
    programs: options.programs,
    adamSteps: yield* makeAdamSteps(layout),
    files,
    turns: makeTurns(),
    samplers: yield* makeSamplers({ engine, baseName, config, shape, slots, files }),
    futures: makeFutures({ outcomes: limits.outcomes, numbers: limits.outcomeNumbers }),
    limits,
    hasKeys: options.keys.length > 0,
    records: new Map(records.map((record) => [record.id, record])),
    models: new Map(),
    mostLoaded: mostLoadedBy(limits, layout.size),
    modelUses: 0,
    becameIdle: Latch.makeUnsafe(false),
    creating: yield* Semaphore.make(1),
    sessions: new Map(saved.sessions.map((session) => [session.id, session])),
    samplesInProgress: makeInProgress(),
    bodiesInProgress: makeInProgress(),
    sessionCount: saved.count,
    unnumberedSamples: 0,
    startMillis: yield* Clock.currentTimeMillis,
    scope: yield* Effect.scope,
  }
  yield* openWaiting(state)
  return state
})

/** The name of the client if the server has no keys. */
const anyone = "local"

const unauthorised = new ApiError({
  status: 401,
  code: "invalid_api_key",
  param: null,
  message: "expected an API key of this server in the header x-api-key",
})

/** Returns the name of the client that sent a request. */
const ownerOf = (keys: ReadonlyArray<ApiKey>, { headers }: HttpServerRequest.HttpServerRequest) => {
  if (keys.length === 0) return Effect.succeed(anyone)
  const sent = headers["x-api-key"] ?? /^Bearer (.+)$/i.exec(headers["authorization"] ?? "")?.[1]
  const found = keys.find(({ key }) => sameKey(sent, Redacted.value(key)))
  return found === undefined ? Effect.fail(unauthorised) : Effect.succeed(found.name)
}

/** The largest body of a request that has only settings, in bytes. */
const mostSettings = 1024 * 1024

type Handler<R> = Effect.Effect<HttpServerResponse.HttpServerResponse, { readonly message: string }, R>

const answering = <R>(handler: Handler<R>) =>
  handler.pipe(
    Effect.catch((error) =>
      error instanceof ApiError
        ? Effect.succeed(refusal(error))
        : Effect.as(Effect.logError(error.message), refusal(internalError)),
    ),
    Effect.catchDefect((defect) => Effect.as(Effect.logError("a request failed", defect), refusal(internalError))),
  )

const routesOf = (state: TinkerState, { keys, unzstd }: TinkerServerOptions) => {
  const owned = Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => ownerOf(keys, request))
  const get = <R>(handler: (request: Lists.ListRequest) => Handler<R>) =>
    answering(Effect.flatMap(owned, (owner) => handler({ state, owner })))
  const { bodyBytes, bodiesOfKey } = state.limits
  const posted = <R>(handler: (request: Handlers.TinkerRequest) => Handler<R>, most: number) =>
    answering(
      Effect.flatMap(owned, (owner) =>
        withBody({ owner, most, unzstd, inProgress: state.bodiesInProgress, mostInProgress: bodiesOfKey }, (body) =>
          handler({ state, owner, body }),
        ),
      ),
    )
  const post = <R>(handler: (request: Handlers.TinkerRequest) => Handler<R>) =>
    posted(handler, Math.min(bodyBytes, mostSettings))
  /** The requests whose bodies have the tokens of many examples, or of a prompt. */
  const postTokens = <R>(handler: (request: Handlers.TinkerRequest) => Handler<R>) => posted(handler, bodyBytes)
  const lacks = answering(Effect.andThen(owned, Effect.fail(notImplemented(null, "this server lacks this request"))))
  const run = "/api/v1/training_runs/:model"
  const checkpoint = `${run}/${Layout.checkpoints}/:kind/:name`
  return [
    HttpRouter.route("GET", "/api/v1/healthz", Effect.succeed(json({ status: "ok" }))),
    HttpRouter.route("POST", "/api/v1/client/config", Handlers.clientConfig),
    HttpRouter.route("POST", "/api/v1/client/dynamic_config", Effect.succeed(json({ refresh_interval_sec: 300 }))),
    HttpRouter.route(
      "POST",
      "/api/v1/telemetry",
      post(() => Effect.succeed(json({ status: "accepted" }))),
    ),
    HttpRouter.route(
      "GET",
      "/api/v1/get_server_capabilities",
      get(() => Effect.succeed(Handlers.capabilities(state))),
    ),
    HttpRouter.route("POST", "/api/v1/create_session", post(Handlers.openSession)),
    HttpRouter.route("POST", "/api/v1/session_heartbeat", post(Handlers.heartbeat)),
    HttpRouter.route("POST", "/api/v1/create_model", post(Handlers.newModel)),
    HttpRouter.route("POST", "/api/v1/get_info", post(Handlers.modelInfo)),
    HttpRouter.route("POST", "/api/v1/unload_model", post(Handlers.unload)),
    HttpRouter.route("POST", "/api/v1/forward", postTokens(Handlers.lossRequest("forward"))),
    HttpRouter.route("POST", "/api/v1/forward_backward", postTokens(Handlers.lossRequest("forward_backward"))),
    HttpRouter.route("POST", "/api/v1/optim_step", post(Handlers.trainingRequest("optim_step"))),
    HttpRouter.route("POST", "/api/v1/save_weights", post(Handlers.trainingRequest("save_weights"))),
    HttpRouter.route("POST", "/api/v1/load_weights", post(Handlers.trainingRequest("load_weights"))),
    HttpRouter.route(
      "POST",
      "/api/v1/save_weights_for_sampler",
      post(Handlers.trainingRequest("save_weights_for_sampler")),
    ),
    HttpRouter.route("POST", "/api/v1/create_sampling_session", post(Handlers.openSampler)),
    HttpRouter.route("POST", "/api/v1/asample", postTokens(Handlers.sample)),
    HttpRouter.route("POST", "/api/v1/retrieve_future", post(Handlers.retrieve)),
    HttpRouter.route("POST", "/api/v1/weights_info", post(Lists.weightsInfo)),
    HttpRouter.route("GET", "/api/v1/training_runs", get(Lists.trainingRuns)),
    HttpRouter.route("GET", run, get(Lists.trainingRun)),
    HttpRouter.route("GET", `${run}/${Layout.checkpoints}`, get(Lists.checkpointsOfRun)),
    HttpRouter.route("DELETE", checkpoint, get(Lists.deleteCheckpoint)),
    HttpRouter.route("*", `${run}/${Layout.checkpoints}/:name`, get(Lists.refuseName)),
    HttpRouter.route("GET", `${checkpoint}/archive`, get(Lists.archiveAddress)),
    HttpRouter.route("GET", `${checkpoint}/download`, get(Lists.download)),
    HttpRouter.route("PUT", `${checkpoint}/ttl`, post(Lists.setTimeToLive)),
    HttpRouter.route("GET", "/api/v1/checkpoints", get(Lists.allCheckpoints)),
    HttpRouter.route("GET", "/api/v1/samplers/:sampler", get(Lists.samplerInfo)),
    HttpRouter.route("GET", "/api/v1/sessions", get(Lists.sessions)),
    HttpRouter.route("GET", "/api/v1/sessions/:session", get(Lists.session)),
    HttpRouter.route("*", "/api/v1/*", lacks),
  ] as const
}

/** Makes a server, and opens the models of its folder. It works until the scope closes. */
export const makeTinkerServer = Effect.fnUntraced(function* (
  options: TinkerServerOptions,
): Effect.fn.Return<{ readonly app: App }, { readonly message: string }, Backend | Scope.Scope> {
  const state = yield* openState(options)
  const router = yield* HttpRouter.make
  yield* router.addAll(routesOf(state, options))
  const route = router.asHttpEffect()
  const app = Effect.gen(function* () {
    const { headers } = yield* HttpServerRequest.HttpServerRequest
    const refused = options.guard === undefined ? undefined : refusedBy(options.guard, headers)
    if (refused !== undefined) return refusal(new ApiError({ ...refused, code: "wrong_host", param: null }))
    return yield* route
  }).pipe(
    Effect.catch((error) =>
      HttpServerError.isHttpServerError(error) && error.reason._tag === "RouteNotFound"
        ? Effect.succeed(refusal(notImplemented(null, "this server lacks this request")))
        : Effect.as(Effect.logError("a request failed", error), refusal(internalError)),
    ),
  )
  return { app }
})
