/** Who is asked over HTTP: an address, a key that is for it, and for how long. */
import { Effect, type Redacted } from "effect"
import { HttpClient } from "effect/http"
import { type Key, keyOf } from "./keys.ts"
import { withoutUser } from "../LmConfig.ts"
import { LmError } from "../LmError.ts"

/** Who is asked, and how. */
export interface Server {
  /** For messages. */
  readonly model: string
  readonly client: HttpClient.HttpClient
  readonly baseUrl: URL
  readonly key: Key | null
  readonly keyHeader: "authorization" | "x-api-key"
  /** The others. */
  readonly headers: Readonly<Record<string, string>>
  /** In seconds: how long a try may take, the last byte of its answer included. */
  readonly timeoutS: number
  /** Bytes, as they are unpacked: no more of an answer is read. */
  readonly maxAnswerBytes: number
}

/** What can be said of a server, whichever protocol it speaks. */
export interface ServerOptions {
  /** As the server calls it; it stands in messages, and is asked for where a request of Effect's names none. */
  readonly model: string
  /** Without a path it means `/v1`; null: where the protocol comes from. */
  readonly baseUrl?: string | null
  /** `${NAME}` names a variable of the environment. */
  readonly apiKey?: Redacted.Redacted | null
  /**
   * The variable with the key, where `apiKey` says nothing. At first that of the address's owner (`OPENAI_API_KEY`,
   * `GOOGLE_API_KEY`, `ANTHROPIC_API_KEY`), and none for any other address: a key goes to nobody whom it isn't for.
   */
  readonly keyVariable?: string | null
  /** In seconds: how long a try may take; 900 unless given. */
  readonly timeoutS?: number
  /** In megabytes: a longer answer is refused before it fills the memory; 64 unless given. */
  readonly maxAnswerMb?: number
}

/** What servers of a protocol have in common. */
export interface Protocol extends Pick<Server, "keyHeader" | "headers"> {
  /** Where it is spoken unless somebody says where. */
  readonly at: string
  /** The variable with the key for an address. */
  readonly variableOf: (url: URL) => string | null
}

/** A base URL as people write it: what has no path means `/v1`, where every server of these protocols listens. */
export const baseUrlOf = (model: string, said: string): Effect.Effect<URL, LmError> => {
  const url = URL.parse(said)
  const wrong = (expected: string): Effect.Effect<never, LmError> => {
    // A name and a password aren't said again.
    const found = JSON.stringify(withoutUser(said).replace(/\?.*/s, ""))
    const message = `${model}: base_url: expected an address ${expected}, found ${found}`
    return Effect.fail(new LmError({ model, reason: "rejected", attempts: 0, message }))
  }
  if (url === null || !/^https?:$/.test(url.protocol)) return wrong("that begins with http:// or https://")
  if (url.username !== "" || url.password !== "") return wrong("with nobody's name in it: a key is an api_key")
  url.pathname = url.pathname.replace(/\/+$/, "") || "/v1"
  return Effect.succeed(url)
}

/**
 * A server from what is said of it.
 *
 * @example
 * ```ts
 * const own = { at: "http://127.0.0.1:8000", variableOf: () => null, keyHeader: "authorization", headers: {} } as const
 * const server = yield* serverOf({ model: "qwen3" }, own)
 * server.baseUrl.href // "http://127.0.0.1:8000/v1"
 * ```
 */
export const serverOf = Effect.fnUntraced(function* (
  { model, baseUrl: said, apiKey, keyVariable, timeoutS = 900, maxAnswerMb = 64 }: ServerOptions,
  { at, variableOf, keyHeader, headers }: Protocol,
): Effect.fn.Return<Server, LmError, HttpClient.HttpClient> {
  const baseUrl = yield* baseUrlOf(model, said ?? at)
  const variable = keyVariable === undefined ? variableOf(baseUrl) : keyVariable
  return {
    model,
    client: yield* HttpClient.HttpClient,
    baseUrl,
    key: yield* keyOf({ model, apiKey, variable }),
    keyHeader,
    headers,
    timeoutS,
    maxAnswerBytes: maxAnswerMb * 1e6,
  }
})
