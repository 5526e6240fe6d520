/** Answers `POST /v1/responses`, whole or streamed. Nothing is stored, so each request has the whole conversation. */
import { Effect } from "effect"
import { badRequest } from "./ApiError.ts"
import { answered } from "./answers/answered.ts"
import { requestsOf } from "./answers/choices.ts"
import { conversationPrompt } from "./answers/conversation.ts"
import { decoder } from "./requests.ts"
import { ResponseEvents } from "./answers/responsesAnswer.ts"
import { chatTools, jsonSchemaOfText, messagesOfInput, ResponsesBody } from "./answers/responsesBody.ts"
import { formatRefusedAs } from "./structuredOutputs.ts"
import { beginAnswer, modelOf, readBody, type ServerState } from "./ServerState.ts"

const decodeBody = decoder(ResponsesBody)

/** Answers `POST /v1/responses`. */
export const responses = Effect.fnUntraced(function* (state: ServerState) {
  const { chat } = state
  const body = yield* Effect.flatMap(readBody(state), decodeBody)
  const model = yield* modelOf(state, body.model)
  const messages = yield* messagesOfInput(body)
  const jsonSchema = jsonSchemaOfText(body)
  const tools = chatTools(body)
  if (jsonSchema !== null && (tools.tools ?? []).length > 0 && tools.tool_choice !== "none") {
    const message = "text.format: expected no tools, or tool_choice none, since an answer in JSON cannot call tools"
    return yield* badRequest(message, "text.format")
  }
  const prompt = yield* Effect.mapError(conversationPrompt(chat, { messages, ...tools }, model.maxLength), (error) =>
    error.param === "messages" ? badRequest(error.message.replace(/^messages/, "input"), "input", error.code) : error,
  )
  const { temperature, top_p, top_k, seed } = body
  const requests = yield* requestsOf([prompt.ids], {
    body: {
      ...(temperature === undefined ? {} : { temperature }),
      ...(top_p === undefined ? {} : { top_p }),
      ...(top_k === undefined ? {} : { top_k }),
      ...(seed === undefined ? {} : { seed }),
    },
    model,
    keys: { prompt: "input", maxTokens: "max_output_tokens" },
    maxTokens: body.max_output_tokens ?? null,
    topLogprobs: 0,
    promptLogprobs: null,
    jsonSchema: jsonSchema ?? prompt.schema,
  })
  const begun = yield* beginAnswer(state, "resp")
  const events = new ResponseEvents({
    id: begun.id.replaceAll("-", "_"),
    created: begun.created,
    model: model.name,
    body,
    promptTokens: prompt.ids.length,
    turns: messages.length,
    reader: prompt.reader(),
  })
  return yield* answered(state, requests, {
    isStreamed: body.stream === true,
    named: true,
    refused: formatRefusedAs(jsonSchema === null ? "tools" : "text.format"),
    whole: ([generated]) => {
      events.push({ index: 0, event: { _tag: "Finished", text: generated.text, generated } })
      return events.whole()
    },
    chunks: () => events,
  })
})
