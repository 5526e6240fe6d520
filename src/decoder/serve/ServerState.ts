/**
 * Holds the state that the routes of a server share, with functions of it: they read a body, find the model that a request
 * names, encode a prompt, and make the id of an answer.
 */
import { Clock, Effect } from "effect"
import { jsonBody } from "../../agents/gateway/jsonBody.ts"
import { encodeAtMost } from "../../base/tokens/encodeAtMost.ts"
import type { ChatModel } from "../engine/ChatModel.ts"
import { Engine, type ModelInfo, type Pooling } from "../inference/Engine.ts"
import { ApiError, badRequest, modelNotFound } from "./ApiError.ts"
import { type Gate, makeGate } from "./gate.ts"
import { oversize } from "./limits.ts"
import { ServeMetrics } from "./serveMetrics.ts"
import { TokenTexts } from "./answers/tokenTexts.ts"

/** The state of a server. */
export interface ServerState {
  readonly engine: Engine["Service"]
  readonly chat: ChatModel
  readonly texts: TokenTexts
  readonly gate: Gate
  readonly metrics: ServeMetrics
  /** The largest number of answers that are in progress or waiting. */
  readonly maxAnswers: number
  /** The way in which hidden states become an embedding, if the request does not choose it. */
  readonly pooling: Pooling
  /** The largest body of a request in bytes. */
  readonly maxBodyBytes: number
  readonly startedAtMillis: number
  /** The number of answers that have begun. */
  answers: number
}

/** Makes the state of a server for the engine of the context. */
export const makeServerState = Effect.fnUntraced(function* (
  settings: Pick<ServerState, "chat" | "maxAnswers" | "maxBodyBytes" | "pooling">,
) {
  const state: ServerState = {
    ...settings,
    engine: yield* Engine,
    texts: new TokenTexts(settings.chat.tokens),
    gate: yield* makeGate(settings.maxAnswers),
    metrics: new ServeMetrics(),
    startedAtMillis: yield* Clock.currentTimeMillis,
    answers: 0,
  }
  return state
})

/** Returns a unique id for an answer, and its time. */
export const beginAnswer = (state: ServerState, prefix: string) =>
  Effect.map(Clock.currentTimeMillis, (now) => ({
    id: `${prefix}-${state.startedAtMillis.toString(36)}-${state.answers++}`,
    created: Math.floor(now / 1000),
  }))

/** Reads the body of the current request as JSON. */
export const readBody = Effect.fnUntraced(function* ({ engine, maxAnswers, maxBodyBytes }: ServerState) {
  const refusal = (status: number, message: string) => new ApiError({ status, code: null, param: null, message })
  const value = yield* jsonBody(maxBodyBytes, refusal)
  const [{ maxLength }] = yield* engine.models
  const problem = oversize(value, { maxTokens: maxLength, maxAnswers })
  return problem === undefined ? value : yield* problem
})

/** Encodes a prompt that is a text. `param` is its name in errors. */
export const encodePrompt = (
  { chat }: ServerState,
  text: string,
  { param, model, addSpecial }: { readonly param: string; readonly model: ModelInfo; readonly addSpecial: boolean },
) =>
  Effect.mapError(encodeAtMost(chat.tokens, text, model.maxLength, { addSpecial }), ({ message }) =>
    badRequest(`${param}: the prompt ${message}`, param, "context_length_exceeded"),
  )

/** Returns the model that a request names; the base model if the request names none. */
export const modelOf = Effect.fnUntraced(function* ({ engine }: ServerState, name: string | null | undefined) {
  const models = yield* engine.models
  const model = typeof name === "string" ? models.find((model) => model.name === name) : models[0]
  return model === undefined ? yield* modelNotFound(name ?? "") : model
})
