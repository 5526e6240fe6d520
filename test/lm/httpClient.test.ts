/** The HTTP client for Node, which the first request loads. */
import { createServer } from "node:http"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import * as HttpClient from "effect/http/HttpClient"
import { httpClient } from "../../src/node.ts"

/** A server that remembers the trace ids of all requests. */
const listening = Effect.acquireRelease(
  Effect.callback<{ readonly url: string; readonly traceIds: Array<string | undefined>; readonly close: () => void }>(
    (resume) => {
      const traceIds: Array<string | undefined> = []
      const server = createServer((request, response) => {
        traceIds.push(request.headers.traceparent?.toString().split("-")[1])
        response.end("ok")
      })
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        const port = typeof address === "object" && address !== null ? address.port : 0
        resume(Effect.succeed({ url: `http://127.0.0.1:${port}/`, traceIds, close: () => void server.close() }))
      })
    },
  ),
  ({ close }) => Effect.sync(close),
)

it.effect("keeps nothing of the request that loaded it", () =>
  Effect.gen(function* () {
    const { url, traceIds } = yield* listening
    const request = Effect.flatMap(HttpClient.get(url), ({ text }) => text)
    assert.strictEqual(yield* Effect.withSpan(request, "first"), "ok")
    assert.strictEqual(yield* request, "ok")
    assert.strictEqual(yield* request, "ok")
    assert.strictEqual(new Set(traceIds).size, 3)
  }).pipe(Effect.provide(httpClient), Effect.scoped),
)
