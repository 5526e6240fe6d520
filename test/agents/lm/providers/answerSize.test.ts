import { gzipSync } from "node:zlib"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { FetchHttpClient, type HttpClient } from "effect/http"
import * as Anthropic from "../../../../src/agents/lm/providers/anthropic.ts"
import type { LmError } from "../../../../src/agents/lm/LmError.ts"
import * as OpenAi from "../../../../src/agents/lm/providers/openAi.ts"
import * as OpenAiEmbeddings from "../../../../src/agents/lm/providers/openAiEmbeddings.ts"
import { ask } from "../calls.ts"
import { type Fault, serve } from "../server.ts"

/** These options limit an answer to 0.1 MB. */
const options = { model: "m", maxAnswerMb: 0.1 }

const protocols: Readonly<Record<string, (url: string) => Effect.Effect<unknown, LmError, HttpClient.HttpClient>>> = {
  "OpenAI's, whole": (baseUrl) => Effect.flatMap(OpenAi.make({ ...options, baseUrl }), (lm) => lm.complete(ask())),
  "OpenAI's, streamed": (baseUrl) =>
    Effect.flatMap(OpenAi.make({ ...options, baseUrl, streaming: true }), (lm) => lm.complete(ask())),
  "Anthropic's, whole": (baseUrl) =>
    Effect.flatMap(Anthropic.make({ ...options, baseUrl }), (lm) => lm.complete(ask())),
  "Anthropic's, streamed": (baseUrl) =>
    Effect.flatMap(Anthropic.make({ ...options, baseUrl, streaming: true }), (lm) => lm.complete(ask())),
  "of embeddings": (baseUrl) =>
    Effect.flatMap(OpenAiEmbeddings.make({ ...options, baseUrl, maxRetries: 0 }), (embeddings) =>
      embeddings.embed(["a"]),
    ),
}

const clients = { fetch: FetchHttpClient.layer, undici: NodeHttpClient.layerUndici }

const failing = (name: string, fault: Fault, client: keyof typeof clients = "undici") =>
  Effect.gen(function* () {
    const server = yield* serve({ fault: () => fault })
    const context = yield* Layer.build(clients[client])
    const error = yield* Effect.flip(Effect.provideContext(protocols[name](server.url), context))
    return { server, error }
  }).pipe(Effect.tap(({ error }) => Effect.sync(() => assert.isBelow(error.message.length, 600))))

describe.each(Object.keys(protocols))("an answer %s", (name) => {
  // Events are read a line at a time; a body that isn't read as events looks as if it could become JSON.
  const chunk = `data: {"type":"ping","choices":[]}\n\n`.repeat(100)

  for (const client of ["fetch", "undici"] as const) {
    it.effect(`that never ends is not read to the end, by ${client}`, () =>
      Effect.gen(function* () {
        const { server, error } = yield* failing(name, { kind: "endless", status: 200, chunk }, client)
        assert.match(error.reason, /^(?:malformed|exhausted)$/)
        assert.match(error.message, /sent more than 0\.1 MB \(max_answer_mb\); the rest was not read$/)
        // The server does not continue to send.
        yield* server.until(() => server.left() === 1)
      }),
    )
  }

  it.effect("of a failure is read only as far as it is shown", () =>
    Effect.gen(function* () {
      const { server, error } = yield* failing(name, { kind: "endless", status: 400, chunk: "Too much. ".repeat(100) })
      assert.strictEqual(error.reason, "rejected")
      assert.match(error.message, /answered 400: Too much\. /)
      yield* server.until(() => server.left() === 1)
    }),
  )

  it.effect("that is small only while compressed is too long", () =>
    Effect.gen(function* () {
      const body = gzipSync(chunk.repeat(1000))
      assert.isBelow(body.length, 50_000)
      const packed: Fault = { kind: "body", body, headers: { "content-encoding": "gzip" } }
      const { error } = yield* failing(name, packed, "fetch")
      assert.match(error.message, /sent more than 0\.1 MB/)
      // Undici unpacks nothing, and says so to servers.
      const { error: unread } = yield* failing(name, packed, "undici")
      assert.match(unread.message, /expected text in UTF-8/)
    }),
  )

  it.effect("that is not UTF-8 is refused", () =>
    Effect.gen(function* () {
      const begins = `data: {"type":"message_start","choices":[{"delta":{"content":"`
      const body = Uint8Array.from([...new TextEncoder().encode(begins), 0xc3, 0x28, 0x22])
      const { error } = yield* failing(name, { kind: "body", body })
      assert.match(error.message, /cannot read the answer: expected text in UTF-8, found "/)
    }),
  )

  it.effect("that consists of nested lists is refused, as answer and as failure", () =>
    Effect.gen(function* () {
      const lists = "[".repeat(30_000)
      const body = `${lists}${"]".repeat(30_000)}`
      const { error } = yield* failing(name, {
        kind: "body",
        body: name.endsWith("streamed") ? `data: ${body}\n\n` : body,
      })
      assert.match(error.message, /cannot read/)
      const { error: failed } = yield* failing(name, { kind: "status", status: 400, body })
      assert.match(failed.message, /answered 400/)
    }),
  )
})
