import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Fiber, Layer, Schema, Stream } from "effect"
import { LanguageModel, Tool, Toolkit } from "effect/ai"
import { FetchHttpClient, HttpClient, HttpClientResponse } from "effect/http"
import { TestClock } from "effect/testing"
import { bytes } from "../../../../src/base/tokens/words.ts"
import * as OpenAi from "../../../../src/agents/lm/providers/openAi.ts"
import { thinks } from "../../../../src/agents/lm/providers/openAiWire.ts"
import { ask, call, failing, opened, user } from "../calls.ts"
import { type Answer, type Fault, serve } from "../server.ts"

const look = { name: "look", description: "Looks.", parameters: { type: "object", properties: {} } }

describe("OpenAi", () => {
  for (const streaming of [false, true]) {
    describe(streaming ? "streamed" : "at once", () => {
      it.effect("gives content, finish reason and usage", () =>
        Effect.gen(function* () {
          const { completion } = yield* call({ say: () => "Hello there, ünïcode 👋." }, ask(), { streaming })
          assert.deepStrictEqual(completion, {
            content: "Hello there, ünïcode 👋.",
            toolCalls: [],
            finishReason: "stop",
            usage: { inputTokens: 40, outputTokens: 28, reasoningTokens: 0 },
            tokens: null,
            model: "m-2026",
            attempts: 1,
          })
        }),
      )

      it.effect("keeps the finish reason", () =>
        Effect.gen(function* () {
          const ends: ReadonlyArray<readonly [string, string]> = [
            ["length", "length"],
            ["abort", "unknown"],
          ]
          for (const [finish, expected] of ends) {
            const { completion } = yield* call({ say: () => ({ content: "Hel", finish }) }, ask(), { streaming })
            assert.deepStrictEqual([completion.content, completion.finishReason], ["Hel", expected])
          }
        }),
      )

      it.effect("gives complete tool calls", () =>
        Effect.gen(function* () {
          const toolCalls = [
            { id: "a", name: "look", arguments: '{"at": "the sky"}' },
            { id: "b", name: "look", arguments: "{not JSON" },
          ]
          for (const finish of ["tool_calls", "stop"]) {
            const { completion } = yield* call({ say: () => ({ toolCalls, finish }) }, ask({ tools: [look] }), {
              streaming,
            })
            assert.deepStrictEqual(completion.toolCalls, toolCalls)
            assert.deepStrictEqual([completion.content, completion.finishReason], ["", "tool_calls"])
          }
        }),
      )

      it.effect("fails on a completion that is not an answer", () =>
        Effect.gen(function* () {
          const failed = (say: Answer) => Effect.flip(call({ say: () => say }, ask(), { streaming }))
          const empty = yield* failed({ content: null })
          assert.strictEqual(empty.reason, "malformed")
          // The server bills it all the same.
          assert.deepStrictEqual(empty.usage, { inputTokens: 40, outputTokens: 0, reasoningTokens: 0 })
          assert.match(
            empty.message,
            /: the answer is empty \(finish reason stop\); expected a text or a call of a tool$/,
          )
          for (const content of ["Hel", null]) {
            const filtered = yield* failed({ content, finish: "content_filter" })
            assert.strictEqual(filtered.reason, "refused")
            assert.match(filtered.message, /: a filter withheld the answer or a part of it \(content_filter\)$/)
          }
          const declined = yield* failed({ content: null, refusal: "I can't do that." })
          assert.strictEqual(declined.reason, "refused")
          assert.match(declined.message, /: the model declined: I can't do that\.$/)
          // An empty text is one.
          const emptyText = yield* call({ say: () => ({ content: "" }) }, ask(), { streaming })
          assert.strictEqual(emptyText.completion.content, "")
          // The thoughts of the model used up all tokens of the answer.
          const { completion } = yield* call({ say: () => ({ content: null, finish: "length" }) }, ask(), { streaming })
          assert.deepStrictEqual([completion.content, completion.finishReason], ["", "length"])
        }),
      )

      it.effect("asks vLLM for the tokens and their log-probabilities", () =>
        Effect.gen(function* () {
          const { completion, asked } = yield* call({ say: () => "Hi you", as: "vllm" }, ask({ traceTokens: true }), {
            streaming,
          })
          assert.strictEqual(asked[0].body.return_token_ids, true)
          assert.deepStrictEqual(completion.tokens?.completionIds, bytes.encode("Hi you"))
          assert.deepStrictEqual(completion.tokens?.promptIds, bytes.encode(JSON.stringify(asked[0].body.messages)))
          assert.strictEqual(completion.tokens?.logprobs?.length, 6)
          assert.strictEqual(completion.tokens?.logprobs?.[1], -0.125)
          assert.strictEqual(completion.tokens?.texts?.join("|"), "H|i| |y|o|u")
        }),
      )

      it.effect("asks llama.cpp for the tokens of the prompt", () =>
        Effect.gen(function* () {
          const { completion, asked } = yield* call({ say: () => "Hi", as: "llama.cpp" }, ask({ traceTokens: true }), {
            streaming,
          })
          assert.deepStrictEqual(
            asked.map(({ path }) => path),
            ["/v1/chat/completions", "/apply-template", "/tokenize"],
          )
          assert.deepStrictEqual(completion.tokens, {
            promptIds: bytes.encode(JSON.stringify(asked[0].body.messages)),
            completionIds: bytes.encode("Hi"),
            logprobs: [0, -0.125],
            texts: ["H", "i"],
          })
        }),
      )

      it.effect("gives no trace if the server gives no ids", () =>
        Effect.gen(function* () {
          const { completion } = yield* call({ as: "openai" }, ask({ traceTokens: true }), { streaming })
          assert.deepStrictEqual([completion.content, completion.tokens], ["Hello", null])
        }),
      )

      it.effect("retries after a connection that breaks within an answer", () =>
        Effect.gen(function* () {
          const dropped = yield* failing({ kind: "dropped" }, { streaming })
          assert.strictEqual(dropped.reason, "unavailable")
          assert.match(dropped.message, /stopped in the middle of its answer/)
          const reset = yield* failing({ kind: "reset" }, { streaming })
          assert.strictEqual(reset.reason, "unavailable")
          assert.match(reset.message, /cannot be reached/)
        }),
      )

      it.effect("refuses half an answer, even if the connection closes properly", () =>
        Effect.gen(function* () {
          const error = yield* failing({ kind: "garbled" }, { streaming })
          assert.strictEqual(error.reason, streaming ? "unavailable" : "malformed")
        }),
      )

      it.effect("reports what cannot be decoded as malformed", () =>
        Effect.gen(function* () {
          const bodies = [
            '{"choices":[]}',
            "{}",
            '{"choices":[{"finish_reason":"stop"}]}',
            "[1]",
            "<html>Hi</html>",
            "",
          ]
          for (const body of streaming ? ["data: {]\n\n", "data: {}\n\n"] : bodies) {
            const error = yield* failing({ kind: "body", body }, { streaming })
            assert.strictEqual(error.reason, "malformed", body)
            assert.match(error.message, /cannot read the answer: .*, found "/)
          }
        }),
      )

      it.effect("recognises a failure in the body of a 200", () =>
        Effect.gen(function* () {
          const told = (error: unknown): Fault => ({
            kind: "body",
            body: streaming ? `data: ${JSON.stringify({ error })}\n\n` : JSON.stringify({ error }),
          })
          const broke = yield* failing(told({ message: "It broke.", code: null }), { streaming })
          assert.deepStrictEqual([broke.reason, broke.message.endsWith("It broke.")], ["unavailable", true])
          const wrong = yield* failing(told({ message: "No such model.", code: 404 }), { streaming })
          assert.strictEqual(wrong.reason, "rejected")
        }),
      )

      it.effect("gives up on a server that hangs at the time limit", () =>
        Effect.gen(function* () {
          for (const [kind, client] of [
            ["hung", FetchHttpClient.layer],
            ["stalled", FetchHttpClient.layer],
            ["stalled", NodeHttpClient.layerUndici],
          ] as const) {
            const server = yield* serve({ fault: () => ({ kind }) })
            const lm = yield* opened(server, { timeoutS: 900, streaming }, client)
            const asking = yield* Effect.forkChild(Effect.flip(lm.complete(ask())))
            yield* server.until(() => server.asked.length === 1)
            yield* TestClock.adjust("899 seconds")
            assert.isUndefined(asking.pollUnsafe())
            yield* TestClock.adjust("1 second")
            const error = yield* Fiber.join(asking)
            assert.strictEqual(error.reason, "unavailable")
            assert.match(error.message, /^m: \S+ did not finish its answer within 900 s \(timeout_s\)$/)
            yield* server.until(() => server.left() === 1)
          }
        }),
      )

      it.effect("closes the connection of an interrupted call", () =>
        Effect.gen(function* () {
          const server = yield* serve({ fault: () => ({ kind: "stalled" }) })
          const lm = yield* opened(server, { streaming })
          const asking = yield* Effect.forkChild(lm.complete(ask()))
          yield* server.until(() => server.asked.length === 1)
          yield* Fiber.interrupt(asking)
          yield* server.until(() => server.left() === 1)
        }),
      )
    })
  }

  it.effect("reads the usage from a last piece without choices", () =>
    Effect.gen(function* () {
      const said = { choices: [{ delta: { content: "Hi" }, finish_reason: "stop" }] }
      const usage = { usage: { prompt_tokens: 3, completion_tokens: 2 } }
      const body = [JSON.stringify(said), JSON.stringify(usage), "[DONE]"]
        .map((data) => `data: ${data}\r\n\r\n`)
        .join("")
      const { completion } = yield* call({ fault: () => ({ kind: "body", body }) }, ask(), { streaming: true })
      assert.strictEqual(completion.content, "Hi")
      assert.deepStrictEqual(completion.usage, { inputTokens: 3, outputTokens: 2, reasoningTokens: 0 })
    }),
  )

  it.live("waits for a slow server", () =>
    Effect.gen(function* () {
      const { completion } = yield* call({ fault: () => ({ kind: "slow", milliseconds: 30 }) })
      assert.strictEqual(completion.content, "Hello")
    }),
  )

  it.effect("encodes all settings of a request, and leaves out those that are null", () =>
    Effect.gen(function* () {
      const server = yield* serve()
      const lm = yield* opened(server, { extra: { top_k: 3 } })
      yield* lm.complete(ask())
      assert.deepStrictEqual(server.asked[0].body, {
        model: "m",
        messages: [{ role: "user", content: "Say hello." }],
        top_k: 3,
      })
      const full = ask({
        messages: [
          { role: "system", content: "Be brief." },
          user("Look."),
          { role: "assistant", content: "", toolCalls: [{ id: "1", name: "look", arguments: "{broken" }] },
          { role: "tool", toolCallId: "1", toolName: "look", content: "Not JSON.", isError: true },
          { role: "assistant", content: "Well." },
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
      yield* lm.complete(full, { name: "answer", schema: { type: "object" } })
      assert.deepStrictEqual(server.asked[1].body, {
        model: "m",
        messages: [
          { role: "system", content: "Be brief." },
          { role: "user", content: "Look." },
          {
            role: "assistant",
            content: null,
            tool_calls: [{ id: "1", type: "function", function: { name: "look", arguments: "{broken" } }],
          },
          { role: "tool", tool_call_id: "1", content: "Not JSON." },
          { role: "assistant", content: "Well." },
        ],
        tools: [{ type: "function", function: look }],
        tool_choice: "required",
        temperature: 0,
        top_p: 0.9,
        max_tokens: 12,
        stop: ["END"],
        seed: 7,
        logprobs: true,
        return_token_ids: true,
        response_format: { type: "json_schema", json_schema: { name: "answer", schema: { type: "object" } } },
        top_k: 3,
      })
    }),
  )

  it.effect("adapts requests to reasoning models", () =>
    Effect.gen(function* () {
      for (const model of ["o1", "o3-mini", "openai/o4-mini", "ft:o4-mini:us::1", "gpt-5-nano"]) {
        const { asked } = yield* call({}, ask({ model, temperature: 0.2, topP: 0.5, maxOutputTokens: 9 }))
        const { messages: _, ...rest } = asked[0].body
        assert.deepStrictEqual(rest, { model, max_completion_tokens: 9 })
      }
      for (const model of ["gpt-4.1", "gpt-5-chat-latest", "openai/gpt-5.1-chat", "moo1"]) {
        const { asked } = yield* call({}, ask({ model, temperature: 0.2, maxOutputTokens: 9 }))
        assert.strictEqual(asked[0].body.max_tokens, 9)
      }
      // Any agent can ask a gateway for a name: a look ahead at each part would take minutes for this one.
      assert.isFalse(thinks(`${"/gpt-5".repeat(300_000)}chat`))
      assert.isTrue(thinks("/gpt-5-chat/gpt-5"))
    }),
  )

  it.effect("gives calls without an id a unique one", () =>
    Effect.gen(function* () {
      const toolCalls = [
        { id: "", name: "look", arguments: "" },
        { id: "", name: "look", arguments: "{}" },
      ]
      const { completion } = yield* call({ say: () => ({ toolCalls }) })
      assert.deepStrictEqual(
        completion.toolCalls.map(({ id, arguments: said }) => [id, said]),
        [
          ["call_1_0", "{}"],
          ["call_1_1", "{}"],
        ],
      )
    }),
  )

  it.effect("as Effect's LanguageModel, streams text as it arrives, then the calls", () =>
    Effect.gen(function* () {
      const toolCalls = [{ id: "a", name: "look", arguments: '{"at":"sky"}' }]
      const server = yield* serve({
        say: ({ tools }) => ({ content: "Let me see.", toolCalls: tools === undefined ? [] : toolCalls }),
      })
      const layer = OpenAi.layer({ model: "m", baseUrl: server.url }).pipe(Layer.provide(FetchHttpClient.layer))
      const tools = Toolkit.make(Tool.make("look", { parameters: Schema.Struct({ at: Schema.String }) }))
      const parts = yield* Stream.runCollect(
        LanguageModel.streamText({ prompt: "Hi", toolkit: tools, disableToolCallResolution: true }),
      ).pipe(Effect.provide(layer))
      assert.deepStrictEqual(
        parts.map((part) => {
          if (part.type === "text-delta") return part.delta
          if (part.type === "finish") return `${part.reason} ${part.usage.outputTokens.total}`
          return part.type === "tool-call" ? JSON.stringify(part.params) : part.type
        }),
        ["text-start", "Let", " me", " see.", "text-end", '{"at":"sky"}', "tool-calls 11"],
      )
      const answer = yield* LanguageModel.generateText({ prompt: "Hi" }).pipe(Effect.provide(layer))
      assert.strictEqual(answer.text, "Let me see.")
      assert.deepStrictEqual(server.asked[1].body.messages, [{ role: "user", content: "Hi" }])
    }),
  )

  it.effect("names an invalid address", () =>
    Effect.gen(function* () {
      for (const baseUrl of ["localhost:8000", "file:///x", "nowhere"]) {
        const error = yield* Effect.flip(OpenAi.make({ model: "m", baseUrl }))
        assert.strictEqual(
          error.message,
          `m: base_url: expected an address that begins with http:// or https://, found "${baseUrl}"`,
        )
      }
    }).pipe(Effect.provide(FetchHttpClient.layer)),
  )

  it.effect("recognises OpenAI's and Gemini's addresses: their keys, and the fields that they refuse", () =>
    Effect.gen(function* () {
      const sent: Array<readonly [string, string | undefined, unknown]> = []
      const client = HttpClient.make((request, url) => {
        const body = request.body._tag === "Uint8Array" ? JSON.parse(new TextDecoder().decode(request.body.body)) : null
        sent.push([url.href, request.headers.authorization, { ...body, messages: null }])
        const answer = { choices: [{ message: { content: "Hi" }, logprobs: { content: [{ logprob: -1, id: 1 }] } }] }
        return Effect.succeed(HttpClientResponse.fromWeb(request, Response.json(answer)))
      })
      const asking = (options: Partial<OpenAi.OpenAiOptions>) =>
        Effect.flatMap(OpenAi.make({ model: "m", thinkingBudget: 99, ...options }), (lm) =>
          lm.complete(ask({ traceTokens: true })),
        ).pipe(
          Effect.provideService(HttpClient.HttpClient, client),
          Effect.provideService(
            ConfigProvider.ConfigProvider,
            ConfigProvider.fromUnknown({ OPENAI_API_KEY: "o", GOOGLE_API_KEY: "g" }),
          ),
        )
      yield* asking({})
      yield* asking({ baseUrl: "https://api.openai.com/" })
      yield* asking({ baseUrl: OpenAi.geminiUrl })
      const body = { model: "m", messages: null, logprobs: true }
      const thinking = { extra_body: { google: { thinking_config: { thinking_budget: 99 } } } }
      assert.deepStrictEqual(sent, [
        ["https://api.openai.com/v1/chat/completions", "Bearer o", body],
        ["https://api.openai.com/v1/chat/completions", "Bearer o", body],
        [`${OpenAi.geminiUrl}/chat/completions`, "Bearer g", { ...body, ...thinking }],
      ])
    }),
  )
})
