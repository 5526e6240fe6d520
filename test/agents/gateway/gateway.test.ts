import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import OpenAI, { APIError, APIUserAbortError } from "openai"
import { CallContext } from "../../../src/agents/lm/Lm.ts"
import { SamplingSeed } from "../../../src/agents/lm/middleware/seeded.ts"
import * as Scripted from "../../../src/agents/lm/providers/scripted.ts"
import * as Node from "../../../src/node.ts"
import { disk } from "../../run/store/disk.ts"
import { answering, failure } from "../lm/support.ts"
import { serve } from "../lm/server.ts"
import { behind, opened, send } from "./opened.ts"

const messages = [{ role: "user" as const, content: "Hi there" }]
const tool = {
  type: "function" as const,
  function: {
    name: "add",
    description: "Adds.",
    parameters: { type: "object", properties: { a: { type: "number" } } },
  },
}
const call = { id: "call_1", name: "add", arguments: '{"a":1}' }

const machine = Layer.mergeAll(disk, Node.httpClient, Node.gateway)

describe("a session whose model is not behind a server", () => {
  it.live("answers a whole request, and records it", () =>
    Effect.gen(function* () {
      const lm = Scripted.make(({ messages, temperature, maxOutputTokens }) => ({
        content: `${messages.length} ${temperature} ${maxOutputTokens}`,
      }))
      const { client, calls } = yield* opened(lm, { base: { temperature: 0.5, maxOutputTokens: 7 } })
      const answer = yield* Effect.promise(() =>
        client.chat.completions.create({ model: "any", messages, temperature: 0.25 }),
      )
      assert.strictEqual(answer.choices[0].message.content, "1 0.25 7")
      assert.strictEqual(answer.choices[0].finish_reason, "stop")
      assert.deepStrictEqual(answer.usage?.total_tokens, 5)
      const [record] = calls()
      assert.deepStrictEqual(record.messages, messages)
      assert.strictEqual(record.completion.content, "1 0.25 7")
      assert.strictEqual(record.tools, undefined)
    }).pipe(Effect.provide(machine)),
  )

  it.live("answers a streamed request with tools", () =>
    Effect.gen(function* () {
      const { client, calls } = yield* opened(Scripted.make(() => ({ content: "Let me see.", toolCalls: [call] })))
      const message = yield* Effect.promise(() =>
        client.chat.completions
          .stream({ model: "any", messages, tools: [tool], stream_options: { include_usage: true } })
          .finalChatCompletion(),
      )
      assert.strictEqual(message.choices[0].message.content, "Let me see.")
      const [called] = message.choices[0].message.tool_calls ?? []
      assert.deepStrictEqual({ ...called }, { ...tool, id: "call_1", function: { name: "add", arguments: '{"a":1}' } })
      assert.strictEqual(message.choices[0].finish_reason, "tool_calls")
      assert.strictEqual(message.usage?.prompt_tokens, 2)
      assert.deepStrictEqual(calls()[0].tools?.[0].name, "add")
      assert.deepStrictEqual(calls()[0].completion.toolCalls, [call])
    }).pipe(Effect.provide(machine)),
  )

  it.live("refuses what its model cannot get, and too many answers", () =>
    Effect.gen(function* () {
      const { client, calls } = yield* opened(Scripted.make(Scripted.echo))
      const image = { type: "image_url" as const, image_url: { url: "data:image/png;base64,AA==" } }
      const asked: ReadonlyArray<readonly [RegExp, Parameters<typeof client.chat.completions.create>[0]]> = [
        [
          /messages\[0\]\.content\[0\] of type image_url: not supported/,
          { model: "m", messages: [{ role: "user", content: [image] }] },
        ],
        [/n: expected a number from 1 to 64, found 65/, { model: "m", messages, n: 65 }],
        [/response_format: not supported/, { model: "m", messages, response_format: { type: "json_object" } }],
      ]
      for (const [message, body] of asked) {
        const error = yield* Effect.flip(
          Effect.tryPromise({ try: () => client.chat.completions.create(body), catch: (error) => error }),
        )
        assert.instanceOf(error, APIError)
        assert.strictEqual(error.status, 400)
        assert.match(error.message, message)
      }
      assert.deepStrictEqual(calls(), [])
    }).pipe(Effect.provide(machine)),
  )

  it.live("samples as in the episode that opened it, and equal requests differently", () =>
    Effect.gen(function* () {
      const seeds: Array<number | null> = []
      const { client } = yield* opened({
        complete: (request) =>
          Effect.flatMap(CallContext, ({ step }) => {
            seeds.push(request.seed === null ? -step : request.seed)
            return Scripted.make(Scripted.echo).complete(request)
          }),
      }).pipe(
        Effect.provideService(SamplingSeed, 7),
        Effect.provideService(CallContext, { phase: { _tag: "train" }, purpose: "action", episode: 2, step: 3 }),
      )
      const ask = Effect.promise(() => client.chat.completions.create({ model: "m", messages }))
      yield* ask
      yield* ask
      yield* ask
      yield* Effect.promise(() => client.chat.completions.create({ model: "m", messages, seed: 5 }))
      // The middleware `seeded` chooses the first seed, so the request has none here.
      assert.strictEqual(seeds[0], -3)
      assert.strictEqual(new Set(seeds).size, 4)
      assert.strictEqual(seeds[3], 5)
    }).pipe(Effect.provide(machine)),
  )

  it.live("samples alike in whatever order different requests arrive", () =>
    Effect.gen(function* () {
      const seedsOf = (id: string, order: ReadonlyArray<string>) =>
        Effect.gen(function* () {
          const seeds: Record<string, Array<number | null>> = {}
          const { client } = yield* opened(
            {
              complete: (request) => {
                const [{ content }] = request.messages
                seeds[content] = [...(seeds[content] ?? []), request.seed]
                return Scripted.make(Scripted.echo).complete(request)
              },
            },
            { id },
          )
          for (const content of order)
            yield* Effect.promise(() =>
              client.chat.completions.create({ model: "m", messages: [{ role: "user", content }] }),
            )
          return seeds
        }).pipe(Effect.provideService(SamplingSeed, 7))
      const one = yield* seedsOf("one", ["first", "second", "second"])
      assert.deepStrictEqual(yield* seedsOf("other", ["second", "first", "second"]), one)
      assert.strictEqual(one["first"][0], null)
      assert.strictEqual(one["second"][0], null)
      assert.isNumber(one["second"][1])
    }).pipe(Effect.provide(machine)),
  )

  it.live("tells the agent why a call failed, and that it need not be repeated", () =>
    Effect.gen(function* () {
      const reasons = [
        "unauthorised",
        "rejected",
        "unavailable",
        "exhausted",
        "malformed",
        "budget",
        "cache",
        "refused",
      ] as const
      const { lm } = answering((nth) => Effect.fail(failure(reasons[nth])))
      const { client, calls } = yield* opened(lm)
      const statuses: Array<number | undefined> = []
      for (const _ of reasons) {
        const error = yield* Effect.flip(
          Effect.tryPromise({
            try: () => client.chat.completions.create({ model: "m", messages }),
            catch: (error) => error,
          }),
        )
        assert.instanceOf(error, APIError)
        assert.strictEqual(error.headers?.get("x-should-retry"), "false")
        statuses.push(error.status)
      }
      assert.deepStrictEqual(statuses, [502, 400, 502, 502, 502, 429, 424, 400])
      assert.deepStrictEqual(calls(), [])
    }).pipe(Effect.provide(machine)),
  )
})

describe("a session", () => {
  it.live("takes one finite reward", () =>
    Effect.gen(function* () {
      const { at, key, reward } = yield* opened(Scripted.make(Scripted.echo))
      assert.strictEqual(yield* reward, null)
      for (const body of ['{"reward":"1"}', '{"reward":null}', "{}", '{"reward":NaN}', "[1]", '{"reward":1e999}']) {
        assert.strictEqual((yield* send(`${at}/reward`, { key, body })).status, 400)
      }
      assert.strictEqual((yield* send(`${at}/reward`, { key, body: '{"reward":0.5}' })).status, 200)
      const second = yield* send(`${at}/reward`, { key, body: '{"reward":0.5}' })
      assert.strictEqual(second.status, 409)
      assert.match(second.text, /has the reward 0.5 already/)
      assert.strictEqual(yield* reward, 0.5)
    }).pipe(Effect.provide(machine)),
  )

  it.live("takes only its own key, and no call after its end", () =>
    Effect.gen(function* () {
      const other = yield* opened(Scripted.make(Scripted.echo), { id: "other" })
      const kept = yield* Effect.scoped(
        Effect.gen(function* () {
          const session = yield* opened(Scripted.make(Scripted.echo))
          const stranger = new OpenAI({ baseURL: session.baseUrl, apiKey: other.key, maxRetries: 0 })
          const error = yield* Effect.flip(
            Effect.tryPromise({ try: () => stranger.models.list(), catch: (error) => error }),
          )
          assert.instanceOf(error, APIError)
          assert.deepStrictEqual([error.status, error.code], [401, "invalid_api_key"])
          const models = yield* Effect.promise(() => session.client.models.list())
          assert.deepStrictEqual(
            models.data.map(({ id }) => id),
            ["target"],
          )
          return session
        }),
      )
      const late = yield* Effect.flip(
        Effect.tryPromise({
          try: () => kept.client.chat.completions.create({ model: "m", messages }),
          catch: (error) => error,
        }),
      )
      assert.instanceOf(late, APIError)
      assert.deepStrictEqual([late.status, late.code], [410, "session_ended"])
      assert.strictEqual((yield* send(`${kept.at}x/end`, { key: kept.key, body: "{}" })).status, 404)
      const answer = yield* Effect.promise(() => other.client.chat.completions.create({ model: "m", messages }))
      assert.strictEqual(answer.choices[0].message.content, "Hi there")
    }).pipe(Effect.provide(machine)),
  )

  it.live("refuses bodies that are no requests", () =>
    Effect.gen(function* () {
      const { baseUrl, key, calls } = yield* opened(Scripted.make(Scripted.echo))
      const path = `${baseUrl}/chat/completions`
      const bodies: ReadonlyArray<readonly [string, RegExp]> = [
        ["{", /not valid JSON/],
        ["[]", /expected a JSON object/],
        ['{"messages":[]}', /messages\.0: missing key/],
        ['{"messages":[{"role":"robot","content":"Hi"}]}', /messages\.0\.role: expected/],
        [
          `{"messages":[${Array.from({ length: 20_001 }, () => "1").join(",")}]}`,
          /messages: expected at most 20000 items/,
        ],
        [`{"a":${"[".repeat(100_000)}${"]".repeat(100_000)}}`, /at most 256 lists/],
      ]
      for (const [body, message] of bodies) {
        const answer = yield* send(path, { key, body })
        assert.strictEqual(answer.status, 400)
        assert.match(JSON.parse(answer.text).error.message, message)
      }
      assert.strictEqual(
        (yield* send(path, { key, body: "{}", headers: { "content-type": "text/plain" } })).status,
        415,
      )
      assert.strictEqual(
        (yield* send(path, { key, body: "{}", headers: { origin: "https://example.org" } })).status,
        403,
      )
      const large = yield* send(path, { key, body: " ".repeat(65 * 1024 * 1024) })
      assert.strictEqual(large.status, 413)
      assert.deepStrictEqual(calls(), [])
    }).pipe(Effect.provide(machine)),
  )

  it.live("ends its calls in progress when it ends", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const stopped = yield* Deferred.make<void>()
      const lm = Scripted.make(() =>
        Deferred.succeed(begun, undefined).pipe(
          Effect.andThen(Effect.never),
          Effect.onInterrupt(() => Deferred.succeed(stopped, undefined)),
        ),
      )
      const asked = yield* Effect.scoped(
        Effect.gen(function* () {
          const { client } = yield* opened(lm)
          const fiber = yield* Effect.forkDetach(
            Effect.flip(
              Effect.tryPromise({
                try: () => client.chat.completions.create({ model: "m", messages }),
                catch: (error) => error,
              }),
            ),
          )
          yield* Deferred.await(begun)
          return fiber
        }),
      )
      yield* Deferred.await(stopped)
      const error = yield* Fiber.join(asked)
      assert.instanceOf(error, APIError)
      assert.strictEqual(error.status, 410)
    }).pipe(Effect.provide(machine)),
  )
})

describe("a session whose model's server speaks the agent's protocol", () => {
  it.live("passes body and answer on unchanged, with the model's name at the server", () =>
    Effect.gen(function* () {
      const server = yield* serve({ say: () => "Hello you" })
      const { baseUrl, key, calls } = yield* opened(yield* behind(server.url))
      const image = { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } }
      const body = {
        model: "alias",
        messages: [{ role: "user", content: [{ type: "text", text: "See" }, image] }],
        response_format: { type: "json_object" },
        logit_bias: { 5: 1 },
        unknown: { deep: [1, null, "x"] },
      }
      const answer = yield* send(`${baseUrl}/chat/completions`, { key, body: JSON.stringify(body) })
      assert.strictEqual(answer.status, 200)
      assert.deepStrictEqual(server.asked[0].body, { ...body, model: "target" })
      const direct = yield* send(`${server.url}/v1/chat/completions`, { body: server.asked[0].text })
      assert.strictEqual(answer.text, direct.text)
      assert.deepStrictEqual(calls()[0].messages, [{ role: "user", content: "See\n[image_url]" }])
      assert.strictEqual(calls()[0].completion.content, "Hello you")
    }).pipe(Effect.provide(machine)),
  )

  it.live("passes the bytes of a stream on, without the numbers of tokens that only the record needs", () =>
    Effect.gen(function* () {
      const server = yield* serve({ say: () => ({ content: "Hello you there", toolCalls: [call] }) })
      const { baseUrl, key, calls } = yield* opened(yield* behind(server.url))
      const ask = (more: object) =>
        send(`${baseUrl}/chat/completions`, {
          key,
          body: JSON.stringify({ model: "m", messages, stream: true, ...more }),
        })
      const plain = yield* ask({})
      const counted = yield* ask({ stream_options: { include_usage: true } })
      const direct = yield* send(`${server.url}/v1/chat/completions`, { body: server.asked[1].text })
      assert.strictEqual(counted.text, direct.text)
      assert.match(counted.text, /"usage":/)
      const withoutUsage = direct.text
        .split("\n\n")
        .filter((event) => !event.includes('"usage"'))
        .join("\n\n")
      assert.strictEqual(plain.text, withoutUsage)
      const [first, second] = calls()
      assert.deepStrictEqual(first.completion, second.completion)
      assert.strictEqual(first.completion.content, "Hello you there")
      assert.isAbove(first.completion.usage.outputTokens, 0)
    }).pipe(Effect.provide(machine)),
  )

  it.live("asks for tokens that the record needs", () =>
    Effect.gen(function* () {
      const server = yield* serve({ say: () => "Hello", as: "vllm" })
      const { client, calls } = yield* opened(yield* behind(server.url), {
        base: { traceTokens: true, temperature: 0.5, seed: 3 },
      })
      yield* Effect.promise(() => client.chat.completions.create({ model: "m", messages }))
      const { logprobs, return_token_ids, temperature, seed } = server.asked[0].body
      assert.deepStrictEqual([logprobs, return_token_ids, temperature, seed], [true, true, 0.5, 3])
      assert.strictEqual(calls()[0].completion.tokens?.completionIds.length, 5)
      assert.strictEqual(calls()[0].completion.tokens?.logprobs?.length, 5)
    }).pipe(Effect.provide(machine)),
  )

  it.live("gives the agent the server's own refusal", () =>
    Effect.gen(function* () {
      const text = '{"error":{"message":"Too long.","code":"context_length_exceeded","param":"messages"}}'
      const server = yield* serve({ fault: () => ({ kind: "status", status: 422, body: text }) })
      const { baseUrl, key } = yield* opened(yield* behind(server.url))
      const answer = yield* send(`${baseUrl}/chat/completions`, { key, body: JSON.stringify({ model: "m", messages }) })
      assert.deepStrictEqual([answer.status, answer.text], [422, text])
    }).pipe(Effect.provide(machine)),
  )

  it.live("retries a stream that fails before its first byte, but not one that has begun", () =>
    Effect.gen(function* () {
      const server = yield* serve({
        say: () => "Hello you there my friend",
        fault: (text, before) => {
          if (text.includes("late")) return { kind: "dropped" }
          return before === 0 ? { kind: "status", status: 500 } : { kind: "none" }
        },
      })
      const { client, calls, baseUrl, key } = yield* opened(yield* behind(server.url))
      const early = yield* Effect.promise(() => client.chat.completions.stream({ model: "m", messages }).finalContent())
      assert.strictEqual(early, "Hello you there my friend")
      assert.strictEqual(calls()[0].completion.attempts, 2)
      const body = { model: "m", messages: [{ role: "user", content: "late" }], stream: true }
      const late = yield* send(`${baseUrl}/chat/completions`, { key, body: JSON.stringify(body) })
      assert.strictEqual(late.status, 200)
      // The server stopped within an event, with which the error must not merge.
      assert.match(late.text, /\n\ndata: \{"error":\{.*upstream_unavailable/)
      assert.strictEqual(server.asked.length, 3)
      assert.strictEqual(calls()[1].incomplete, true)
      assert.match(calls()[1].completion.content, /^Hello/)
    }).pipe(Effect.provide(machine)),
  )

  it.live("cancels the request to the server if the agent hangs up before the first byte", () =>
    Effect.gen(function* () {
      const called = yield* Deferred.make<void>()
      const interrupted = yield* Deferred.make<void>()
      const { lm } = answering(() =>
        Effect.andThen(
          Deferred.succeed(called, undefined),
          Effect.onInterrupt(Effect.never, () => Deferred.succeed(interrupted, undefined)),
        ),
      )
      const { client } = yield* opened(lm)
      const hangingUp = new AbortController()
      const asked = client.chat.completions
        .create({ model: "m", messages }, { signal: hangingUp.signal })
        .then(undefined, (error: unknown) => error)
      yield* Deferred.await(called)
      hangingUp.abort()
      assert.instanceOf(yield* Effect.promise(() => asked), APIUserAbortError)
      yield* Deferred.await(interrupted)
    }).pipe(Effect.provide(machine)),
  )

  it.live("cancels the request to the server if the agent hangs up, and records what had arrived", () =>
    Effect.gen(function* () {
      const server = yield* serve({ say: () => "Hello you there my friend", fault: () => ({ kind: "stalled" }) })
      const session = yield* opened(yield* behind(server.url))
      yield* Effect.promise(async () => {
        const stream = await session.client.chat.completions.create({ model: "m", messages, stream: true })
        for await (const { choices } of stream) if (choices[0].delta.content) break
      })
      yield* server.until(() => server.left() === 1)
      while (session.calls().length === 0) yield* Effect.yieldNow
      const [record] = session.calls()
      assert.strictEqual(record.incomplete, true)
      assert.match(record.completion.content, /^Hello/)
    }).pipe(Effect.provide(machine)),
  )
})
