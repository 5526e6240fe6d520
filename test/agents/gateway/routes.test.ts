/** Several answers at once, numbers of tokens, and lists of models, as the clients of the protocols expect them. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { APIError } from "openai"
import { SamplingSeed } from "../../../src/agents/lm/middleware/seeded.ts"
import * as Scripted from "../../../src/agents/lm/providers/scripted.ts"
import * as Node from "../../../src/node.ts"
import { disk } from "../../run/store/disk.ts"
import { serve } from "../lm/server.ts"
import { behind, opened, send } from "./opened.ts"
import { running } from "./run/running.ts"

const machine = Layer.mergeAll(disk, Node.httpClient, Node.gateway)

const messages = [{ role: "user" as const, content: "Hi" }]
const call = { id: "call_1", name: "add", arguments: '{"a":1}' }

describe("a request for several answers", () => {
  it.live("gets a choice for each, with a seed of its own, and each is recorded", () =>
    Effect.gen(function* () {
      const seeds: Array<number | null> = []
      const lm = {
        complete: Scripted.make(({ seed }) => {
          seeds.push(seed)
          return `answer ${seeds.length}`
        }).complete,
      }
      const { client, calls } = yield* opened(lm).pipe(Effect.provideService(SamplingSeed, 7))
      const answer = yield* Effect.promise(() => client.chat.completions.create({ model: "m", messages, n: 3 }))
      assert.deepStrictEqual(
        answer.choices.map(({ index, message }) => [index, message.content]),
        [1, 2, 3].map((nth) => [nth - 1, `answer ${nth}`]),
      )
      assert.strictEqual(answer.usage?.completion_tokens, 6)
      assert.deepStrictEqual([seeds[0], new Set(seeds).size], [null, 3])
      assert.deepStrictEqual(
        calls().map(({ completion }) => completion.content),
        ["answer 1", "answer 2", "answer 3"],
      )
    }).pipe(Effect.provide(machine)),
  )

  it.live("has choices in a stream, too, with tools and the numbers of tokens", () =>
    Effect.gen(function* () {
      const { client } = yield* opened(Scripted.make(() => ({ content: "Hm.", toolCalls: [call] })))
      const body = { model: "m", messages, n: 2, stream_options: { include_usage: true } }
      const whole = yield* Effect.promise(() => client.chat.completions.stream(body).finalChatCompletion())
      for (const { message, finish_reason } of whole.choices) {
        assert.strictEqual(message.content, "Hm.")
        assert.deepStrictEqual(
          message.tool_calls?.map(({ id }) => id),
          ["call_1"],
        )
        assert.strictEqual(finish_reason, "tool_calls")
      }
      assert.deepStrictEqual([whole.choices.length, whole.usage?.completion_tokens], [2, 2])
    }).pipe(Effect.provide(machine)),
  )

  it.live("becomes several requests to a server, whose answers keep their own fields", () =>
    Effect.gen(function* () {
      let nth = 0
      const server = yield* serve({ say: () => `answer ${++nth}`, as: "vllm" })
      const { baseUrl, key } = yield* opened(yield* behind(server.url))
      const body = { model: "m", messages, n: 2, logprobs: true, unknown: 1, stream: true }
      const { text } = yield* send(`${baseUrl}/chat/completions`, { key, body: JSON.stringify(body) })
      for (const { body: sent } of server.asked) {
        assert.deepStrictEqual<unknown>(sent, { model: "target", messages, logprobs: true, unknown: 1 })
      }
      assert.strictEqual(server.asked.length, 2)
      assert.match(text, /"index":1,"delta":\{"role":"assistant","content":"answer [12]"\},"logprobs":\{"content":\[/)
      assert.match(text, /data: \[DONE\]\n\n$/)
    }).pipe(Effect.provide(machine)),
  )

  it.live("gets different answers also with a seed of the agent, whose own seed the first one has", () =>
    Effect.gen(function* () {
      const server = yield* serve({ say: () => "Yes." })
      const { client, calls } = yield* opened(yield* behind(server.url))
      yield* Effect.promise(() => client.chat.completions.create({ model: "m", messages, n: 3, seed: 7 }))
      const seeds = server.asked.map(({ body }) => body["seed"])
      assert.include(seeds, 7)
      assert.strictEqual(new Set(seeds).size, 3)
      assert.lengthOf(calls(), 3)
    }).pipe(Effect.provide(machine)),
  )

  it.live("fails as a whole if one answer does", () =>
    Effect.gen(function* () {
      const server = yield* serve({
        fault: (_, before) => (before === 1 ? { kind: "status", status: 422 } : { kind: "none" }),
      })
      const { client, calls } = yield* opened(yield* behind(server.url))
      const error = yield* Effect.flip(
        Effect.tryPromise({
          try: () => client.chat.completions.create({ model: "m", messages, n: 2 }),
          catch: (error) => error,
        }),
      )
      assert.instanceOf(error, APIError)
      // It is the server's own refusal.
      assert.strictEqual(error.status, 422)
      assert.isAtMost(calls().length, 1)
    }).pipe(Effect.provide(machine)),
  )
})

describe("the numbers of tokens of messages", () => {
  const asked = { model: "quick", system: "Be brief.", messages: [{ role: "user", content: "x".repeat(400) }] }

  it.live("come from a server that speaks the protocol, and cost nothing", () =>
    Effect.gen(function* () {
      const server = yield* serve()
      const lmConfig = { model: "m", protocol: "anthropic", baseUrl: server.url, budget: { calls: 1 } }
      const aliases = [{ name: "quick", model: "small" }]
      const { used } = yield* running({ config: { lmConfig, aliases } }, (url) =>
        Effect.forEach([asked, asked], (body) =>
          send(`${url}/sessions/a/v1/messages/count_tokens`, {
            body: JSON.stringify(body),
            headers: { "anthropic-beta": "new-2026" },
          }),
        ),
      )
      assert.deepStrictEqual(
        used.map(({ status, text }) => [status, text]),
        [1, 2].map(() => [200, '{"input_tokens":42}']),
      )
      assert.deepStrictEqual<unknown>(server.asked[0].body, { ...asked, model: "small" })
      assert.strictEqual(server.asked[0].path, "/v1/messages/count_tokens")
      assert.strictEqual(server.asked[0].headers["anthropic-beta"], "new-2026")
    }).pipe(Effect.provide(machine)),
  )

  it.live("are an estimate for other models, and errors have the protocol's form", () =>
    Effect.gen(function* () {
      const { baseUrl, key, calls } = yield* opened(Scripted.make(Scripted.echo))
      const count = (body: object) => send(`${baseUrl}/messages/count_tokens`, { key, body: JSON.stringify(body) })
      assert.deepStrictEqual(JSON.parse((yield* count(asked)).text), { input_tokens: 103 })
      const wrong = yield* count({ model: "m", messages: [] })
      assert.strictEqual(wrong.status, 400)
      assert.strictEqual(JSON.parse(wrong.text).error.type, "invalid_request_error")
      assert.deepStrictEqual(calls(), [])
    }).pipe(Effect.provide(machine)),
  )
})

describe("the models", () => {
  it.live("are the names that agents may use, in the form of the client's protocol, and one by one", () =>
    Effect.gen(function* () {
      const { used } = yield* running({}, (url) =>
        Effect.forEach(["v1/models", "v1/models/quick", "v1/models/other"], (path) =>
          Effect.forEach([{}, { "anthropic-version": "2023-06-01" }], (headers) =>
            send(`${url}/sessions/new/${path}`, { method: "GET", headers }),
          ),
        ),
      )
      const [lists, one, other] = used.map((answers) => answers.map(({ text }) => JSON.parse(text)))
      const names = ["quick", "scripted:echo"]
      assert.deepStrictEqual(
        lists.map(({ data }) => data.map(({ id }: { readonly id: string }) => id)),
        [names, names],
      )
      assert.deepStrictEqual([lists[0].object, lists[1].has_more, lists[1].last_id], ["list", false, "scripted:echo"])
      assert.deepStrictEqual([one[0].object, one[1].type, one[1].display_name], ["model", "model", "quick"])
      assert.deepStrictEqual(
        used[2].map(({ status }) => status),
        [404, 404],
      )
      assert.strictEqual(other[0].error.code, "model_not_found")
    }).pipe(Effect.provide(machine)),
  )
})
