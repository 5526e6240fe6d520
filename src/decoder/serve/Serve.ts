/**
 * Serves an `Engine` over HTTP by OpenAI's protocol: chat and text completions, whole or streamed, the list of models, and
 * vLLM's routes for adapters and for token ids. Clients of OpenAI's API work with it when they change their base URL.
 * `server-node.ts` listens with Node; on other platforms, give `app` to their HTTP server.
 *
 * @example
 * ```ts
 * const { app, drain } = yield* Serve.make({ chat: chatModel })
 * const routes = HttpServer.serve(app) // a Layer that needs an HttpServer
 * ```
 */
import { ByteSize, Clock, Effect, Redacted, Schema, type Scope, Stream } from "effect"
import * as HttpIncomingMessage from "effect/http/HttpIncomingMessage"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerError from "effect/http/HttpServerError"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { type HostGuard, refusedBy, sameKey } from "../../base/config/hostGuard.ts"
import { jsonValue } from "../../base/config/text.ts"
import { type Adapter, Engine, type EngineError, type ModelInfo } from "../inference/Engine.ts"
import type { ChatModel } from "../engine/ChatModel.ts"
import { encodeAtMost } from "../../base/tokens/encodeAtMost.ts"
import { ApiError, badRequest, errorBody, fromEngine, internalError, modelNotFound } from "./ApiError.ts"
import { chatAnswer, ChatChunks, type ChatQuestion } from "./chatAnswer.ts"
import { type ChoiceEvent, generateAll, requestsOf, streamAll } from "./choices.ts"
import { completionAnswer, CompletionChunks, type CompletionQuestion } from "./completionAnswer.ts"
import { conversationPrompt } from "./conversation.ts"
import { makeGate } from "./gate.ts"
import { oversize } from "./limits.ts"
import {
  AwaitedStep,
  ChatBody,
  CompletionBody,
  decoder,
  DetokenizeBody,
  LoadAdapterBody,
  TokenizeBody,
  UnloadAdapterBody,
} from "./requests.ts"
import { TokenTexts } from "./tokenTexts.ts"

export interface ServeOptions {
  /** The tokens, the chat template and the calls of tools of the engine's model. */
  readonly chat: ChatModel
  /** Reads an adapter from a path that a client sends. Without it, clients cannot load or unload adapters. */
  readonly readAdapter?: (path: string) => Effect.Effect<Adapter, { readonly message: string }>
  /** Whether clients may also replace and unload adapters that no client has loaded. Default: false. */
  readonly replaceAdapters?: boolean
  /** The most answers to generate at the same time, with those that wait; further requests get status 429. Default: 1024. */
  readonly maxRequests?: number | undefined
  /** The key that clients must send as a bearer token; `/health` needs none. */
  readonly apiKey?: Redacted.Redacted | undefined
  /** The names by which clients address the server. Without it, any name will do: then something else must keep pages of other sites out. */
  readonly guard?: HostGuard | undefined
  /** The largest body of a request in bytes. Default: 32 MiB. */
  readonly maxBodyBytes?: number
}

type App = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  never,
  HttpServerRequest.HttpServerRequest | Scope.Scope
>

export interface Served {
  /** Answers one request. If its client disconnects, the request is interrupted and leaves the engine. */
  readonly app: App
  /** Refuses further requests, and waits until all answers that have begun are complete. */
  readonly drain: Effect.Effect<void>
}

const json = (value: unknown, status = 200): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.text(JSON.stringify(value), { status, contentType: "application/json" })

const failure = (error: ApiError): HttpServerResponse.HttpServerResponse => {
  const response = json(errorBody(error), error.status)
  // Clients such as OpenAI's wait this long before they try again.
  return error.status === 429 || error.status === 503
    ? HttpServerResponse.setHeader(response, "retry-after", "1")
    : response
}

const event = (data: string): string => `data: ${data}\n\n`

/** The step in the name of a folder that ends with `step_N`, as trainers name their broadcasts. */
const stepIn = (path: string): number | undefined => {
  const digits = /(?:^|[\\/])step_(\d+)[\\/]*$/.exec(path)?.[1]
  return digits === undefined ? undefined : Number(digits)
}

/** Makes the server's app for the engine of the context. */
export const make = Effect.fnUntraced(function* (options: ServeOptions): Effect.fn.Return<Served, never, Engine> {
  const { chat, readAdapter, apiKey } = options
  const engine = yield* Engine
  const maxAnswers = options.maxRequests ?? 1024
  const gate = yield* makeGate(maxAnswers)
  const maxBody = options.maxBodyBytes ?? 32 * 1024 * 1024
  const texts = new TokenTexts(chat.tokens)
  const started = yield* Clock.currentTimeMillis
  let answers = 0

  /** The id of an answer, which no other answer of this server has, and its time. */
  const about = (prefix: string) =>
    Effect.map(Clock.currentTimeMillis, (now) => ({
      id: `${prefix}-${started.toString(36)}-${answers++}`,
      created: Math.floor(now / 1000),
    }))

  /** Reads the body of the current request as JSON. */
  const body = Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    // Pages of other origins cannot send this content type without a preflight request, which the server never allows.
    if (!/^application\/(?:[\w.-]+\+)?json\b/i.test(request.headers["content-type"] ?? "")) {
      const message = "expected JSON; send the header content-type: application/json"
      return yield* new ApiError({ status: 415, code: null, param: null, message })
    }
    const tooLarge = new ApiError({
      status: 413,
      code: null,
      param: null,
      message: `expected a body of at most ${maxBody} bytes`,
    })
    if (Number(request.headers["content-length"] ?? 0) > maxBody) return yield* tooLarge
    const text = yield* request.text.pipe(
      Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.fromInputUnsafe(maxBody)),
      Effect.mapError(({ reason }) =>
        reason._tag === "RequestParseError" && reason.reason === "BodyTooLarge"
          ? tooLarge
          : badRequest("the body could not be read"),
      ),
    )
    const value = yield* Effect.try({
      try: () => jsonValue(text),
      catch: (error) =>
        badRequest(error instanceof RangeError ? `the body: ${error.message}` : "the body is not valid JSON"),
    })
    const [{ maxLength }] = yield* engine.models
    const problem = oversize(value, { maxTokens: maxLength, maxAnswers })
    return problem === undefined ? value : yield* problem
  })

  /** Encodes a prompt that is a text. */
  const encode = (text: string, param: string, { maxLength }: ModelInfo, addSpecial: boolean) =>
    Effect.mapError(encodeAtMost(chat.tokens, text, maxLength, { addSpecial }), ({ message }) =>
      badRequest(`${param}: the prompt ${message}`, param, "context_length_exceeded"),
    )

  const modelOf = Effect.fnUntraced(function* (name: string | null | undefined) {
    const models = yield* engine.models
    const model = typeof name === "string" ? models.find((model) => model.name === name) : models[0]
    return model === undefined ? yield* modelNotFound(name ?? "") : model
  })

  /** Streams the events of an answer. A failure after the beginning becomes an event, since the status has been sent. */
  const streamed = (
    events: Stream.Stream<ChoiceEvent, EngineError>,
    chunks: { push: (event: ChoiceEvent) => ReadonlyArray<object>; end: () => ReadonlyArray<object> },
  ) => {
    const written = (all: ReadonlyArray<object>): string => all.map((chunk) => event(JSON.stringify(chunk))).join("")
    const parts = events.pipe(
      Stream.map((one) => written(chunks.push(one))),
      Stream.concat(Stream.suspend(() => Stream.succeed(written(chunks.end())))),
      Stream.catch((error) =>
        Stream.fromEffect(Effect.map(reported(error), (shown) => event(JSON.stringify(errorBody(shown))))),
      ),
      Stream.concat(Stream.succeed(event("[DONE]"))),
      Stream.filter((text) => text !== ""),
    )
    return HttpServerResponse.stream(Stream.encodeText(parts), {
      contentType: "text/event-stream",
      headers: { "cache-control": "no-cache" },
    })
  }

  const decodeChat = decoder(ChatBody)
  const chatCompletions = Effect.gen(function* () {
    const request = yield* Effect.flatMap(body, decodeChat)
    const model = yield* modelOf(request.model)
    const prompt = yield* conversationPrompt(chat, request, model.maxLength)
    const topLogprobs = request.top_logprobs ?? 0
    if (topLogprobs > 0 && request.logprobs !== true) {
      return yield* badRequest("top_logprobs: expected logprobs to be true, too", "top_logprobs")
    }
    const maxTokens = request.max_completion_tokens ?? request.max_tokens ?? null
    const requests = yield* requestsOf([prompt.ids], { body: request, model, maxTokens, topLogprobs })
    const question: ChatQuestion = {
      ...(yield* about("chatcmpl")),
      model: model.name,
      promptIds: prompt.ids,
      turns: request.messages.length,
      reader: prompt.reader,
      onlyOneCall: request.parallel_tool_calls === false,
      logprobs: request.logprobs ?? false,
      tokenIds: request.return_token_ids ?? false,
      usage: request.stream_options?.include_usage ?? false,
      texts,
    }
    yield* gate.enter(requests.length)
    if (request.stream !== true) return json(chatAnswer(question, yield* generateAll(engine, requests)))
    return streamed(yield* streamAll(engine, requests), new ChatChunks(question, requests.length))
  })

  const decodeCompletion = decoder(CompletionBody)
  const completions = Effect.gen(function* () {
    const request = yield* Effect.flatMap(body, decodeCompletion)
    const model = yield* modelOf(request.model)
    const topLogprobs = request.logprobs ?? 0
    const hasLogprobs = typeof request.logprobs === "number"
    if (request.echo === true && hasLogprobs) {
      const message = "logprobs: not supported together with echo; this server computes none for prompts"
      return yield* badRequest(message, "logprobs", "unsupported_parameter")
    }
    const addSpecial = request.add_special_tokens ?? true
    const prompts = yield* Effect.forEach(promptsOf(request.prompt), (prompt) =>
      Effect.gen(function* () {
        const ids = typeof prompt === "string" ? yield* encode(prompt, "prompt", model, addSpecial) : prompt
        const text = request.echo !== true ? "" : typeof prompt === "string" ? prompt : chat.tokens.decode(prompt)
        yield* Effect.yieldNow
        return { ids, echo: text }
      }),
    )
    const maxTokens = request.max_tokens ?? null
    const ids = prompts.map(({ ids }) => ids)
    const requests = yield* requestsOf(ids, { body: request, model, maxTokens, topLogprobs })
    const question: CompletionQuestion = {
      ...(yield* about("cmpl")),
      model: model.name,
      prompts,
      n: request.n ?? 1,
      logprobs: hasLogprobs,
      tokenIds: request.return_token_ids ?? false,
      usage: request.stream_options?.include_usage ?? false,
      texts,
    }
    yield* gate.enter(requests.length)
    if (request.stream !== true) return json(completionAnswer(question, yield* generateAll(engine, requests)))
    return streamed(yield* streamAll(engine, requests), new CompletionChunks(question))
  })

  const modelBody = ({ name, base, step, maxLength }: ModelInfo) => ({
    id: name,
    object: "model",
    created: Math.floor(started / 1000),
    owned_by: "effect-rl",
    root: base ?? name,
    parent: base,
    max_model_len: maxLength,
    step,
  })

  const listModels = Effect.map(engine.models, (models) => json({ object: "list", data: models.map(modelBody) }))

  const decodeAwaited = decoder(AwaitedStep)
  /** Waits until the model has the weights of the step that the query names, at most for as long as it says. */
  const awaitStepOf = Effect.fnUntraced(function* (name: string) {
    const { step, wait } = yield* Effect.flatMap(HttpServerRequest.ParsedSearchParams, (query) =>
      decodeAwaited({ ...query }),
    )
    if (step !== undefined) yield* Effect.timeoutOption(engine.awaitStep(name, step), `${wait} seconds`)
  })

  /** Lists the models, or describes the one whose name, which may contain slashes, is the rest of the path. */
  const models = Effect.gen(function* () {
    const { "*": name = "" } = yield* HttpRouter.params
    if (name === "") return yield* listModels
    yield* awaitStepOf(name)
    return json(modelBody(yield* modelOf(name)))
  })

  const health = Effect.map(engine.status, ({ running, waiting }) =>
    gate.isDraining() ? json({ status: "stopping", running, waiting }, 503) : json({ status: "ok", running, waiting }),
  )

  const decodeTokenize = decoder(TokenizeBody)
  const tokenize = Effect.gen(function* () {
    const request = yield* Effect.flatMap(body, decodeTokenize)
    const model = yield* modelOf(request.model)
    const tokens =
      "prompt" in request
        ? yield* encode(request.prompt, "prompt", model, request.add_special_tokens ?? true)
        : (yield* conversationPrompt(chat, request, model.maxLength)).ids
    return json({ count: tokens.length, max_model_len: model.maxLength, tokens })
  })

  const decodeDetokenize = decoder(DetokenizeBody)
  const detokenize = Effect.gen(function* () {
    const { tokens } = yield* Effect.flatMap(body, decodeDetokenize)
    return json({ prompt: chat.tokens.decode(tokens, { keepSpecial: true }) })
  })

  /** The names of the adapters that clients have loaded. */
  const ofClients = new Set<string>()
  /** Fails if an adapter is the server's own. */
  const checkOwner = Effect.fnUntraced(function* (name: string) {
    const models = yield* engine.models
    if (options.replaceAdapters === true || ofClients.has(name) || models.every((model) => model.name !== name)) return
    const message = `lora_name: "${name}" belongs to the server; its flag --replace-adapters lets clients replace and unload it`
    return yield* new ApiError({ status: 403, code: null, param: "lora_name", message })
  })

  const decodeLoad = decoder(LoadAdapterBody)
  const loadAdapter = Effect.gen(function* () {
    const request = yield* Effect.flatMap(body, decodeLoad)
    if (readAdapter === undefined) return yield* adaptersRefused
    const { lora_name: name, lora_path: path } = request
    const models = yield* engine.models
    if (models.some((model) => model.base === null && model.name === name)) {
      return yield* badRequest(`lora_name: "${name}" is the base model`, "lora_name")
    }
    yield* checkOwner(name)
    const adapter = yield* Effect.mapError(readAdapter(path), ({ message }) => badRequest(message, "lora_path"))
    const step = request.step ?? stepIn(path) ?? 0
    yield* engine.loadAdapter({ name, step, adapter })
    ofClients.add(name)
    return json({ object: "adapter", id: name, step })
  })

  const decodeUnload = decoder(UnloadAdapterBody)
  const unloadAdapter = Effect.gen(function* () {
    const { lora_name: name } = yield* Effect.flatMap(body, decodeUnload)
    if (readAdapter === undefined) return yield* adaptersRefused
    yield* checkOwner(name)
    yield* engine.unloadAdapter(name)
    ofClients.delete(name)
    return json({ object: "adapter", id: name, deleted: true })
  })

  /** Converts an error for the client, and logs it if the server is at fault. */
  const reported = (error: ApiError | EngineError): Effect.Effect<ApiError> => {
    if (error._tag === "ApiError") return Effect.succeed(error)
    const shown = fromEngine(error)
    return shown === internalError ? Effect.as(Effect.logError(error.message), shown) : Effect.succeed(shown)
  }

  const isAuthorised = (request: HttpServerRequest.HttpServerRequest): boolean => {
    if (apiKey === undefined) return true
    const sent = /^Bearer (.+)$/i.exec(request.headers.authorization ?? "")?.[1]
    return sameKey(sent, Redacted.value(apiKey))
  }

  /** Checks the key, and answers a failure in the protocol's form. */
  const guarded = <R>(
    handler: Effect.Effect<HttpServerResponse.HttpServerResponse, ApiError | EngineError, R>,
    isOpen = false,
  ) =>
    Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest
      if (!isOpen && !isAuthorised(request)) return failure(unauthorised)
      return yield* handler
    }).pipe(
      Effect.catch((error) => Effect.map(reported(error), failure)),
      Effect.catchDefect((defect) => Effect.as(Effect.logError("a request failed", defect), failure(internalError))),
    )

  const router = yield* HttpRouter.make
  yield* router.addAll([
    HttpRouter.route("POST", "/v1/chat/completions", guarded(chatCompletions)),
    HttpRouter.route("POST", "/v1/completions", guarded(completions)),
    HttpRouter.route("GET", "/v1/models/*", guarded(models)),
    HttpRouter.route("POST", "/v1/load_lora_adapter", guarded(loadAdapter)),
    HttpRouter.route("POST", "/v1/unload_lora_adapter", guarded(unloadAdapter)),
    HttpRouter.route("POST", "/tokenize", guarded(tokenize)),
    HttpRouter.route("POST", "/detokenize", guarded(detokenize)),
    HttpRouter.route("GET", "/health", guarded(health, true)),
  ])
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
  )
  return { app, drain: gate.drain }
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

const adaptersRefused = new ApiError({
  status: 403,
  code: null,
  param: null,
  message: "this server loads no adapters for its clients",
})

type Prompt = string | ReadonlyArray<number>

/** Returns the prompts of a completion: one text, one list of token ids, or several of either. */
const promptsOf = (prompt: CompletionBody["prompt"]): ReadonlyArray<Prompt> => {
  if (typeof prompt === "string") return [prompt]
  return isIds(prompt) ? [prompt] : prompt
}

const isIds = Schema.is(Schema.Array(Schema.Int))
