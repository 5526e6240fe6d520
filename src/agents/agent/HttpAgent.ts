/**
 * Makes an agent from a server (`http` in configs). For each turn, it gets the task as JSON by POST, and answers with a text,
 * or with JSON that has a `text`.
 *
 * @example
 * ```yaml
 * agent: { type: http, url: "http://127.0.0.1:8080/answer", timeout_s: 120 }
 * ```
 */
import { Effect, Option, Redacted, Schema } from "effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import { ConfigError, placeOf } from "../../base/config/Config.ts"
import { positiveBelow, withDefault } from "../../base/config/fields.ts"
import { utf8 } from "../../base/text/utf8.ts"
import { variable } from "../../base/config/variables.ts"
import { permit } from "../../base/trust/Trust.ts"
import { exchange, type ExchangeOptions, type Site, withoutName } from "../lm/exchange.ts"
import { Address, shownKey } from "../../base/config/secretFields.ts"
import { traceparent } from "../lm/spans.ts"
import { AgentError } from "./AgentError.ts"
import { fields, outsideKind } from "./outside/outsideKind.ts"
import { readAnswer, sentTask } from "./outside/sentTask.ts"

const type = "http"

const HttpAddress = Address.check(
  Schema.makeFilter((url) => /^https?:\/\//.test(url) && URL.canParse(url), {
    expected: "an address with http or https",
  }),
)

/** The Schema of the config. */
export const config = Schema.Struct({
  ...fields(type),
  /** The address to which tasks are sent. */
  url: HttpAddress,
  /** The name of the environment variable with the bearer token for the address; null sends none. */
  tokenVariable: withDefault(Schema.NullOr(Schema.String), null),
  /** The largest size of an answer. */
  maxAnswerMb: withDefault(positiveBelow("megabytes"), 16),
})

const failed = (problem: string) => new AgentError({ agent: type, message: `${type}: ${problem}` })

/** Returns the values of a query that may be keys; no message of the server may show them. */
const keysIn = (query: URLSearchParams): ReadonlyArray<string> =>
  [...query.values()].filter(({ length }) => length >= 8)

/** Says why nothing can be sent to an address; undefined if it can. */
const problemOf = (url: string): string | undefined => {
  const { username, password } = new URL(url)
  if (username !== "" || password !== "")
    return "expected an address without user name and password; token_variable sends a token"
  return url.includes(shownKey)
    ? `a saved config has ${shownKey} instead of a key; set agent.url to the whole address`
    : undefined
}

const isToken = (text: string): boolean => /^[\x21-\x7e]+$/.test(text)

/** Returns the server of an address, with its token. */
const siteOf = Effect.fnUntraced(function* (url: string, tokenVariable: string | null) {
  const { origin, searchParams } = new URL(url)
  const found = yield* Effect.serviceOption(HttpClient.HttpClient)
  const client = Option.isSome(found)
    ? found.value
    : yield* Effect.provide(HttpClient.HttpClient, FetchHttpClient.layer)
  const token = tokenVariable === null ? null : yield* variable(tokenVariable)
  return {
    name: type,
    client,
    origin,
    authorization: token === null ? null : Redacted.make(`Bearer ${token}`),
    secrets: [...(token === null ? [] : [token]), ...keysIn(searchParams)].map((secret) => Redacted.make(secret)),
    hint: "token_variable names the variable with the token",
  } satisfies Site
})

export const kind = outsideKind({
  type,
  schema: config,
  permit: Effect.fnUntraced(function* ({ url, tokenVariable }, _texts, from) {
    // Check this before anything is played: otherwise, all episodes would fail.
    const problem = problemOf(url)
    if (problem !== undefined) return yield* ConfigError.at(from, "url", problem)
    // Also on this computer: the agent gets texts, and with `lm_config` a key for calls of the model.
    const place = placeOf(from, "url")
    yield* Effect.mapError(permit({ _tag: "Sending", place, address: url, variable: tokenVariable }), ({ message }) =>
      ConfigError.at(from, "url", message),
    )
    if (tokenVariable !== null && !isToken(yield* variable(tokenVariable)))
      return yield* ConfigError.at(from, "tokenVariable", `the environment variable ${tokenVariable} holds no token`)
  }),
  ask: (settings) => (turn) =>
    Effect.gen(function* () {
      const { url, tokenVariable, maxAnswerMb, timeoutS } = settings.config
      const site = yield* siteOf(url, tokenVariable)
      const { text } = yield* sentTask(turn, settings)
      const trace = yield* traceparent
      const headers = trace === undefined ? {} : { traceparent: trace }
      const request = HttpClientRequest.bodyText(HttpClientRequest.post(url, { headers }), text, "application/json")
      const mostBytes = Math.ceil(maxAnswerMb * 2 ** 20)
      const options: ExchangeOptions = { mostBytes, patience: timeoutS, redirections: "sameOrigin" }
      const answer = yield* Effect.mapError(exchange(site, request, options, Effect.succeed), (error) =>
        failed(withoutName(site, error)),
      )
      return readAnswer(utf8.decode(answer.bytes))
    }),
})
