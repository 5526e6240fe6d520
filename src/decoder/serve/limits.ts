/** Refuses bodies of requests that would take long to decode or to answer, only by the lengths of their lists. */
import { isPlain, type Plain } from "../../base/config/plain.ts"
import { mostLogitBiases } from "../inference/Sampling.ts"
import { type ApiError, badRequest } from "./ApiError.ts"

interface RequestLimits {
  /** The largest number of tokens of a prompt and its answer. */
  readonly maxTokens: number
  /** The largest number of answers that the server generates at the same time. */
  readonly maxAnswers: number
}

/** The largest number of keys in a body. Even with all settings of other servers, a body has fewer than 60. */
const mostKeys = 256

/** The largest numbers of messages, of tools, of texts that end an answer, and of tokens that end it. */
const most = { messages: 10_000, tools: 1024, stop: 64, stop_token_ids: 1024 } as const
const mostOfStop = 1024

/** The largest number of items in the input of a response, and of inputs for embeddings. */
const mostInput = 10_000

/** The number of token ids that `POST /detokenize` accepts, if the model's own limit is lower. */
const mostDetokenized = 65_536

/** Refuses a request for more answers than the server can ever generate at the same time, because it would wait for ever. */
export const tooManyAnswers = (answers: number, maxAnswers: number, param: string | null): ApiError =>
  badRequest(
    `${param === null ? "" : `${param}: `}expected prompts and n for at most ${maxAnswers} answers in one request ` +
      `(--max-requests of the server), found ${answers}; send several requests`,
    param,
  )

const lengthProblem = (key: string, length: number, limit: number): ApiError =>
  badRequest(`${key}: expected at most ${limit} items, found ${length}`, key)

const idsProblem = (key: string, ids: ReadonlyArray<unknown>, maxTokens: number): ApiError | undefined =>
  ids.length <= maxTokens
    ? undefined
    : badRequest(`${key}: expected at most ${maxTokens} tokens, found ${ids.length}`, key, "context_length_exceeded")

const promptProblem = ({ prompt, n }: Plain, { maxTokens, maxAnswers }: RequestLimits): ApiError | undefined => {
  const choices = typeof n === "number" ? n : 1
  if (!Array.isArray(prompt) || typeof prompt[0] === "number") {
    if (choices > maxAnswers) return tooManyAnswers(choices, maxAnswers, "n")
    return Array.isArray(prompt) ? idsProblem("prompt", prompt, maxTokens) : undefined
  }
  const answers = prompt.length * choices
  if (answers > maxAnswers) return tooManyAnswers(answers, maxAnswers, "prompt")
  for (const [at, ids] of prompt.entries()) {
    const problem = Array.isArray(ids) ? idsProblem(`prompt[${at}]`, ids, maxTokens) : undefined
    if (problem !== undefined) return problem
  }
  return undefined
}

/** Checks the key `input`, which is a list of items, of texts, of lists of token ids, or of token ids. */
const inputProblem = ({ input }: Plain, { maxTokens }: RequestLimits): ApiError | undefined => {
  if (!Array.isArray(input)) return undefined
  if (typeof input[0] === "number") return idsProblem("input", input, maxTokens)
  if (input.length > mostInput) return lengthProblem("input", input.length, mostInput)
  for (const [at, ids] of input.entries()) {
    const problem = Array.isArray(ids) ? idsProblem(`input[${at}]`, ids, maxTokens) : undefined
    if (problem !== undefined) return problem
  }
  return undefined
}

/** Returns why a body is refused before it is decoded; undefined if it may be decoded. */
export const oversize = (body: unknown, limits: RequestLimits): ApiError | undefined => {
  if (!isPlain(body)) return undefined
  const keys = Object.keys(body).length
  if (keys > mostKeys) return badRequest(`expected a body with at most ${mostKeys} keys, found ${keys}`)
  const { tokens, token_ids: ids, sampling_params: settings } = body
  const ownKeys = isPlain(settings) ? Object.keys(settings).length : 0
  if (ownKeys > mostKeys) {
    const key = "sampling_params"
    return badRequest(`${key}: expected at most ${mostKeys} keys, found ${ownKeys}`, key)
  }
  const tokensProblem = Array.isArray(tokens)
    ? idsProblem("tokens", tokens, Math.max(limits.maxTokens, mostDetokenized))
    : undefined
  return (
    settingsProblem(body, "") ??
    (isPlain(settings) ? settingsProblem(settings, "sampling_params.") : undefined) ??
    tokensProblem ??
    (Array.isArray(ids) ? idsProblem("token_ids", ids, limits.maxTokens) : undefined) ??
    promptProblem(body, limits) ??
    inputProblem(body, limits)
  )
}

/** Checks the lengths of settings, whose names in messages begin with `prefix`. */
const settingsProblem = (settings: Plain, prefix: string): ApiError | undefined => {
  for (const [key, limit] of Object.entries(most)) {
    const list = settings[key]
    if (Array.isArray(list) && list.length > limit) return lengthProblem(`${prefix}${key}`, list.length, limit)
  }
  const biases = isPlain(settings.logit_bias) ? Object.keys(settings.logit_bias).length : 0
  if (biases > mostLogitBiases) return lengthProblem(`${prefix}logit_bias`, biases, mostLogitBiases)
  const stop = Array.isArray(settings.stop) ? settings.stop : [settings.stop]
  if (stop.some((text) => typeof text === "string" && text.length > mostOfStop)) {
    const key = `${prefix}stop`
    return badRequest(`${key}: expected texts of at most ${mostOfStop} characters, found a longer one`, key)
  }
  return undefined
}
