/**
 * Answers vLLM's `POST /inference/v1/generate`: token ids in and token ids out, whole or streamed, so that a client can render
 * prompts and read answers itself.
 */
import { Effect } from "effect"
import type { EngineError, Generated, GeneratedToken, TokenCandidate, WeightsUsed } from "../../inference/Engine.ts"
import { snakeCase } from "../../../base/config/plain.ts"
import { type ApiError, badRequest } from "../ApiError.ts"
import { answered } from "./answered.ts"
import { usageOf } from "./chatAnswer.ts"
import { type ChoiceEvent, requestsOf } from "./choices.ts"
import { expertsBody } from "../expertsBody.ts"
import { decoder, GenerateBody, SamplingParams } from "../requests.ts"
import { beginAnswer, modelOf, readBody, type ServerState } from "../ServerState.ts"
import { leastLogprob, type TokenTexts } from "./tokenTexts.ts"
import { ending, fingerprint } from "../weightsUsed.ts"

const decodeBody = decoder(GenerateBody)
const decodeSettings = decoder(SamplingParams, "sampling_params")
const settingKeys = { prompt: "token_ids", maxTokens: "sampling_params.max_tokens", bias: "sampling_params.logit_bias" }

/** The parts of a request on which its answer depends. */
interface GenerateQuestion {
  readonly id: string
  readonly created: number
  readonly model: string
  readonly promptTokens: number
  readonly logprobs: number | null
  readonly promptLogprobs: number | null
  readonly usage: boolean
  readonly texts: TokenTexts
}

/** Answers `POST /inference/v1/generate`. */
export const generateTokens = Effect.fnUntraced(function* (state: ServerState) {
  const { texts } = state
  const body = yield* Effect.flatMap(readBody(state), decodeBody)
  const settings = yield* decodeSettings(body.sampling_params)
  const model = yield* modelOf(state, body.model)
  const { logprobs = null, prompt_logprobs: promptLogprobs = null } = settings
  if (promptLogprobs !== null && body.stream === true) {
    const param = "sampling_params.prompt_logprobs"
    return yield* badRequest(`${param}: expected stream to be false, since they come with a whole answer`, param)
  }
  const requests = yield* requestsOf([body.token_ids], {
    body: settings,
    model,
    keys: settingKeys,
    maxTokens: settings.max_tokens ?? null,
    topLogprobs: logprobs ?? 0,
    promptLogprobs,
  })
  const begun = yield* beginAnswer(state, "generate")
  const question: GenerateQuestion = {
    id: body.request_id ?? begun.id,
    created: begun.created,
    model: model.name,
    promptTokens: body.token_ids.length,
    logprobs,
    promptLogprobs,
    usage: body.stream_options?.include_usage ?? false,
    texts,
  }
  return yield* answered(state, requests, {
    isStreamed: body.stream === true,
    refused,
    whole: (generated) => wholeAnswer(question, generated),
    chunks: () => new TokenChunks(question),
  })
})

/** Adds the key of the settings to an error of the engine. */
const refused = (error: EngineError): EngineError | ApiError =>
  error.part === undefined ? error : badRequest(error.message, `sampling_params.${snakeCase(error.part)}`)

/** Encodes the ids and log-probabilities of tokens. A token's text is `token_id:N`, because it is not decoded. */
const tokensBody = ({ logprobs }: GenerateQuestion, tokens: ReadonlyArray<GeneratedToken>) => {
  const entry = ({ id, logprob }: TokenCandidate) => ({
    token: `token_id:${id}`,
    logprob: Math.max(logprob, leastLogprob),
  })
  const content = tokens.map((token) => ({ ...entry(token), bytes: null, top_logprobs: token.top.map(entry) }))
  return { token_ids: tokens.map(({ id }) => id), logprobs: logprobs === null ? null : { content } }
}

const frame = ({ id, created, model }: GenerateQuestion, weights: Iterable<WeightsUsed>) => ({
  id,
  request_id: id,
  created,
  model,
  system_fingerprint: fingerprint(weights),
})

const wholeAnswer = (question: GenerateQuestion, generated: ReadonlyArray<Generated>) => {
  const prompt = generated[0]?.promptLogprobs
  return {
    ...frame(
      question,
      generated.map(({ weights }) => weights),
    ),
    choices: generated.map((one, index) => ({
      index,
      ...tokensBody(question, one.tokens),
      ...expertsBody(one),
      ...ending(one),
    })),
    usage: usageOf(question.promptTokens, generated),
    prompt_logprobs:
      question.promptLogprobs === null || prompt === undefined
        ? null
        : question.texts.prompt(prompt, question.promptLogprobs),
  }
}

/** Encodes a stream of events as chunks. */
class TokenChunks {
  private readonly question: GenerateQuestion
  private readonly finished: Array<Generated> = []
  private readonly weights = new Map<number, WeightsUsed>()

  constructor(question: GenerateQuestion) {
    this.question = question
  }

  push({ index, event }: ChoiceEvent): ReadonlyArray<object> {
    const { question, weights, finished } = this
    weights.set(index, event._tag === "Token" ? event.weights : event.generated.weights)
    if (event._tag === "Finished") finished.push(event.generated)
    const choice =
      event._tag === "Token"
        ? { index, ...tokensBody(question, [event.token]), finish_reason: null }
        : { index, token_ids: [], logprobs: null, ...expertsBody(event.generated), ...ending(event.generated) }
    return [{ ...frame(question, weights.values()), choices: [choice], ...(question.usage ? { usage: null } : {}) }]
  }

  end(): ReadonlyArray<object> {
    const { question, weights, finished } = this
    if (!question.usage) return []
    return [{ ...frame(question, weights.values()), choices: [], usage: usageOf(question.promptTokens, finished) }]
  }
}
