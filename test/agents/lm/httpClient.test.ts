/** The HTTP client for Node, which the first request loads. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import * as HttpClient from "effect/http/HttpClient"
import { httpClient } from "../../../src/node.ts"
import { serveHttp } from "../../servers/listen.ts"

it.effect("keeps nothing of the request that loaded it", () =>
  Effect.gen(function* () {
    const traceIds: Array<string | undefined> = []
    const { url } = yield* serveHttp((request, response) => {
      traceIds.push(request.headers.traceparent?.toString().split("-")[1])
      response.end("ok")
    })
    const request = Effect.flatMap(HttpClient.get(url), ({ text }) => text)
    assert.strictEqual(yield* Effect.withSpan(request, "first"), "ok")
    assert.strictEqual(yield* request, "ok")
    assert.strictEqual(yield* request, "ok")
    assert.strictEqual(new Set(traceIds).size, 3)
  }).pipe(Effect.provide(httpClient), Effect.scoped),
)
