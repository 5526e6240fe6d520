import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import type { LmRequest } from "../../../../src/agents/lm/Chat.ts"
import * as Toka from "../../../../src/agents/lm/providers/toka.ts"
import { ask } from "../calls.ts"
import { serve } from "../server.ts"

const call = (body: string, request: LmRequest = ask(), place = "") =>
  Effect.gen(function* () {
    const server = yield* serve({ fault: () => ({ kind: "status", status: 200, body }) })
    const lm = yield* Toka.make({ model: "m", baseUrl: `${new URL(server.url).origin}${place}` })
    const completion = yield* lm.complete(request)
    return { completion, path: server.asked[0].path, body: JSON.parse(server.asked[0].text) }
  }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))

describe("Tokasaurus' own protocol", () => {
  it.effect("sends a system prompt and a prompt, and reads the text in either form", () =>
    Effect.gen(function* () {
      const messages: LmRequest["messages"] = [
        { role: "system", content: "Be brief." },
        { role: "user", content: "Hello" },
      ]
      const request = { ...ask(), messages, temperature: 0.2, maxOutputTokens: 100, stop: ["FEEDBACK"] }
      const usage = { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 }
      const sent = yield* call(JSON.stringify({ text: "Hi.", finish_reason: "stop", usage }), request)
      assert.strictEqual(sent.path, "/generate")
      assert.deepStrictEqual(sent.body, {
        model: request.model,
        system: "Be brief.",
        prompt: "Hello",
        temperature: 0.2,
        max_tokens: 100,
        stop: ["FEEDBACK"],
      })
      assert.deepInclude(sent.completion, {
        content: "Hi.",
        finishReason: "stop",
        usage: { inputTokens: 7, outputTokens: 3, reasoningTokens: 0 },
      })
      const older = yield* call(JSON.stringify({ output: "Hi.", reason: "length" }), request, "/models/a/v1")
      assert.deepStrictEqual([older.path, older.completion.content], ["/models/a/generate", "Hi."])
      assert.strictEqual(older.completion.finishReason, "length")
      const full = { text: "Hi", usage: { completion_tokens: 100 } }
      assert.strictEqual((yield* call(JSON.stringify(full), request)).completion.finishReason, "length")
    }),
  )

  it.effect("names the speakers of a conversation", () =>
    Effect.gen(function* () {
      const messages: LmRequest["messages"] = [
        { role: "user", content: "One?" },
        { role: "assistant", content: "1" },
        { role: "user", content: "Two?" },
      ]
      const { body } = yield* call('{ "text": "2" }', { ...ask(), messages })
      assert.deepInclude(body, { system: "", prompt: "User: One?\n\nAssistant: 1\n\nUser: Two?" })
    }),
  )

  it.effect("refuses tools and answers without a text", () =>
    Effect.gen(function* () {
      const tool = { name: "look", description: "Looks.", parameters: { type: "object", properties: {} } }
      const tools = yield* Effect.flip(call("{}", { ...ask(), tools: [tool] }))
      assert.include(tools.message, "protocol: toka has no tools")
      const empty = yield* Effect.flip(call("{}"))
      assert.include(empty.message, "the answer is empty")
    }),
  )
})
