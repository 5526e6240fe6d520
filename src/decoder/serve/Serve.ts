/**
 * Serves an `Engine` over HTTP with OpenAI's protocol: chat and text completions, whole or streamed, embeddings, the list of
 * models, and vLLM's routes for adapters and token ids. Clients of OpenAI's API only need another base URL. `server-node.ts` listens with
 * Node; on other platforms, give `app` to their HTTP server.
 *
 * @example
 * ```ts
 * import { HttpServer } from "effect/http"
 *
 * const { app, drain } = yield* Serve.make({ chat: chatModel })
 * const routes = HttpServer.serve(app) // a Layer that needs an HttpServer
 * ```
 */
import { Clock, Effect, Redacted, type Scope } from "effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerError from "effect/http/HttpServerError"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import type * as HttpServerResponse from "effect/http/HttpServerResponse"
import { type HostGuard, refusedBy, sameKey } from "../../base/trust/hostGuard.ts"
import type { StepAdapter, Engine, EngineError, Pooling } from "../inference/Engine.ts"
import type { ChatModel } from "../engine/ChatModel.ts"
import { type ClientAdapters, loadAdapter, unloadAdapter } from "./adapterRoutes.ts"
import { chatCompletions, completions } from "./answers/answers.ts"
import { ApiError, internalError } from "./ApiError.ts"
import { embeddings } from "./embeddingsRoute.ts"
import { generateTokens } from "./answers/generateAnswer.ts"
import { detokenize, health, models, tokenize } from "./modelRoutes.ts"
import { failure, reported } from "./responses.ts"
import { responses } from "./responsesRoute.ts"
import { metricsPage } from "./metricsRoute.ts"
import { makeServerState, type ServerState } from "./ServerState.ts"

export interface ServeOptions {
  /** The tokenizer, the chat template and the format of tool calls of the engine's model. */
  readonly chat: ChatModel
  /** Reads an adapter from a path that a client sends. If it is left out, clients cannot load or unload adapters. */
  readonly readAdapter?: (path: string) => Effect.Effect<StepAdapter, { readonly message: string }>
  /** Whether clients may also replace and unload adapters that were not loaded by clients. Default: false. */
  readonly replaceAdapters?: boolean
  /** The largest number of answers that are in progress or waiting; further requests get status 429. Default: 1024. */
  readonly maxRequests?: number | undefined
  /** The way in which the hidden states of a text become its embedding, if the client does not choose it. Default: mean. */
  readonly pooling?: Pooling | undefined
  /** The key that clients must send as a bearer token; `/health` needs none. */
  readonly apiKey?: Redacted.Redacted | undefined
  /**
   * Checks the host name with which a client addresses the server. Without it, every name is accepted; then something else
   * must protect the server from pages of other sites.
   */
  readonly guard?: HostGuard | undefined
  /** The largest size of a request's body in bytes. Default: 32 MiB. */
  readonly maxBodyBytes?: number
}

type App = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  never,
  HttpServerRequest.HttpServerRequest | Scope.Scope
>

export interface ServedApp {
  /** Answers one request. If its client disconnects, the request is interrupted and leaves the engine. */
  readonly app: App
  /** Refuses further requests, and waits until all answers that have begun are complete. */
  readonly drain: Effect.Effect<void>
}

type RouteHandler<R> = Effect.Effect<HttpServerResponse.HttpServerResponse, ApiError | EngineError, R>

/** Converts a failure to a response in the protocol's form, and a defect to a fault of the server. */
const answeringFailures = <R>(handler: RouteHandler<R>) =>
  handler.pipe(
    Effect.catch((error) => Effect.map(reported(error), failure)),
    Effect.catchDefect((defect) => Effect.as(Effect.logError("a request failed", defect), failure(internalError))),
  )

const isAuthorised = (request: HttpServerRequest.HttpServerRequest, apiKey: Redacted.Redacted | undefined): boolean => {
  if (apiKey === undefined) return true
  const sent = /^Bearer (.+)$/i.exec(request.headers.authorization ?? "")?.[1]
  return sameKey(sent, Redacted.value(apiKey))
}

/** Makes the routes of the server. All except `/health` need the key. */
const routesOf = (state: ServerState, adapters: ClientAdapters, apiKey: Redacted.Redacted | undefined) => {
  const guarded = <R>(handler: RouteHandler<R>) =>
    answeringFailures(
      Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
        isAuthorised(request, apiKey) ? handler : Effect.succeed(failure(unauthorised)),
      ),
    )
  return [
    HttpRouter.route("POST", "/v1/chat/completions", guarded(chatCompletions(state))),
    HttpRouter.route("POST", "/v1/completions", guarded(completions(state))),
    HttpRouter.route("POST", "/v1/responses", guarded(responses(state))),
    HttpRouter.route("POST", "/v1/embeddings", guarded(embeddings(state))),
    HttpRouter.route("POST", "/inference/v1/generate", guarded(generateTokens(state))),
    HttpRouter.route("GET", "/v1/models/*", guarded(models(state))),
    HttpRouter.route("POST", "/v1/load_lora_adapter", guarded(loadAdapter(state, adapters))),
    HttpRouter.route("POST", "/v1/unload_lora_adapter", guarded(unloadAdapter(state, adapters))),
    HttpRouter.route("POST", "/tokenize", guarded(tokenize(state))),
    HttpRouter.route("POST", "/detokenize", guarded(detokenize(state))),
    HttpRouter.route("GET", "/metrics", guarded(metricsPage(state))),
    HttpRouter.route("GET", "/health", answeringFailures(health(state))),
  ] as const
}

/** Counts a request with its status, and the time until its response begins. */
const counted =
  ({ metrics }: ServerState) =>
  <E, R>(app: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>) =>
    Effect.gen(function* () {
      const { url } = yield* HttpServerRequest.HttpServerRequest
      const began = yield* Clock.monotonicTimeNanos
      const response = yield* app
      metrics.requested(url, response.status, Number((yield* Clock.monotonicTimeNanos) - began) / 1e9)
      return response
    })

/** Makes the server's app for the engine of the context. */
export const make = Effect.fnUntraced(function* (options: ServeOptions): Effect.fn.Return<ServedApp, never, Engine> {
  const state = yield* makeServerState({
    chat: options.chat,
    maxAnswers: options.maxRequests ?? 1024,
    maxBodyBytes: options.maxBodyBytes ?? 32 * 1024 * 1024,
    pooling: options.pooling ?? "mean",
  })
  const adapters: ClientAdapters = {
    read: options.readAdapter,
    mayReplaceAll: options.replaceAdapters === true,
    loaded: new Set(),
  }
  const router = yield* HttpRouter.make
  yield* router.addAll(routesOf(state, adapters, options.apiKey))
  const route = router.asHttpEffect()
  const app = Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const refused = options.guard === undefined ? undefined : refusedBy(options.guard, request.headers)
    if (refused !== undefined) return failure(new ApiError({ ...refused, code: "wrong_host", param: null }))
    return yield* route
  }).pipe(
    Effect.catch((error) => {
      if (HttpServerError.isHttpServerError(error) && error.reason._tag === "RouteNotFound") {
        return Effect.succeed(failure(noRoute))
      }
      return Effect.as(Effect.logError("a request failed", error), failure(internalError))
    }),
    counted(state),
  )
  return { app, drain: state.gate.drain }
})

const noRoute = new ApiError({
  status: 404,
  code: "unknown_url",
  param: null,
  message: "this server has no such route; see /v1/models, /v1/chat/completions and /v1/completions",
})

const unauthorised = new ApiError({
  status: 401,
  code: "invalid_api_key",
  param: null,
  message: "expected the server's API key as a bearer token",
})
