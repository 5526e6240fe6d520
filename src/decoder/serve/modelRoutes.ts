/** Handles the requests that describe models, and those that convert between texts and token ids. */
import { Effect } from "effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import type { ModelInfo } from "../inference/Engine.ts"
import { conversationPrompt } from "./answers/conversation.ts"
import { AwaitedStep, decoder, DetokenizeBody, TokenizeBody } from "./requests.ts"
import { json } from "./responses.ts"
import { encodePrompt, modelOf, readBody, type ServerState } from "./ServerState.ts"

const modelBody = ({ startedAtMillis }: ServerState, { name, base, step, maxLength }: ModelInfo) => ({
  id: name,
  object: "model",
  created: Math.floor(startedAtMillis / 1000),
  owned_by: "effect-rl",
  root: base ?? name,
  parent: base,
  max_model_len: maxLength,
  step,
})

const decodeAwaited = decoder(AwaitedStep)
/** Waits until the model has the weights of the step in the query, but no longer than the time in the query. */
const awaitStepOf = Effect.fnUntraced(function* ({ engine }: ServerState, name: string) {
  const { step, wait } = yield* Effect.flatMap(HttpServerRequest.ParsedSearchParams, (query) =>
    decodeAwaited({ ...query }),
  )
  if (step !== undefined) yield* Effect.timeoutOption(engine.awaitStep(name, step), `${wait} seconds`)
})

/** Lists the models. If the path continues, describes the model with that name, which may contain slashes. */
export const models = Effect.fnUntraced(function* (state: ServerState) {
  const { "*": name = "" } = yield* HttpRouter.params
  if (name === "") {
    const all = yield* state.engine.models
    return json({ object: "list", data: all.map((model) => modelBody(state, model)) })
  }
  yield* awaitStepOf(state, name)
  return json(modelBody(state, yield* modelOf(state, name)))
})

/** Answers `GET /health`. */
export const health = ({ engine, gate }: ServerState) =>
  Effect.map(engine.status, ({ running, waiting }) =>
    gate.isDraining() ? json({ status: "stopping", running, waiting }, 503) : json({ status: "ok", running, waiting }),
  )

const decodeTokenize = decoder(TokenizeBody)
/** Answers `POST /tokenize`. */
export const tokenize = Effect.fnUntraced(function* (state: ServerState) {
  const request = yield* Effect.flatMap(readBody(state), decodeTokenize)
  const model = yield* modelOf(state, request.model)
  const tokens =
    "prompt" in request
      ? yield* encodePrompt(state, request.prompt, {
          param: "prompt",
          model,
          addSpecial: request.add_special_tokens ?? true,
        })
      : (yield* conversationPrompt(state.chat, request, model.maxLength)).ids
  return json({ count: tokens.length, max_model_len: model.maxLength, tokens })
})

const decodeDetokenize = decoder(DetokenizeBody)
/** Answers `POST /detokenize`. */
export const detokenize = Effect.fnUntraced(function* (state: ServerState) {
  const { tokens } = yield* Effect.flatMap(readBody(state), decodeDetokenize)
  return json({ prompt: state.chat.tokens.decode(tokens, { keepSpecial: true }) })
})
