import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import OpenAI, { APIError } from "openai"
import { LmRequest } from "../../../src/agents/lm/Chat.ts"
import * as LmConfig from "../../../src/agents/lm/LmConfig.ts"
import * as Lms from "../../../src/agents/lm/Lms.ts"
import * as Scripted from "../../../src/agents/lm/providers/scripted.ts"
import * as Node from "../../../src/node.ts"
import { disk } from "../../run/store/disk.ts"
import { serve } from "../lm/server.ts"
import { behind, opened, send } from "./opened.ts"

const machine = Layer.mergeAll(disk, Node.httpClient, Node.gateway)

const call = { id: "call_1", name: "add", arguments: '{"a":1}' }
const parameters = { type: "object", properties: { a: { type: "number" } } }
const tools: LmRequest["tools"] = [{ name: "add", description: "Adds.", parameters }]

const flipped = <A>(attempt: () => PromiseLike<A>) =>
  Effect.flip(Effect.tryPromise({ try: () => Promise.resolve(attempt()), catch: (error) => error }))

describe("Anthropic's messages", () => {
  /** Opens our own client of the protocol to a session that `lm` answers. */
  const client = Effect.fnUntraced(function* (session: { readonly at: string; readonly key: string }) {
    const config = LmConfig.make({ model: "claude-test", baseUrl: `${session.at}/v1`, maxRetries: 0 })
    return yield* Lms.open({ ...config, apiKey: Redacted.make(session.key) })
  })

  it.live("are converted for a model that does not speak them, with tools and their results", () =>
    Effect.gen(function* () {
      const session = yield* opened(
        Scripted.make(({ messages }) => (messages.length < 4 ? { content: "Hm.", toolCalls: [call] } : "Done")),
      )
      const lm = yield* client(session)
      const asked: LmRequest = {
        ...LmRequest.defaults,
        model: "claude-test",
        messages: [
          { role: "system", content: "Be brief." },
          { role: "user", content: "1?" },
        ],
        tools,
        temperature: 0.5,
        maxOutputTokens: 9,
        stop: ["x"],
      }
      const first = yield* lm.complete(asked)
      assert.deepStrictEqual([first.content, first.toolCalls, first.finishReason], ["Hm.", [call], "tool_calls"])
      const messages: LmRequest["messages"] = [
        ...asked.messages,
        { role: "assistant", content: "Hm.", toolCalls: [call] },
        { role: "tool", toolCallId: "call_1", toolName: "add", content: "2", isError: true },
      ]
      assert.strictEqual((yield* lm.complete({ ...asked, messages })).content, "Done")
      const [one, two] = session.calls()
      assert.deepStrictEqual(one.messages, asked.messages)
      assert.deepStrictEqual(two.messages, messages)
      assert.deepStrictEqual(one.tools, tools)
    }).pipe(Effect.provide(machine)),
  )

  it.live("have their own form of streams and of failures", () =>
    Effect.gen(function* () {
      const session = yield* opened(Scripted.make(() => ({ content: "Hm.", toolCalls: [call] })))
      const body = { model: "m", max_tokens: 5, messages: [{ role: "user", content: "Hi" }], stream: true }
      const key = session.key
      const streamed = yield* send(`${session.baseUrl}/messages`, {
        body: JSON.stringify(body),
        headers: { "x-api-key": key },
      })
      const types = [...streamed.text.matchAll(/^event: (.*)$/gm)].map(([, type]) => type)
      const block = ["content_block_start", "content_block_delta", "content_block_stop"]
      assert.deepStrictEqual(types, ["message_start", ...block, ...block, "message_delta", "message_stop"])
      const refused = yield* send(`${session.baseUrl}/messages`, { key, body: JSON.stringify({ ...body, top_k: 3 }) })
      assert.strictEqual(refused.status, 400)
      const { type, error } = JSON.parse(refused.text)
      assert.deepStrictEqual([type, error.type], ["error", "invalid_request_error"])
      assert.match(error.message, /top_k: not supported/)
      const stranger = yield* send(`${session.baseUrl}/messages`, { key: "x", body: JSON.stringify(body) })
      assert.deepStrictEqual([stranger.status, JSON.parse(stranger.text).error.type], [401, "authentication_error"])
    }).pipe(Effect.provide(machine)),
  )

  it.live("pass through unchanged to a server that speaks them", () =>
    Effect.gen(function* () {
      const server = yield* serve({ say: () => ({ content: "Hello you", toolCalls: [call] }) })
      const lm = yield* behind(server.url, { protocol: "anthropic" })
      const { baseUrl, key, calls } = yield* opened(lm)
      const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "AA==" } }
      const body = {
        model: "m",
        max_tokens: 5,
        messages: [{ role: "user", content: [image] }],
        thinking: { type: "enabled", budget_tokens: 2000 },
      }
      const headers = { "anthropic-beta": "files-api" }
      for (const stream of [false, true]) {
        const sent = { ...body, stream }
        const answer = yield* send(`${baseUrl}/messages`, { key, body: JSON.stringify(sent), headers })
        const asked = server.asked.at(-1)
        assert.deepStrictEqual(asked?.body, { ...sent, model: "target" })
        assert.strictEqual(asked?.headers["anthropic-beta"], "files-api")
        const direct = yield* send(`${server.url}/v1/messages`, { body: asked?.text ?? "" })
        assert.strictEqual(answer.text, direct.text)
        assert.match(answer.text, /"thinking"/)
      }
      const [whole, streamed] = calls()
      assert.deepStrictEqual(whole.completion, streamed.completion)
      assert.deepStrictEqual(whole.messages, [{ role: "user", content: "[image]" }])
      assert.deepStrictEqual(whole.completion.toolCalls, [call])
    }).pipe(Effect.provide(machine)),
  )
})

describe("OpenAI's responses", () => {
  const tool = { type: "function" as const, name: "add", description: "Adds.", parameters, strict: false }

  it.live("answer whole and streamed, with calls of functions and their outputs", () =>
    Effect.gen(function* () {
      const { client, calls } = yield* opened(
        Scripted.make(({ messages }) =>
          messages.at(-1)?.role === "tool" ? "Two" : { content: "", toolCalls: [call], finishReason: "tool_calls" },
        ),
      )
      const first = yield* Effect.promise(() =>
        client.responses.create({
          model: "m",
          instructions: "Be brief.",
          input: "1?",
          tools: [tool],
          max_output_tokens: 5,
        }),
      )
      const [item] = first.output
      assert.deepStrictEqual(item.type === "function_call" && [item.call_id, item.name, item.arguments], [
        "call_1",
        "add",
        '{"a":1}',
      ])
      const called = first.output.filter((one) => one.type === "function_call")
      const output = { type: "function_call_output" as const, call_id: "call_1", output: "2" }
      const second = yield* Effect.promise(() =>
        client.responses
          .stream({ model: "m", input: [{ role: "user", content: "1?" }, ...called, output], tools: [tool] })
          .finalResponse(),
      )
      assert.strictEqual(second.output_text, "Two")
      assert.strictEqual(second.usage?.output_tokens, 1)
      const third = yield* Effect.promise(() =>
        client.responses.create({ model: "m", previous_response_id: second.id, input: "Sure?" }),
      )
      assert.strictEqual(third.output[0].type, "function_call")
      const [, two, three] = calls()
      assert.deepStrictEqual(two.messages, [
        { role: "user", content: "1?" },
        { role: "assistant", content: "", toolCalls: [call] },
        { role: "tool", toolCallId: "call_1", toolName: "add", content: "2" },
      ])
      assert.deepStrictEqual(three.messages, [
        ...two.messages,
        { role: "assistant", content: "Two" },
        { role: "user", content: "Sure?" },
      ])
    }).pipe(Effect.provide(machine)),
  )

  it.live("are converted to the protocol of the model's server", () =>
    Effect.gen(function* () {
      const server = yield* serve({ say: () => "Hello" })
      const { client } = yield* opened(yield* behind(server.url))
      const answer = yield* Effect.promise(() => client.responses.create({ model: "m", input: "Hi", temperature: 0.5 }))
      assert.strictEqual(answer.output_text, "Hello")
      assert.strictEqual(server.asked[0].path, "/v1/chat/completions")
      assert.deepStrictEqual(server.asked[0].body.messages, [{ role: "user", content: "Hi" }])
    }).pipe(Effect.provide(machine)),
  )

  it.live("refuse what they cannot do, and unknown earlier answers", () =>
    Effect.gen(function* () {
      const { client } = yield* opened(Scripted.make(Scripted.echo))
      const { id } = yield* Effect.promise(() => client.responses.create({ model: "m", input: "Hi", store: false }))
      const image = { type: "input_image" as const, image_url: "data:image/png;base64,AA==", detail: "auto" as const }
      const refusals = [
        yield* flipped(() => client.responses.create({ model: "m", input: "Hi", tools: [{ type: "web_search" }] })),
        yield* flipped(() => client.responses.create({ model: "m", input: [{ role: "user", content: [image] }] })),
        yield* flipped(() => client.responses.create({ model: "m", input: "Hi", previous_response_id: "resp_x" })),
        yield* flipped(() => client.responses.create({ model: "m", input: "Hi", previous_response_id: id })),
      ]
      const statuses = refusals.map((error) => (error instanceof APIError ? [error.status, error.code] : error))
      assert.deepStrictEqual(statuses, [
        [400, "invalid_request"],
        [400, "invalid_request"],
        [404, "previous_response_not_found"],
        [404, "previous_response_not_found"],
      ])
    }).pipe(Effect.provide(machine)),
  )
})

describe("a session's other routes", () => {
  it.live("say what is missing", () =>
    Effect.gen(function* () {
      const { client, at, key } = yield* opened(Scripted.make(Scripted.echo))
      const error = yield* flipped(() => client.embeddings.create({ model: "m", input: "Hi" }))
      assert.instanceOf(error, APIError)
      assert.deepStrictEqual([error.status, error.code], [404, "no_embeddings"])
      const unknown = yield* send(`${at}/v1/files`, { key, body: "{}" })
      assert.deepStrictEqual([unknown.status, JSON.parse(unknown.text).error.code], [404, "unknown_url"])
      assert.instanceOf(client, OpenAI)
    }).pipe(Effect.provide(machine)),
  )
})
