/**
 * Asks a server with OpenAI's protocol for the log-probabilities of the tokens of a prompt, by the field `prompt_logprobs` of
 * completions, which vLLM and servers like it have. Requests are repeated after temporary failures.
 */
import { Effect, Schema } from "effect"
import type * as HttpClient from "effect/http/HttpClient"
import { stream } from "../../../base/rng/Rng.ts"
import type { LmError } from "../LmError.ts"
import { persistently, type Retries } from "../middleware/retrying.ts"
import { failure, read, requestText } from "./http.ts"
import { protocol } from "./openAi.ts"
import { serverOf, type LmServerOptions } from "./Server.ts"

/** A token of a prompt, as the server sees it. */
interface PromptToken {
  /** The log-probability of the token after those before it. */
  readonly logprob: number
  /** The text of the token; null if the server does not send it. */
  readonly text: string | null
}

interface PromptLogprobs {
  /** Returns the tokens of a prompt. The first one is null, because no token precedes it. */
  readonly score: (ids: ReadonlyArray<number>) => Effect.Effect<ReadonlyArray<PromptToken | null>, LmError>
}

const Entry = Schema.Struct({
  logprob: Schema.NullOr(Schema.Number),
  decoded_token: Schema.optionalKey(Schema.NullOr(Schema.String)),
})
const Answer = Schema.Struct({
  choices: Schema.NonEmptyArray(
    Schema.Struct({
      prompt_logprobs: Schema.optionalKey(
        Schema.NullOr(Schema.Array(Schema.NullOr(Schema.Record(Schema.String, Entry)))),
      ),
    }),
  ),
})

/** Makes the client of a server. */
export const make = Effect.fnUntraced(function* (
  options: LmServerOptions & Partial<Retries>,
): Effect.fn.Return<PromptLogprobs, LmError, HttpClient.HttpClient> {
  const { model, maxRetries = 5, startingDelay = 1, backoffFactor = 2, maxDelay = 10, jitter = 0.25 } = options
  const retries: Retries = { maxRetries, startingDelay, backoffFactor, maxDelay, jitter }
  const server = yield* serverOf(options, protocol)
  const readAnswer = read(server, Answer)
  const refuse = (problem: string) => Effect.fail(failure(server, "rejected", `prompt_logprobs: ${problem}`))

  const once = Effect.fnUntraced(function* (ids: ReadonlyArray<number>) {
    // A completion has at least one token; it is not used.
    const body = { model, prompt: ids, max_tokens: 1, temperature: 1, prompt_logprobs: 1 }
    const { choices } = yield* Effect.flatMap(requestText(server, "completions", body), readAnswer)
    const entries = choices[0].prompt_logprobs ?? null
    if (entries === null)
      return yield* refuse("the server sent none; expected a server that computes them, such as vLLM")
    if (entries.length !== ids.length)
      return yield* refuse(`expected ${ids.length} entries, one for each token of the prompt, found ${entries.length}`)
    const tokens: Array<PromptToken | null> = [null]
    for (let at = 1; at < ids.length; at++) {
      const entry = entries[at]?.[`${ids[at]}`]
      if (entry === undefined || entry.logprob === null || !Number.isFinite(entry.logprob))
        return yield* refuse(
          `token ${at} of the prompt, with the id ${ids[at]}: expected a finite log-probability, found ${entry?.logprob ?? "none"}`,
        )
      tokens.push({ logprob: entry.logprob, text: entry.decoded_token ?? null })
    }
    return tokens
  })

  return {
    score: (ids) =>
      Effect.map(
        persistently(retries, model, once(ids), (retry) =>
          Effect.sync(() => stream(0, "retry", "prompt_logprobs", ids.join()).uniformAt(retry)),
        ),
        ([tokens]) => tokens,
      ),
  }
})
