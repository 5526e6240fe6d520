/** Asks a run's model on a server for answers, in the form of an engine's. */
import { Deferred, Effect } from "effect"
import type { EngineService, Generated } from "../../../decoder/inference/Engine.ts"
import { engineError, type EngineError } from "../../../decoder/inference/EngineError.ts"
import { makeStopSearch } from "../../../decoder/inference/stopStrings.ts"
import type { Language } from "../../baseModel.ts"
import type { TrainerError } from "../../TrainerError.ts"
import { isOutage, type TinkerError } from "../client/TinkerError.ts"
import { fromClient, type ServerRuns } from "./ServerRuns.ts"

interface ServerPolicyOptions {
  readonly serverRuns: Pick<ServerRuns, "find">
  readonly language: Pick<Language, "tokenizer" | "eosIds">
  readonly vocabSize: number
  /** The most tokens of a prompt and its answer together. */
  readonly maxLength: number
  /** Fails when no request to the server can succeed. The request that noticed it never ends, so its run is not evicted. */
  readonly lost: Deferred.Deferred<never, TrainerError>
}

type Request = Parameters<EngineService["generate"]>[0]

/** Returns the text of tokens before the end token or the first stop string. */
const textOf = (
  { tokenizer, eosIds }: ServerPolicyOptions["language"],
  tokens: ReadonlyArray<number>,
  { stop = [], stopTokenIds = [] }: NonNullable<Request["sampling"]>,
) => {
  const last = tokens.at(-1)
  const isEnded = last !== undefined && (eosIds.includes(last) || stopTokenIds.includes(last))
  const decoder = tokenizer.decoder()
  const search = makeStopSearch(stop)
  let text = ""
  for (const id of isEnded ? tokens.slice(0, -1) : tokens) text += search.push(decoder.push(id))
  text += search.push(decoder.end())
  const found = search.found()
  return { text: found === null ? text + search.end() : text, stopReason: isEnded ? last : found }
}

/** Makes the function that generates answers of the runs' newest published weights, and counts the tokens. */
export const makeServerPolicy = (options: ServerPolicyOptions) => {
  const { serverRuns, language, vocabSize, maxLength, lost } = options
  let tokens = 0

  const failure = (model: string, error: TinkerError): Effect.Effect<never, EngineError> =>
    isOutage(error) || error.reason === "failed"
      ? Effect.andThen(Deferred.fail(lost, fromClient(model, error)), Effect.never)
      : Effect.fail(engineError(model, "invalidRequest", error.message))

  const generate = Effect.fnUntraced(function* ({ model, promptIds, sampling = {} }: Request) {
    const entry = serverRuns.find(model)
    if (entry?.sampler === undefined)
      return yield* engineError(model, "unknownModel", "it has no weights on the server")
    const { step, sampler } = entry
    const room = maxLength - promptIds.length
    if (room < 1)
      return yield* engineError(
        model,
        "promptTooLong",
        `the prompt has ${promptIds.length} tokens; expected less than ${maxLength}, the most of a prompt with its answer`,
      )
    const { temperature = 1, topP = 1, topK = 0, maxTokens = null, stop = [], stopTokenIds = [], seed } = sampling
    const most = Math.min(maxTokens ?? room, room)
    const asked = {
      promptIds,
      temperature,
      topP,
      seed: seed ?? null,
      maxTokens: most,
      stop: [...stop, ...stopTokenIds],
      ...(topK === 0 ? {} : { topK }),
    }
    const [sequence] = yield* Effect.catch(sampler.sample(asked), (error) => failure(model, error))
    const foreign = sequence.tokens.find((id) => id >= vocabSize)
    if (foreign !== undefined)
      return yield* engineError(
        model,
        "tokenOutOfRange",
        `the server sampled the token ${foreign}; expected at most ${vocabSize - 1}: does it have the same model?`,
      )
    tokens += sequence.tokens.length
    const generated: Generated = {
      tokens: sequence.tokens.map((id, at) => ({ id, logprob: sequence.logprobs[at], top: [] })),
      ...textOf(language, sequence.tokens, sampling),
      finishReason: sequence.stop_reason,
      weights: { model, step, baseStep: 0 },
    }
    return generated
  })
  return { generate, generatedTokens: Effect.sync(() => tokens) }
}
