/** Sends one HTTP request with a body of bytes, and reads the answer with any status, for protocols that use them all. */
import { Effect } from "effect"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type { LmError } from "../LmError.ts"
import { bytesOf, requestContext, timedOut, unreachable, urlOf, withKey } from "./http.ts"
import type { Server } from "./Server.ts"

/** A request with a body, or with the method GET. */
export interface BytesRequest {
  /** @default "POST" */
  readonly method?: "GET" | "POST"
  /** The path below the server's address. */
  readonly path: string
  readonly body: Uint8Array
  readonly contentType: string
  /** The types of answers that the caller can read. */
  readonly accept: string
}

/** An answer with any status. It is not longer than the server's `maxAnswerBytes`. */
export interface BytesAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly bytes: Uint8Array
}

/** Sends a request, and returns the answer, or why there is none: the server cannot be reached, or its answer is too long. */
export const requestBytes = Effect.fnUntraced(
  function* (server: Server, { method, path, body, contentType, accept }: BytesRequest) {
    const url = urlOf(server, path)
    const plain =
      method === "GET"
        ? HttpClientRequest.get(url)
        : HttpClientRequest.bodyUint8Array(HttpClientRequest.post(url), body, contentType)
    const request = withKey(server, HttpClientRequest.setHeaders(plain, { ...server.headers, accept }))
    const response = yield* server.client.execute(request).pipe(
      Effect.updateContext(requestContext),
      Effect.mapError((error) => unreachable(server, url, error)),
    )
    const answer: BytesAnswer = {
      status: response.status,
      headers: response.headers,
      bytes: yield* bytesOf(server, response),
    }
    return answer
  },
  (sending, server): Effect.Effect<BytesAnswer, LmError> =>
    Effect.timeoutOrElse(sending, {
      duration: server.timeoutS * 1000,
      orElse: () => Effect.fail(timedOut(server)),
    }),
)
