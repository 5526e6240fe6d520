/** Generates the choices of one request (`n` answers for each of its prompts), whole or as one stream of events. */
import { Effect, Pull, type Scope, Stream } from "effect"
import {
  type EngineError,
  type EngineService,
  type Generated,
  type GenerateEvent,
  type GenerateRequest,
  type ModelInfo,
  type RequestedSampling,
} from "../../inference/Engine.ts"
import { stream as randomStream } from "../../../base/rng/Rng.ts"
import { badRequest } from "../ApiError.ts"
import type { SamplingBody } from "../requests.ts"

/** Returns the seed of a choice. The first choice has the request's own seed, so it does not depend on `n`. */
const seedOf = (seed: number | null, choice: number): number | null =>
  seed === null || choice === 0 ? seed : randomStream(seed, "choice", choice).integer(2 ** 31)

/** The settings of a request that apply to all choices. */
interface RequestSettings {
  readonly body: SamplingBody
  readonly model: ModelInfo
  /** The names of the prompt, of `maxTokens` and of the biases (by default `logit_bias`) in the request, for messages. */
  readonly keys: { readonly prompt: string; readonly maxTokens: string; readonly bias?: string }
  /** The largest number of tokens of each answer, as the client set it; null uses `defaultTokens`. */
  readonly maxTokens: number | null
  /** By default all the room of the model. */
  readonly defaultTokens?: number
  readonly topLogprobs: number
  /** The number of likeliest tokens for each token of the prompt; null if prompts get no log-probabilities. */
  readonly promptLogprobs: number | null
  /** The JSON Schema of the answers; null if they can be any text. */
  readonly jsonSchema?: RequestedSampling["jsonSchema"]
  /** Another format of the answers; null if they have none. */
  readonly textFormat?: RequestedSampling["textFormat"]
}

/** Converts the settings of a body that have the same meaning in the engine. */
const samplingOf = (body: RequestSettings["body"]): RequestedSampling => ({
  ...(typeof body.temperature === "number" ? { temperature: body.temperature } : {}),
  ...(typeof body.top_p === "number" ? { topP: body.top_p } : {}),
  ...(typeof body.top_k === "number" ? { topK: Math.max(0, body.top_k) } : {}),
  ...(typeof body.min_p === "number" ? { minP: body.min_p } : {}),
  ...(body.logit_bias
    ? { logitBias: Object.entries(body.logit_bias).map(([id, bias]) => [Number(id), bias] as const) }
    : {}),
  ...(typeof body.presence_penalty === "number" ? { presencePenalty: body.presence_penalty } : {}),
  ...(typeof body.frequency_penalty === "number" ? { frequencyPenalty: body.frequency_penalty } : {}),
  ...(typeof body.repetition_penalty === "number" ? { repetitionPenalty: body.repetition_penalty } : {}),
  stop: typeof body.stop === "string" ? [body.stop] : (body.stop ?? []),
  stopTokenIds: body.stop_token_ids ?? [],
  ignoreEos: body.ignore_eos ?? false,
})

/** Makes the engine's request for each choice: the `n` choices of the first prompt, then those of the next. */
export const requestsOf = Effect.fnUntraced(function* (
  prompts: ReadonlyArray<ReadonlyArray<number>>,
  {
    body,
    model,
    keys,
    maxTokens,
    defaultTokens = Infinity,
    topLogprobs,
    promptLogprobs,
    jsonSchema = null,
    textFormat = null,
  }: RequestSettings,
) {
  const all: Array<GenerateRequest> = []
  if (maxTokens === 0 && promptLogprobs === null) {
    const problem = `${keys.maxTokens}: expected 1 or more, or log-probabilities of the prompt (prompt_logprobs); found 0`
    return yield* badRequest(problem, keys.maxTokens)
  }
  const wrong = Object.keys(body.logit_bias ?? {}).find((key) => !/^\d{1,15}$/.test(key))
  if (wrong !== undefined) {
    const param = `${keys.bias ?? "logit_bias"}.${wrong.slice(0, 64)}`
    return yield* badRequest(`${param}: expected a token id as the key, such as "42"`, param)
  }
  const settings = {
    ...samplingOf(body),
    topLogprobs,
    ...(promptLogprobs === null ? {} : { promptLogprobs }),
    ...(jsonSchema === null ? {} : { jsonSchema }),
    ...(textFormat === null ? {} : { textFormat }),
  }
  for (const promptIds of prompts) {
    const room = model.maxLength - promptIds.length
    if (room < (maxTokens === 0 ? 0 : 1)) {
      const problem = `the prompt has ${promptIds.length} tokens, but ${model.name} takes at most ${model.maxLength} tokens of prompt and answer together`
      return yield* badRequest(problem, keys.prompt, "context_length_exceeded")
    }
    if (maxTokens !== null && maxTokens > room && body.clip_max_tokens !== true) {
      const problem = `${keys.maxTokens}: expected at most ${room}, since ${model.name} takes at most ${model.maxLength} tokens of prompt and answer together and the prompt has ${promptIds.length}; found ${maxTokens}`
      return yield* badRequest(problem, keys.maxTokens, "context_length_exceeded")
    }
    const sampling: RequestedSampling = {
      ...settings,
      maxTokens: Math.min(room, maxTokens ?? defaultTokens),
    }
    for (let choice = 0; choice < (body.n ?? 1); choice++) {
      const seed = seedOf(body.seed ?? null, choice)
      all.push({ model: model.name, promptIds, sampling: { ...sampling, seed } })
    }
  }
  return all
})

/** Generates all choices at the same time, and waits for them. */
export const generateAll = (
  engine: EngineService,
  requests: ReadonlyArray<GenerateRequest>,
): Effect.Effect<ReadonlyArray<Generated>, EngineError> =>
  Effect.forEach(requests, engine.generate, { concurrency: "unbounded" })

export interface ChoiceEvent {
  readonly index: number
  readonly event: GenerateEvent
}

/**
 * Generates all choices at the same time, and streams their events. The Effect returns when the first event arrives, so that
 * a request which the engine refuses fails before its response begins. The generation stops when the scope closes.
 */
export const streamAll = Effect.fnUntraced(function* (
  engine: EngineService,
  requests: ReadonlyArray<GenerateRequest>,
): Effect.fn.Return<Stream.Stream<ChoiceEvent, EngineError>, EngineError, Scope.Scope> {
  const merged = Stream.mergeAll(
    requests.map((request, index) => Stream.map(engine.stream(request), (event): ChoiceEvent => ({ index, event }))),
    { concurrency: "unbounded" },
  )
  const pull = yield* Stream.toPull(merged)
  const first = yield* Pull.catchDone(pull, () => Effect.succeed<ReadonlyArray<ChoiceEvent>>([]))
  return Stream.concat(Stream.fromIterable(first), Stream.fromPull(Effect.succeed(pull)))
})
