import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Fiber, Redacted } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import { TestClock } from "effect/testing"
import * as OpenAiEmbeddings from "../../../../src/agents/lm/providers/openAiEmbeddings.ts"

interface Sent {
  readonly url: string
  readonly key: string | undefined
  readonly body: { readonly model: string; readonly input: ReadonlyArray<string> }
}

/** A text's vector is its length and its place in the call; they are given back to front. */
const vectors = ({ input }: Sent["body"]): Response =>
  Response.json({ data: input.map((text, index) => ({ index, embedding: [text.length, index] })).reverse() })

const asking = (
  answer: (body: Sent["body"], call: number) => Response,
  texts: ReadonlyArray<string>,
  options: Partial<OpenAiEmbeddings.OpenAiEmbeddingsOptions> = {},
) => {
  const sent: Array<Sent> = []
  const client = HttpClient.make((request, url) => {
    const body = request.body._tag === "Uint8Array" ? JSON.parse(new TextDecoder().decode(request.body.body)) : null
    sent.push({ url: url.href, key: request.headers.authorization, body })
    return Effect.succeed(HttpClientResponse.fromWeb(request, answer(body, sent.length)))
  })
  const embedding = Effect.flatMap(
    OpenAiEmbeddings.make({ model: "m", baseUrl: "http://localhost:1", ...options }),
    ({ embed }) => embed(texts),
  ).pipe(
    Effect.provideService(HttpClient.HttpClient, client),
    Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown({ OPENAI_API_KEY: "secret" })),
  )
  return { sent, embedding }
}

const busy = () => new Response('{"error":{"message":"Too fast."}}', { status: 429 })

describe("OpenAiEmbeddings", () => {
  it.effect("gives a vector for each text, in order, in batches", () =>
    Effect.gen(function* () {
      const { sent, embedding } = asking(vectors, ["a", "bb", "ccc"], { batch: 2, apiKey: Redacted.make("k") })
      const made = yield* embedding
      assert.deepStrictEqual(
        made.map((vector) => [...vector]),
        [
          [1, 0],
          [2, 1],
          [3, 0],
        ],
      )
      assert.deepStrictEqual(sent, [
        { url: "http://localhost:1/v1/embeddings", key: "Bearer k", body: { model: "m", input: ["a", "bb"] } },
        { url: "http://localhost:1/v1/embeddings", key: "Bearer k", body: { model: "m", input: ["ccc"] } },
      ])
      const none = asking(vectors, [])
      assert.deepStrictEqual(yield* none.embedding, [])
      assert.deepStrictEqual(none.sent, [])
    }),
  )

  it.effect("sends OpenAI's key to OpenAI only", () =>
    Effect.gen(function* () {
      const there = asking(vectors, ["a"], { baseUrl: null })
      yield* there.embedding
      assert.deepStrictEqual(
        [there.sent[0].url, there.sent[0].key],
        ["https://api.openai.com/v1/embeddings", "Bearer secret"],
      )
      const elsewhere = asking(vectors, ["a"])
      yield* elsewhere.embedding
      assert.isUndefined(elsewhere.sent[0].key)
    }),
  )

  it.effect("retries temporary failures, a limited number of times", () =>
    Effect.gen(function* () {
      const passing = asking((body, call) => (call < 3 ? busy() : vectors(body)), ["a"])
      const fiber = yield* Effect.forkChild(passing.embedding)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual((yield* Fiber.join(fiber)).length, 1)
      assert.strictEqual(passing.sent.length, 3)

      const unset: object = { maxRetries: undefined, jitter: undefined }
      const usual = yield* Effect.forkChild(Effect.flip(asking(busy, ["a"], unset).embedding))
      yield* TestClock.adjust("2 minutes")
      assert.deepInclude(yield* Fiber.join(usual), { reason: "exhausted", attempts: 6 })

      const lasting = asking(busy, ["a"], { maxRetries: 2 })
      const failing = yield* Effect.forkChild(Effect.flip(lasting.embedding))
      yield* TestClock.adjust("1 minute")
      const error = yield* Fiber.join(failing)
      assert.deepInclude(error, { _tag: "LmError", reason: "exhausted", attempts: 3 })

      const refused = asking((_, call) => (call < 2 ? busy() : new Response("{}", { status: 401 })), ["a"])
      const refusing = yield* Effect.forkChild(Effect.flip(refused.embedding))
      yield* TestClock.adjust("1 minute")
      assert.deepInclude(yield* Fiber.join(refusing), { reason: "unauthorised", attempts: 2 })
    }),
  )

  it.effect("refuses incomplete answers, and does not retry a refusal", () =>
    Effect.gen(function* () {
      const answers: ReadonlyArray<readonly [() => Response, string]> = [
        [() => Response.json({ data: [{ index: 0, embedding: [1] }] }), "exhausted"],
        [() => Response.json({ data: [0, 0].map((index) => ({ index, embedding: [1] })) }), "exhausted"],
        [() => Response.json({ data: [{ index: 0, embedding: ["x"] }] }), "exhausted"],
        [() => new Response("{}", { status: 401 }), "unauthorised"],
        [() => new Response("{}", { status: 404 }), "rejected"],
      ]
      for (const [answer, reason] of answers) {
        const { embedding, sent } = asking(answer, ["a", "b"], { maxRetries: 0 })
        assert.strictEqual((yield* Effect.flip(embedding)).reason, reason)
        assert.strictEqual(sent.length, 1)
      }
    }),
  )
})
