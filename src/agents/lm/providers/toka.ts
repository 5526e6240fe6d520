/**
 * Calls a Tokasaurus server by its own small protocol, which older experiments use (`protocol: toka`): a system prompt and a
 * prompt are posted to `/generate`, and the answer is a text. It has neither tools nor streams. A call makes one attempt; the
 * middleware `retrying` repeats it.
 *
 * @example
 * ```ts
 * const lm = yield* Toka.make({ model: "llama", baseUrl: "http://127.0.0.1:8080" })
 * // POST http://127.0.0.1:8080/generate
 * // { "model": "llama", "system": "Be brief.", "prompt": "Hello", "temperature": 0.2, "max_tokens": 2048 }
 * ```
 */
import { Effect, Schema } from "effect"
import type * as HttpClient from "effect/http/HttpClient"
import { asPrompts, type Completion, type LmRequest } from "../Chat.ts"
import { type LmError, lmError } from "../LmError.ts"
import { answered, read, requestText } from "./http.ts"
import type { Provider } from "./Provider.ts"
import { type ServerProtocol, serverOf, type LmServerOptions } from "./Server.ts"

export const tokaUrl = "http://127.0.0.1:8080/v1"

/** The protocol of Tokasaurus. */
export const protocol: ServerProtocol = { at: tokaUrl, variableOf: () => null, keyHeader: "authorization", headers: {} }

/** A field that servers may leave out or set to null. */
const maybe = <S extends Schema.Top>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

/** An answer. Servers use different names for the text and for the reason why it ended. */
const Answer = Schema.Struct({
  text: maybe(Schema.String),
  output: maybe(Schema.String),
  finish_reason: maybe(Schema.String),
  reason: maybe(Schema.String),
  usage: maybe(Schema.Struct({ prompt_tokens: maybe(Schema.Int), completion_tokens: maybe(Schema.Int) })),
})

/**
 * Makes the provider that calls a server; this sends no request yet. `options.model` is used for requests that name no model.
 */
export const make = Effect.fnUntraced(function* (
  options: LmServerOptions,
): Effect.fn.Return<Provider, LmError, HttpClient.HttpClient> {
  const server = yield* serverOf(options, protocol)
  const readAnswer = read(server, Answer)
  // Other protocols begin below `/v1`, which is removed; any other path of the address is kept.
  const path = `${server.baseUrl.pathname.replace(/\/v1$/, "")}/generate`
  return {
    model: server.model,
    complete: Effect.fnUntraced(function* (request) {
      if (request.tools.length > 0) {
        return yield* lmError(server.model, "rejected", "protocol: toka has no tools; use protocol: openai")
      }
      const answer = yield* Effect.flatMap(requestText(server, path, bodyOf(request)), readAnswer)
      const content = answer.text ?? answer.output ?? ""
      const finish = answer.finish_reason ?? answer.reason ?? null
      const outputTokens = answer.usage?.completion_tokens ?? 0
      const isCut = finish === "length" || (request.maxOutputTokens !== null && outputTokens >= request.maxOutputTokens)
      const completion: Completion = {
        content,
        toolCalls: [],
        finishReason: isCut ? "length" : finish === "stop" ? "stop" : "unknown",
        usage: { inputTokens: answer.usage?.prompt_tokens ?? 0, outputTokens, reasoningTokens: 0 },
        tokens: null,
        model: request.model,
        attempts: 1,
      }
      return yield* answered(server, completion, { hasContent: content !== "", refusal: "", finish })
    }),
  }
})

/** Encodes a request; settings that are null are left out. */
const bodyOf = ({ model, messages, temperature, maxOutputTokens, stop }: LmRequest) => ({
  model,
  ...asPrompts(messages),
  ...(temperature === null ? {} : { temperature }),
  ...(maxOutputTokens === null ? {} : { max_tokens: maxOutputTokens }),
  ...(stop.length === 0 ? {} : { stop }),
})
