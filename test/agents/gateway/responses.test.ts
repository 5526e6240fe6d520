/** OpenAI's responses, as a server that speaks them gets and answers them. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as LmConfig from "../../../src/agents/lm/LmConfig.ts"
import * as Lms from "../../../src/agents/lm/Lms.ts"
import * as Node from "../../../src/node.ts"
import { disk } from "../../run/store/disk.ts"
import { type Fault, type Options, serve } from "../lm/server.ts"
import { behind, opened, send } from "./opened.ts"

const machine = Layer.mergeAll(disk, Node.httpClient, Node.gateway)

const call = { id: "call_1", name: "add", arguments: '{"a":1}' }

/** Opens a session whose server gets responses as they are. */
const passing = Effect.fnUntraced(function* (options: Options, more: Partial<LmConfig.LmOptions> = {}) {
  const server = yield* serve(options)
  const session = yield* opened(yield* behind(server.url, { maxRetries: 1, ...more }, { responses: "passed" }))
  const ask = (body: object) =>
    send(`${session.baseUrl}/responses`, { key: session.key, body: JSON.stringify({ model: "alias", ...body }) })
  return { ...session, server, ask }
})

describe("responses that are passed on", () => {
  it.live("reach the server unchanged, and its answers and streams come back byte for byte", () =>
    Effect.gen(function* () {
      const { ask, server, calls } = yield* passing({ say: () => ({ content: "Hello you", toolCalls: [call] }) })
      const image = { type: "input_image", image_url: "data:image/png;base64,AA==" }
      const body = {
        input: [{ role: "user", content: [{ type: "input_text", text: "See" }, image] }],
        tools: [{ type: "web_search" }],
        reasoning: { effort: "low" },
        include: ["reasoning.encrypted_content"],
      }
      for (const stream of [false, true]) {
        const answer = yield* ask({ ...body, stream })
        assert.strictEqual(answer.status, 200)
        const asked = server.asked.at(-1)
        assert.strictEqual(asked?.path, "/v1/responses")
        assert.deepStrictEqual<unknown>(asked?.body, { model: "target", ...body, stream })
        const direct = yield* send(`${server.url}/v1/responses`, { body: asked?.text ?? "" })
        const sameId = direct.text.replace(/resp_server_\d+/g, (id) => `resp_server_${Number(id.slice(12)) - 1}`)
        assert.strictEqual(answer.text, sameId)
        assert.match(answer.text, /encrypted_content/)
      }
      const [whole, streamed] = calls()
      assert.deepStrictEqual(whole.completion, streamed.completion)
      assert.deepStrictEqual(whole.messages, [{ role: "user", content: "See\n[input_image]" }])
      const { content, toolCalls, finishReason, usage, model } = whole.completion
      assert.deepStrictEqual(
        [content, toolCalls, finishReason, model],
        ["Hello you", [call], "tool_calls", "target-2026"],
      )
      assert.deepStrictEqual(usage, { inputTokens: 7, outputTokens: 5, reasoningTokens: 2 })
    }).pipe(Effect.provide(machine)),
  )

  it.live("continue the server's answers, whose conversations are recorded", () =>
    Effect.gen(function* () {
      const { client, calls, server } = yield* passing({ say: ({ input }) => `You said ${String(input)}.` })
      const first = yield* Effect.promise(() => client.responses.create({ model: "m", input: "One" }))
      assert.strictEqual(first.id, "resp_server_1")
      yield* Effect.promise(() =>
        client.responses.stream({ model: "m", input: "Two", previous_response_id: first.id }).finalResponse(),
      )
      // An answer that the server has from elsewhere.
      yield* Effect.promise(() =>
        client.responses.create({ model: "m", input: "Three", previous_response_id: "resp_0" }),
      )
      assert.deepStrictEqual(
        server.asked.map(({ body }) => body["previous_response_id"]),
        [undefined, "resp_server_1", "resp_0"],
      )
      assert.deepStrictEqual(
        calls().map(({ messages }) => messages.map(({ content }) => content)),
        [["One"], ["One", "You said One.", "Two"], ["Three"]],
      )
    }).pipe(Effect.provide(machine)),
  )

  it.live("are refused in the background, where no budget would count them", () =>
    Effect.gen(function* () {
      const { ask, server, calls } = yield* passing({ say: () => "Hello" })
      for (const background of [true, "true", 1]) {
        const { status, text } = yield* ask({ input: "Hi", background })
        assert.strictEqual(status, 400)
        assert.include(text, "background: not supported, because such an answer is not recorded")
      }
      assert.deepStrictEqual([server.asked.length, calls().length], [0, 0])
      assert.strictEqual((yield* ask({ input: "Hi", background: false })).status, 200)
    }).pipe(Effect.provide(machine)),
  )

  it.live("have the settings of the session that they lack, and a limit of tokens that cut them off", () =>
    Effect.gen(function* () {
      const { baseUrl, key, server, calls } = yield* Effect.gen(function* () {
        const server = yield* serve({ say: () => ({ content: "Hel", finish: "length" }) })
        const lm = yield* behind(server.url, {}, { responses: "passed" })
        return { server, ...(yield* opened(lm, { base: { temperature: 0.5, maxOutputTokens: 9, seed: 3 } })) }
      })
      const body = JSON.stringify({ model: "m", input: "Hi", temperature: 1 })
      yield* send(`${baseUrl}/responses`, { key, body })
      assert.deepStrictEqual<unknown>(server.asked[0].body, {
        model: "target",
        input: "Hi",
        temperature: 1,
        max_output_tokens: 9,
      })
      assert.deepStrictEqual([calls()[0].completion.content, calls()[0].completion.finishReason], ["Hel", "length"])
    }).pipe(Effect.provide(machine)),
  )

  it.live("record a refusal of the model, and the part of a stream that broke off", () =>
    Effect.gen(function* () {
      const refusing = yield* passing({ say: () => ({ refusal: "I can't." }) })
      assert.strictEqual((yield* refusing.ask({ input: "Hi" })).status, 200)
      assert.strictEqual(refusing.calls()[0].completion.finishReason, "content_filter")
      const server = yield* serve({ say: () => "Hello you there my friend", fault: () => ({ kind: "dropped" }) })
      const lm = yield* behind(server.url, { maxRetries: 0 }, { responses: "passed" })
      const { baseUrl, key, calls } = yield* opened(lm, { id: "broken" })
      const broken = yield* send(`${baseUrl}/responses`, {
        key,
        body: JSON.stringify({ model: "m", input: "Hi", stream: true }),
      })
      assert.match(broken.text, /upstream_unavailable/)
      assert.strictEqual(calls()[0].incomplete, true)
      assert.match(calls()[0].completion.content, /^Hello/)
    }).pipe(Effect.provide(machine)),
  )

  it.live("may have very many items, and a stream may end with a response that does not repeat them", () =>
    Effect.gen(function* () {
      const item = { type: "message", content: [{ type: "output_text", text: "Hi" }] }
      const events = [
        { type: "response.output_item.added", output_index: 0, item: { ...item, content: [] } },
        { type: "response.output_text.delta", output_index: 0, delta: "Hi" },
        { type: "response.output_item.done", output_index: 0, item },
        { type: "response.completed", response: { id: "resp_1", status: "completed" } },
      ]
      const whole = JSON.stringify({ output: [...Array.from({ length: 150_000 }, () => ({ type: "x" })), item] })
      const streamed = events.map((one) => `data: ${JSON.stringify(one)}\n\n`).join("")
      const fault = (text: string): Fault => ({ kind: "body", body: /"stream":true/.test(text) ? streamed : whole })
      const { ask, calls } = yield* passing({ fault })
      for (const stream of [false, true]) assert.strictEqual((yield* ask({ input: "Hi", stream })).status, 200)
      assert.deepStrictEqual(
        calls().map(({ completion, incomplete }) => [completion.content, incomplete]),
        [
          ["Hi", false],
          ["Hi", false],
        ],
      )
    }).pipe(Effect.provide(machine)),
  )

  const failed = `event: error\ndata: {"type":"error","code":"server_error","message":"It broke.","sequence_number":0}\n\n`
  const faults: ReadonlyArray<readonly [string, Fault, number]> = [
    ["no output", { kind: "body", body: "{}" }, 502],
    ["a page", { kind: "body", body: "<html></html>" }, 502],
    [
      "an item far away",
      { kind: "body", body: 'data: {"type":"x","output_index":1000000000,"item":{"type":"x"}}\n\n' },
      502,
    ],
    ["a failure", { kind: "body", body: '{"error":{"message":"Not now.","code":"server_error"},"output":[]}' }, 502],
    ["an error in a stream", { kind: "body", body: failed }, 200],
    ["status 400", { kind: "status", status: 400, body: '{"error":{"message":"No."}}' }, 400],
  ]
  it.live.each(faults.map(([name, fault, status]) => ({ name, fault, status })))(
    "are an error if the server answers with $name",
    ({ fault, status }) =>
      Effect.gen(function* () {
        const { ask, calls } = yield* passing({ fault: () => fault })
        const stream = fault.kind === "body" && fault.body.toString().includes("data: ")
        const answer = yield* ask({ input: "Hi", stream })
        // The bytes of a stream may have been passed on before the gateway understood them.
        assert.strictEqual(answer.status, stream ? 200 : status)
        assert.match(answer.text, /"error"|"type":"error"/)
        for (const { incomplete } of calls()) assert.isTrue(incomplete)
      }).pipe(Effect.provide(machine)),
  )

  it.live("are the default of OpenAI's own server alone", () =>
    Effect.gen(function* () {
      const speaking = (options: LmConfig.LmOptions, more: Lms.LmOpenOptions = {}) =>
        Effect.map(Lms.open(LmConfig.make({ apiKey: "none", ...options }), more), ({ speaks }) => speaks)
      assert.deepStrictEqual(yield* speaking({ model: "gpt-4.1-mini" }), ["chat", "responses"])
      assert.deepStrictEqual(yield* speaking({ model: "gpt-4.1-mini" }, { responses: "converted" }), ["chat"])
      assert.deepStrictEqual(yield* speaking({ model: "vllm:base" }), ["chat"])
      assert.deepStrictEqual(yield* speaking({ model: "claude-test" }, { responses: "passed" }), ["messages"])
      assert.deepStrictEqual(yield* speaking({ model: "scripted:echo" }, { responses: "passed" }), [])
    }).pipe(Effect.provide(machine)),
  )
})
