import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Fiber, Redacted, Schema } from "effect"
import { LanguageModel } from "effect/ai"
import { FetchHttpClient } from "effect/http"
import { TestClock } from "effect/testing"
import * as Anthropic from "../../../../src/agents/lm/providers/anthropic.ts"
import type { LmRequest } from "../../../../src/agents/lm/Chat.ts"
import { ask, user } from "../calls.ts"
import { type Answer, busy, type Fault, type Options, overloaded, serve, type Server } from "../server.ts"

const opened = (server: Server, more: Partial<Anthropic.AnthropicOptions> = {}) =>
  Anthropic.make({ model: "m", baseUrl: server.url, ...more })

const call = (how: Options, request: LmRequest = ask(), more: Partial<Anthropic.AnthropicOptions> = {}) =>
  Effect.gen(function* () {
    const server = yield* serve(how)
    const lm = yield* opened(server, more)
    return { completion: yield* lm.complete(request), asked: server.asked, body: server.asked[0].body }
  }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))

const failing = (fault: Fault) => Effect.flip(call({ fault: () => fault }))

const look = { name: "look", description: "Looks.", parameters: { type: "object", properties: {} } }

describe("Anthropic", () => {
  for (const streaming of [false, true]) {
    describe(streaming ? "streamed" : "at once", () => {
      it.effect("gives the content without thoughts, and the usage", () =>
        Effect.gen(function* () {
          const { completion, asked } = yield* call({ say: () => "Hello there." }, ask(), { streaming })
          assert.deepStrictEqual(completion, {
            content: "Hello there.",
            toolCalls: [],
            finishReason: "stop",
            usage: { inputTokens: 10, outputTokens: 5, reasoningTokens: 0 },
            tokens: null,
            model: "m-2026",
            attempts: 1,
          })
          assert.strictEqual(asked[0].path, "/v1/messages")
          assert.strictEqual(asked[0].headers["anthropic-version"], "2023-06-01")
        }),
      )

      it.effect("keeps the finish reason", () =>
        Effect.gen(function* () {
          const ends: ReadonlyArray<readonly [string | null, string]> = [
            ["stop_sequence", "stop"],
            ["max_tokens", "length"],
            ["model_context_window_exceeded", "length"],
            ["pause_turn", "unknown"],
            [null, "unknown"],
          ]
          for (const [finish, expected] of ends) {
            const { completion } = yield* call({ say: () => ({ content: "Hel", finish }) }, ask(), { streaming })
            assert.strictEqual(completion.finishReason, expected)
          }
        }),
      )

      it.effect("gives the tool calls", () =>
        Effect.gen(function* () {
          const toolCalls = [
            { id: "a", name: "look", arguments: '{"at":"the sky"}' },
            { id: "b", name: "look", arguments: "{}" },
          ]
          const { completion } = yield* call({ say: () => ({ content: "So:", toolCalls }) }, ask({ tools: [look] }), {
            streaming,
          })
          assert.deepStrictEqual(completion.toolCalls, toolCalls)
          assert.deepStrictEqual([completion.content, completion.finishReason], ["So:", "tool_calls"])
        }),
      )

      it.effect("fails on a completion that is not an answer", () =>
        Effect.gen(function* () {
          const failed = (say: Answer) => Effect.flip(call({ say: () => say }, ask(), { streaming }))
          const empty = yield* failed({ content: null })
          assert.strictEqual(empty.reason, "malformed")
          assert.match(
            empty.message,
            /: the answer is empty \(finish reason end_turn\); expected a text or a call of a tool$/,
          )
          for (const content of ["Hel", null]) {
            const filtered = yield* failed({ content, finish: "refusal" })
            assert.strictEqual(filtered.reason, "refused")
            assert.match(filtered.message, /: a filter withheld the answer or a part of it \(refusal\)$/)
          }
          // The thoughts of the model used up all tokens of the answer.
          const { completion } = yield* call({ say: () => ({ content: null, finish: "max_tokens" }) }, ask(), {
            streaming,
          })
          assert.deepStrictEqual([completion.content, completion.finishReason], ["", "length"])
        }),
      )

      it.effect("refuses half an answer, and recognises a failure within it", () =>
        Effect.gen(function* () {
          const failed = (fault: Fault) => Effect.flip(call({ fault: () => fault }, ask(), { streaming }))
          assert.strictEqual((yield* failed({ kind: "dropped" })).reason, "unavailable")
          assert.strictEqual((yield* failed({ kind: "garbled" })).reason, streaming ? "unavailable" : "malformed")
          const error = '{"type":"error","error":{"type":"overloaded_error","message":"So it is."}}'
          const told = yield* failed({ kind: "body", body: streaming ? `event: error\ndata: ${error}\n\n` : error })
          assert.strictEqual(told.reason, "unavailable")
          assert.match(told.message, /So it is\.$/)
          const odd = streaming ? 'data: {"type":"message_start"}\n\n' : "{}"
          assert.strictEqual((yield* failed({ kind: "body", body: odd })).reason, "malformed")
        }),
      )
    })
  }

  it.effect("encodes all of a request, in alternating turns", () =>
    Effect.gen(function* () {
      const { body: least } = yield* call({})
      assert.deepStrictEqual(least, {
        model: "m",
        max_tokens: 4096,
        messages: [{ role: "user", content: [{ type: "text", text: "Say hello." }] }],
      })
      const full = ask({
        messages: [
          { role: "system", content: "Be brief." },
          { role: "system", content: "Be kind." },
          user("Look."),
          {
            role: "assistant",
            content: "",
            toolCalls: [
              { id: "1", name: "look", arguments: "{broken" },
              { id: "2", name: "look", arguments: '{"at":1}' },
            ],
          },
          { role: "tool", toolCallId: "1", toolName: "look", content: "Not JSON.", isError: true },
          { role: "tool", toolCallId: "2", toolName: "look", content: "Blue." },
          { role: "assistant", content: "" },
          { role: "system", content: "Go on." },
        ],
        tools: [look],
        toolChoice: "required",
        temperature: 0,
        topP: 0.9,
        maxOutputTokens: 12,
        stop: ["END"],
        seed: 7,
        traceTokens: true,
      })
      const { body } = yield* call({}, full)
      assert.deepStrictEqual(body, {
        model: "m",
        max_tokens: 12,
        system: "Be brief.\n\nBe kind.",
        messages: [
          { role: "user", content: [{ type: "text", text: "Look." }] },
          {
            role: "assistant",
            content: [
              { type: "tool_use", id: "1", name: "look", input: { arguments: "{broken" } },
              { type: "tool_use", id: "2", name: "look", input: { at: 1 } },
            ],
          },
          {
            role: "user",
            content: [
              { type: "tool_result", tool_use_id: "1", content: "Not JSON.", is_error: true },
              { type: "tool_result", tool_use_id: "2", content: "Blue." },
              { type: "text", text: "Go on." },
            ],
          },
        ],
        tools: [{ name: "look", description: "Looks.", input_schema: look.parameters }],
        tool_choice: { type: "any" },
        temperature: 0,
        top_p: 0.9,
        stop_sequences: ["END"],
      })
    }),
  )

  it.effect("allows thinking before an answer, but not between tool calls", () =>
    Effect.gen(function* () {
      const request = ask({ temperature: 0.2, topP: 0.5, maxOutputTokens: 100 })
      const { body } = yield* call({}, request, { thinkingBudget: 2000 })
      assert.deepStrictEqual(body.thinking, { type: "enabled", budget_tokens: 2000 })
      assert.deepStrictEqual([body.max_tokens, body.temperature, body.top_p], [2100, undefined, undefined])
      const between = ask({
        messages: [
          user("Look."),
          { role: "assistant", content: "", toolCalls: [{ id: "1", name: "look", arguments: "{}" }] },
          { role: "tool", toolCallId: "1", toolName: "look", content: "Blue." },
        ],
        maxOutputTokens: 100,
      })
      const { body: then } = yield* call({}, between, { thinkingBudget: 2000 })
      assert.deepStrictEqual([then.thinking, then.max_tokens], [undefined, 100])
    }),
  )

  it.effect("gives JSON of a schema to Effect's LanguageModel", () =>
    Effect.gen(function* () {
      const server = yield* serve({
        say: ({ tool_choice }) => ({
          toolCalls: [{ id: "1", name: Object(tool_choice).name, arguments: '{"sum":3}' }],
        }),
      })
      const { value, finishReason } = yield* LanguageModel.generateObject({
        prompt: "1 + 2?",
        schema: Schema.Struct({ sum: Schema.Number }),
      }).pipe(Effect.provide(Anthropic.layer({ model: "m", baseUrl: server.url, thinkingBudget: 2000 })))
      assert.deepStrictEqual([value, finishReason], [{ sum: 3 }, "stop"])
      // A model that must call a tool cannot think.
      assert.isUndefined(server.asked[0].body.thinking)
    }).pipe(Effect.provide(FetchHttpClient.layer)),
  )

  it.effect("sends the key in this protocol's header, and names a missing one", () =>
    Effect.gen(function* () {
      const { asked } = yield* call({ key: "k-1" }, ask(), { apiKey: Redacted.make("k-1") })
      assert.deepStrictEqual([asked[0].headers["x-api-key"], asked[0].headers.authorization], ["k-1", undefined])
      const wrong = yield* Effect.flip(call({ key: "k-1" }, ask(), { apiKey: Redacted.make("k-2") }))
      assert.strictEqual(wrong.reason, "unauthorised")
      assert.notInclude(wrong.message, "k-2")
      const missing = yield* Effect.flip(Anthropic.make({ model: "m" })).pipe(Effect.provide(FetchHttpClient.layer))
      assert.match(missing.message, /^m: no key; set the environment variable ANTHROPIC_API_KEY/)
    }).pipe(
      Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown({ OPENAI_API_KEY: "k-1" })),
    ),
  )

  it.effect("does not follow redirections, which would send the key elsewhere", () =>
    Effect.gen(function* () {
      const elsewhere = yield* serve({})
      const location = `${elsewhere.url}/v1/messages`
      const fault = (): Fault => ({ kind: "status", status: 307, headers: { location } })
      const error = yield* Effect.flip(call({ fault }, ask(), { apiKey: Redacted.make("k-1") }))
      assert.deepStrictEqual(elsewhere.asked, [])
      assert.strictEqual(error.reason, "rejected")
      assert.match(error.message, /^m: \S+ answered 307/)
    }),
  )

  it.effect("distinguishes temporary failures from permanent ones", () =>
    Effect.gen(function* () {
      const status = (status: number, type: string): Fault => ({
        kind: "status",
        status,
        body: JSON.stringify({ type: "error", error: { type, message: "So it is." } }),
      })
      const body = (body: string): Fault => ({ kind: "body", body })
      const expected: ReadonlyArray<readonly [Fault, string]> = [
        [busy, "unavailable"],
        [overloaded, "unavailable"],
        [status(529, "overloaded_error"), "unavailable"],
        [status(400, "invalid_request_error"), "rejected"],
        [status(404, "not_found_error"), "rejected"],
        [{ kind: "dropped" }, "unavailable"],
        [{ kind: "reset" }, "unavailable"],
        [{ kind: "garbled" }, "malformed"],
        [body("{}"), "malformed"],
        [body('{"content":[{"type":"text"}]}'), "malformed"],
        [body('{"type":"error","error":{"message":"So it is."}}'), "unavailable"],
      ]
      for (const [fault, reason] of expected) {
        const error = yield* failing(fault)
        assert.strictEqual(error.reason, reason, JSON.stringify(fault))
        assert.match(error.message, /^m: http\S+ .*$/)
      }
      const refused = yield* failing(status(400, "invalid_request_error"))
      assert.match(refused.message, /\/v1\/messages answered 400: So it is\.$/)
    }),
  )

  it.effect("gives up on a server that hangs at the time limit", () =>
    Effect.gen(function* () {
      const server = yield* serve({ fault: () => ({ kind: "hung" }) })
      const lm = yield* opened(server, { timeoutS: 60 })
      const asking = yield* Effect.forkChild(Effect.flip(lm.complete(ask())))
      yield* server.until(() => server.asked.length === 1)
      yield* TestClock.adjust("60 seconds")
      assert.match((yield* Fiber.join(asking)).message, /did not finish its answer within 60 s/)
      yield* server.until(() => server.left() === 1)
    }).pipe(Effect.provide(FetchHttpClient.layer)),
  )
})
