/** Defines the HTTP server that a provider calls, and makes it from options. The key may be read from the environment. */
import { Effect, type Redacted } from "effect"
import * as HttpClient from "effect/http/HttpClient"
import { type ApiKey, keyOf } from "./keys.ts"
import { withoutUser } from "../../../base/config/secretFields.ts"
import { type LmError, lmError } from "../LmError.ts"

export interface Server {
  /** The name of the model in error messages. */
  readonly model: string
  readonly client: HttpClient.HttpClient
  readonly baseUrl: URL
  readonly key: ApiKey | null
  readonly keyHeader: "authorization" | "x-api-key"
  /** The headers of every request, except the header that holds the key. */
  readonly headers: Readonly<Record<string, string>>
  /** The time limit of an attempt in seconds, up to the last byte of the answer. */
  readonly timeoutS: number
  /** The size limit of an answer in bytes, after decompression. */
  readonly maxAnswerBytes: number
}

/** The options of a server, which are the same for all protocols. */
export interface LmServerOptions {
  /** The server's name for the model. It is used in error messages, and for requests that name no model. */
  readonly model: string
  /** The address. If it has no path, `/v1` is added. null uses the protocol's default address. */
  readonly baseUrl?: string | null
  /** The key, or `${NAME}` for the environment variable that holds it. */
  readonly apiKey?: Redacted.Redacted | null
  /**
   * The variable that holds the key if `apiKey` is not set. By default, it is the variable of the company that owns the
   * address (`OPENAI_API_KEY`, `GOOGLE_API_KEY`, `ANTHROPIC_API_KEY`); other addresses get no key, because a key must only be
   * sent to its own server.
   */
  readonly keyVariable?: string | null
  /** The time limit of an attempt in seconds, 900 by default. */
  readonly timeoutS?: number
  /** The size limit of an answer in megabytes, 64 by default; a longer answer is refused before it fills the memory. */
  readonly maxAnswerMb?: number
}

/** The properties that all servers of a protocol share. */
export interface ServerProtocol extends Pick<Server, "keyHeader" | "headers"> {
  /** The default address. */
  readonly at: string
  /** Returns the name of the environment variable with the key for an address; null if no key may be sent to it. */
  readonly variableOf: (url: URL) => string | null
}

/** Parses the base URL of a config. If it has no path, adds `/v1`, where servers of these protocols listen. */
export const baseUrlOf = (model: string, address: string): Effect.Effect<URL, LmError> => {
  const url = URL.parse(address)
  const wrong = (expected: string): Effect.Effect<never, LmError> => {
    // The message must not repeat a user name, a password, or a key in the query.
    const shown = JSON.stringify(withoutUser(address).replace(/\?.*/s, ""))
    return Effect.fail(lmError(model, "rejected", `base_url: expected an address ${expected}, found ${shown}`))
  }
  if (url === null || !/^https?:$/.test(url.protocol)) return wrong("that begins with http:// or https://")
  if (url.username !== "" || url.password !== "") return wrong("without user name and password (a key is an api_key)")
  url.pathname = url.pathname.replace(/\/+$/, "") || "/v1"
  return Effect.succeed(url)
}

/** Makes a server from its options and its protocol: checks the address, finds the key, and fills in the defaults. */
export const serverOf = Effect.fnUntraced(function* (
  { model, baseUrl: address, apiKey, keyVariable, timeoutS = 900, maxAnswerMb = 64 }: LmServerOptions,
  { at, variableOf, keyHeader, headers }: ServerProtocol,
) {
  const baseUrl = yield* baseUrlOf(model, address ?? at)
  const variable = keyVariable === undefined ? variableOf(baseUrl) : keyVariable
  const key = yield* keyOf(model, apiKey, variable)
  const client = yield* HttpClient.HttpClient
  return {
    model,
    client,
    baseUrl,
    key,
    keyHeader,
    headers,
    timeoutS,
    maxAnswerBytes: maxAnswerMb * 1e6,
  } satisfies Server
})
