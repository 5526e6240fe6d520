/** Handles the requests that generate text: chat completions and completions, whole or streamed. */
import { Effect, Schema } from "effect"
import type { ModelInfo } from "../../inference/Engine.ts"
import { type ApiError, badRequest } from "../ApiError.ts"
import { chatAnswer, ChatChunks, type ChatQuestion } from "./chatAnswer.ts"
import { answered } from "./answered.ts"
import { requestsOf } from "./choices.ts"
import { completionAnswer, CompletionChunks, type CompletionQuestion } from "./completionAnswer.ts"
import { conversationPrompt } from "./conversation.ts"
import { ChatBody, CompletionBody, decoder } from "../requests.ts"
import { answerFormatOf, formatKey, formatRefusedAs } from "../structuredOutputs.ts"
import { beginAnswer, encodePrompt, modelOf, readBody, type ServerState } from "../ServerState.ts"

/** Returns the number of likeliest tokens for each token of the prompt; null if the request asks for none. */
const promptLogprobsOf = ({
  prompt_logprobs: count = null,
  stream,
}: Pick<ChatBody, "prompt_logprobs" | "stream">): Effect.Effect<number | null, ApiError> =>
  count !== null && stream === true
    ? Effect.fail(
        badRequest(
          "prompt_logprobs: expected stream to be false, since they come with a whole answer",
          "prompt_logprobs",
        ),
      )
    : Effect.succeed(count)

const decodeChat = decoder(ChatBody)
/** Answers `POST /v1/chat/completions`. */
export const chatCompletions = Effect.fnUntraced(function* (state: ServerState) {
  const { chat, texts } = state
  const request = yield* Effect.flatMap(readBody(state), decodeChat)
  const model = yield* modelOf(state, request.model)
  const prompt = yield* conversationPrompt(chat, request, model.maxLength)
  const format = yield* answerFormatOf(request)
  if (Object.keys(format).length > 0 && (request.tools ?? []).length > 0 && request.tool_choice !== "none") {
    const key = formatKey(request)
    const message = `${key}: expected no tools, or tool_choice none, since an answer in a format cannot call tools`
    return yield* badRequest(message, key)
  }
  const topLogprobs = request.top_logprobs ?? 0
  if (topLogprobs > 0 && request.logprobs !== true) {
    return yield* badRequest("top_logprobs: expected logprobs to be true, too", "top_logprobs")
  }
  const maxTokens = request.max_completion_tokens ?? request.max_tokens ?? null
  const promptLogprobs = yield* promptLogprobsOf(request)
  const requests = yield* requestsOf([prompt.ids], {
    body: request,
    model,
    keys: {
      prompt: "messages",
      maxTokens: request.max_completion_tokens === maxTokens ? "max_completion_tokens" : "max_tokens",
    },
    maxTokens,
    topLogprobs,
    promptLogprobs,
    jsonSchema: prompt.schema,
    ...format,
  })
  const question: ChatQuestion = {
    ...(yield* beginAnswer(state, "chatcmpl")),
    model: model.name,
    promptIds: prompt.ids,
    turns: request.messages.length,
    reader: prompt.reader,
    onlyOneCall: request.parallel_tool_calls === false,
    logprobs: request.logprobs ?? false,
    promptLogprobs,
    tokenIds: request.return_token_ids ?? false,
    usage: request.stream_options?.include_usage ?? false,
    texts,
  }
  return yield* answered(state, requests, {
    isStreamed: request.stream === true,
    // Without a format of its own, an answer is only held to the schemas of tools.
    refused: formatRefusedAs(Object.keys(format).length === 0 ? "tools" : formatKey(request)),
    whole: (generated) => chatAnswer(question, generated),
    chunks: () => new ChatChunks(question, requests.length),
  })
})

/** The default for the largest number of tokens of a completion, as on OpenAI's servers. */
const completionTokens = 16

type CompletionPrompt = string | ReadonlyArray<number>

/** Returns the prompts of a completion: one text, one list of token ids, or several of either. */
const promptsOf = (prompt: CompletionBody["prompt"]): ReadonlyArray<CompletionPrompt> => {
  if (typeof prompt === "string") return [prompt]
  return isIds(prompt) ? [prompt] : prompt
}

const isIds = Schema.is(Schema.Array(Schema.Int))

/** Encodes the prompts that are texts. If the request has `echo`, also returns their texts. */
const encodedPrompts = Effect.fnUntraced(function* (state: ServerState, request: CompletionBody, model: ModelInfo) {
  const addSpecial = request.add_special_tokens ?? true
  const textOf = (prompt: CompletionPrompt): string =>
    typeof prompt === "string" ? prompt : state.chat.tokens.decode(prompt)
  return yield* Effect.forEach(promptsOf(request.prompt), (prompt) =>
    Effect.gen(function* () {
      const ids =
        typeof prompt === "string" ? yield* encodePrompt(state, prompt, { param: "prompt", model, addSpecial }) : prompt
      const echo = request.echo === true ? textOf(prompt) : ""
      yield* Effect.yieldNow
      return { ids, echo }
    }),
  )
})

const decodeCompletion = decoder(CompletionBody)
/** Answers `POST /v1/completions`. */
export const completions = Effect.fnUntraced(function* (state: ServerState) {
  const { texts } = state
  const request = yield* Effect.flatMap(readBody(state), decodeCompletion)
  const model = yield* modelOf(state, request.model)
  const logprobs = request.logprobs ?? null
  const echo = request.echo ?? false
  const promptLogprobs = yield* promptLogprobsOf(request)
  const format = yield* answerFormatOf(request)
  const prompts = yield* encodedPrompts(state, request, model)
  const maxTokens = request.max_tokens ?? null
  const ids = prompts.map(({ ids }) => ids)
  const requests = yield* requestsOf(ids, {
    body: request,
    model,
    keys: { prompt: "prompt", maxTokens: "max_tokens" },
    maxTokens,
    defaultTokens: completionTokens,
    ...format,
    topLogprobs: logprobs ?? 0,
    promptLogprobs: echo && logprobs !== null ? Math.max(logprobs, promptLogprobs ?? 0) : promptLogprobs,
  })
  const question: CompletionQuestion = {
    ...(yield* beginAnswer(state, "cmpl")),
    model: model.name,
    prompts,
    n: request.n ?? 1,
    echo,
    logprobs,
    promptLogprobs,
    tokenIds: request.return_token_ids ?? false,
    usage: request.stream_options?.include_usage ?? false,
    texts,
  }
  return yield* answered(state, requests, {
    isStreamed: request.stream === true,
    refused: formatRefusedAs(formatKey(request)),
    whole: (generated) => completionAnswer(question, generated),
    chunks: () => new CompletionChunks(question),
  })
})
