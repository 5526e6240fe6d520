/** Samples from models, and computes the log-probabilities of prompts. */
import { Effect } from "effect"
import { attempt } from "../../../base/config/attempt.ts"
import { stream } from "../../../base/rng/Rng.ts"
import { ApiError, badRequest, fromEngine } from "../../../decoder/serve/ApiError.ts"
import { EngineError } from "../../../decoder/inference/EngineError.ts"
import { failedBy, outcomeOfRefusal } from "../answers.ts"
import { placeOf } from "../models/checkpoints.ts"
import { checkTokens, DatumProblem } from "../training/Datum.ts"
import type { LoadedSampler } from "./Samplers.ts"
import type { TinkerState } from "../TinkerState.ts"
import type { Outcome, SampleOutput } from "../wire/outcomes.ts"
import { type Sample, tokensOf } from "../wire/requests.ts"
import { placeData } from "../training/windows.ts"

/** A request to sample, whose weights are known. */
interface SampleRequest {
  readonly body: typeof Sample.Type
  /** The address of the weights; null for the base model. */
  readonly path: string | null
  /** The client whose turn the prompt's log-probabilities take. */
  readonly client: string
  /** The path of the random stream that gives the seed, if the request has none. */
  readonly seedPath: string
}

const mostTopK = 20

/** Returns the tokens of a prompt. */
const promptOf = ({ base, maxLength }: TinkerState, { prompt }: typeof Sample.Type) =>
  Effect.suspend(() => {
    const tokens = tokensOf(prompt)
    if ("unsupported" in tokens)
      return Effect.fail(
        badRequest(`prompt: expected text, found ${tokens.unsupported}, which this server lacks`, "prompt"),
      )
    if (tokens.length === 0 || tokens.length > maxLength)
      return Effect.fail(badRequest(`prompt: expected 1 to ${maxLength} tokens, found ${tokens.length}`, "prompt"))
    return Effect.mapError(
      attempt(() => checkTokens(tokens, "prompt", base.decoder), DatumProblem),
      ({ message, key }) => badRequest(message, key),
    )
  })

/** Converts the settings of a request to those of the engine. */
const samplingOf = ({ sampling_params: params }: typeof Sample.Type) => {
  const { stop } = params
  const stops = typeof stop === "string" ? [stop] : (stop ?? [])
  return {
    temperature: params.temperature ?? 1,
    topP: params.top_p ?? 1,
    topK: Math.max(0, params.top_k ?? -1),
    maxTokens: params.max_tokens ?? null,
    stop: stops.flatMap((one) => (typeof one === "string" ? [one] : [])),
    stopTokenIds: stops.flatMap((one) => (typeof one === "number" ? [one] : [])),
  }
}

/** Returns the seed of each sample of a request. */
const seedsOf = ({ seed }: TinkerState, { body, seedPath }: SampleRequest): ReadonlyArray<number> => {
  const given = body.sampling_params.seed ?? null
  const random = given === null ? stream(seed, "sample", seedPath) : stream(given, "sample")
  // The first sample has the seed of the request itself, as an answer by OpenAI's protocol has.
  return Array.from({ length: body.num_samples ?? 1 }, (_, index) =>
    given !== null && index === 0 ? given : random.uint32At(index),
  )
}

/** Computes the log-probability of each token of a prompt except the first. */
const promptLogProbabilities = Effect.fnUntraced(function* (
  { programs, turns }: TinkerState,
  tokens: Int32Array,
  { adapter }: LoadedSampler,
  client: string,
) {
  if (tokens.length === 1) return [null]
  const data = [{ tokens: tokens.subarray(0, -1), targets: tokens.subarray(1) }]
  const [batch] = placeData(data, programs.sizes)
  const [{ start }] = batch.placed
  const work = Effect.map(programs.forward(batch, data, adapter), (all) =>
    Array.from(all.subarray(start, start + tokens.length - 1)),
  )
  return [null, ...(yield* turns.inTurn(client, work))]
})

/** Returns the indices of the k highest numbers, the highest first. Sorting a large vocabulary at each place takes minutes. */
const highestOf = (numbers: Float32Array, k: number): ReadonlyArray<number> => {
  const found: Array<number> = []
  for (let id = 0; id < numbers.length; id++) {
    if (found.length === k && !(numbers[id] > numbers[found[k - 1]])) continue
    let at = Math.min(found.length, k - 1)
    for (; at > 0 && numbers[id] > numbers[found[at - 1]]; at--) found[at] = found[at - 1]
    found[at] = id
  }
  return found
}

/** Computes the likeliest tokens at each place of a prompt except the first. Of equal ones, the lower id comes first. */
const likeliest = Effect.fnUntraced(function* (
  { programs, turns, base }: TinkerState,
  tokens: Int32Array,
  { adapter }: LoadedSampler,
  { client, k }: { readonly client: string; readonly k: number },
) {
  const { vocabSize } = base.decoder
  const work = Effect.map(programs.distribution(tokens, adapter), (all) =>
    Array.from({ length: tokens.length - 1 }, (_, place) => {
      const row = all.subarray(place * vocabSize, (place + 1) * vocabSize)
      return highestOf(row, k).map((id): readonly [number, number] => [id, row[id]])
    }),
  )
  return [null, ...(yield* turns.inTurn(client, work))]
})

const sampleWith = Effect.fnUntraced(function* (state: TinkerState, request: SampleRequest, sampler: LoadedSampler) {
  const { body, client } = request
  const promptIds = yield* promptOf(state, body)
  const k = body.topk_prompt_logprobs ?? 0
  if (k > mostTopK)
    return yield* badRequest(`topk_prompt_logprobs: expected 0 to ${mostTopK}, found ${k}`, "topk_prompt_logprobs")
  const wantsPrompt = body.prompt_logprobs === true
  const prompt_logprobs = wantsPrompt ? yield* promptLogProbabilities(state, promptIds, sampler, client) : null
  const topk_prompt_logprobs = k > 0 ? yield* likeliest(state, promptIds, sampler, { client, k }) : null
  const sampling = samplingOf(body)
  // A prompt that fills the model's length has no room for an answer, but its log-probabilities are known.
  const seeds = promptIds.length >= state.maxLength && wantsPrompt ? [] : seedsOf(state, request)
  const all = yield* Effect.forEach(
    seeds,
    (seed) => state.samplers.engine.generate({ model: sampler.name, promptIds, sampling: { ...sampling, seed } }),
    { concurrency: "unbounded" },
  )
  const value: SampleOutput = {
    type: "sample",
    sequences: all.map(({ tokens, finishReason }) => ({
      stop_reason: finishReason,
      tokens: tokens.map(({ id }) => id),
      logprobs: tokens.map(({ logprob }) => logprob),
    })),
    prompt_logprobs,
    topk_prompt_logprobs,
  }
  const outcome: Outcome = { _tag: "Sample", value }
  return outcome
})

/** Performs a request to sample. */
export const performSample = (state: TinkerState, request: SampleRequest): Effect.Effect<Outcome> => {
  const { samplers } = state
  const work =
    request.path === null
      ? sampleWith(state, request, samplers.base)
      : Effect.flatMap(placeOf(request.path, "model_path"), (place) =>
          samplers.using(place, (sampler) => sampleWith(state, request, sampler)),
        )
  return work.pipe(
    Effect.catch((error) => {
      if (error instanceof ApiError) return Effect.succeed(outcomeOfRefusal(error))
      if (error instanceof EngineError && fromEngine(error).status < 500)
        return Effect.succeed(outcomeOfRefusal(fromEngine(error)))
      // Only the client that trained these weights can change them, so it learns what is wrong.
      if (error instanceof EngineError && error.reason === "notFinite" && request.path !== null)
        return Effect.succeed(failedBy("user", error.message))
      const shown = failedBy("server", "the server could not sample; its log says why")
      return Effect.as(Effect.logError(`sampling: ${error.message}`), shown)
    }),
    Effect.catchDefect((defect) =>
      Effect.as(Effect.logError("sampling failed", defect), failedBy("server", "the server failed to sample")),
    ),
  )
}
