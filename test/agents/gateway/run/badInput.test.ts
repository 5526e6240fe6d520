/** Agents that do what they should not: the gateway's rollouts stay right. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import OpenAI from "openai"
import * as Node from "../../../../src/node.ts"
import { disk } from "../../../run/store/disk.ts"
import { serve } from "../../lm/server.ts"
import { send } from "../opened.ts"
import { ask, fileIn, rolloutsIn, running } from "./running.ts"

const machine = Layer.mergeAll(disk, Node.httpClient)

const post = (url: string, path: string, body = "{}") => send(`${url}/sessions/${path}`, { body })

describe("an agent that", () => {
  it.live("never ends its session is ended after a while, and its rollout is truncated", () =>
    Effect.gen(function* () {
      const files = new Map<string, Uint8Array>()
      const { used } = yield* running({ files, config: { idleSeconds: 0.02 } }, (url) =>
        Effect.gen(function* () {
          // On a busy machine, the session may have ended before its first call begins.
          yield* Effect.ignore(ask(url, "a"))
          const health = Effect.map(send(`${url}/health`, { method: "GET" }), ({ text }) => JSON.parse(text).sessions)
          while ((yield* health) > 0) yield* Effect.yieldNow
          const late = yield* post(url, "a/v1/chat/completions", '{"messages":[{"role":"user","content":"Hi"}]}')
          while (rolloutsIn(files).length === 0) yield* Effect.yieldNow
          return [late.status, rolloutsIn(files)[0].ending.truncated]
        }),
      )
      assert.deepStrictEqual(used, [410, true])
    }).pipe(Effect.provide(machine)),
  )

  it.live("ends twice, or gives a reward after the end, changes nothing", () =>
    Effect.gen(function* () {
      const { used, files } = yield* running({}, (url) =>
        Effect.gen(function* () {
          yield* ask(url, "a")
          const ends = yield* Effect.all([post(url, "a/end"), post(url, "a/end")], { concurrency: "unbounded" })
          const late = [yield* post(url, "a/end"), yield* post(url, "a/reward", '{"reward":1}')]
          return [...ends, ...late].map(({ status }) => status)
        }),
      )
      assert.include(used, 200)
      assert.deepStrictEqual(used.slice(2), [410, 410])
      assert.deepStrictEqual(
        rolloutsIn(files).map(({ id, totalReward }) => [id, totalReward]),
        [["a", 0]],
      )
    }).pipe(Effect.provide(machine)),
  )

  it.live("gives two rewards at once has one of them", () =>
    Effect.gen(function* () {
      const { used, files } = yield* running({}, (url) =>
        Effect.gen(function* () {
          yield* ask(url, "a")
          const wrong = yield* Effect.forEach(["NaN", '"1"', "1e999", "null"], (reward) =>
            post(url, "a/reward", `{"reward":${reward}}`),
          )
          const both = yield* Effect.all(
            [post(url, "a/reward", '{"reward":1}'), post(url, "a/reward", '{"reward":1}')],
            { concurrency: "unbounded" },
          )
          return { wrong: wrong.map(({ status }) => status), both: both.map(({ status }) => status).toSorted() }
        }),
      )
      assert.deepStrictEqual(used, { wrong: [400, 400, 400, 400], both: [200, 409] })
      assert.deepStrictEqual(
        rolloutsIn(files).map(({ totalReward }) => totalReward),
        [1],
      )
      assert.strictEqual((fileIn(files, "sessions.jsonl") ?? "").match(/"_tag":"Rewarded"/g)?.length, 1)
    }).pipe(Effect.provide(machine)),
  )

  it.live("asks the same twice at once has two conversations, and one that answers itself has another", () =>
    Effect.gen(function* () {
      const { files } = yield* running({}, (url) =>
        Effect.gen(function* () {
          yield* Effect.all([ask(url, "a"), ask(url, "a")], { concurrency: "unbounded" })
          // The prompt has an answer that the model has not given.
          const messages = [
            { role: "user", content: "Hi there" },
            { role: "assistant", content: "I made this up." },
            { role: "user", content: "More" },
          ]
          yield* post(url, "a/v1/chat/completions", JSON.stringify({ messages }))
        }),
      )
      const [{ steps }] = rolloutsIn(files)
      assert.deepStrictEqual(
        steps.map(({ turnId }) => turnId),
        ["a/turn/0", "a/turn/1", "a/turn/2"],
      )
    }).pipe(Effect.provide(machine)),
  )

  it.live("hangs up in the middle of a stream leaves what had arrived in its rollout", () =>
    Effect.gen(function* () {
      const server = yield* serve({ say: () => "Hello you there my friend", fault: () => ({ kind: "stalled" }) })
      const lmConfig = { model: "m", protocol: "openai", baseUrl: server.url }
      const { files } = yield* running({ config: { lmConfig } }, (url) =>
        Effect.gen(function* () {
          const client = new OpenAI({ baseURL: `${url}/sessions/a/v1`, apiKey: "none" })
          yield* Effect.promise(async () => {
            const messages = [{ role: "user" as const, content: "Hi" }]
            const stream = await client.chat.completions.create({ model: "m", messages, stream: true })
            for await (const { choices } of stream) if (choices[0].delta.content) break
          })
          yield* server.until(() => server.left() === 1)
          yield* post(url, "a/end")
        }),
      )
      const [{ steps, ending }] = rolloutsIn(files)
      const [step] = steps
      assert.isTrue(
        step._tag === "AgentStep" && step.call.incomplete && step.call.completion.content.startsWith("Hello"),
      )
      assert.isFalse(ending.truncated)
      assert.strictEqual(JSON.parse(fileIn(files, "metrics.json") ?? "{}").failed_calls, 1)
    }).pipe(Effect.provide(machine)),
  )

  it.live("ends a session that there never was gets an error, and leaves no rollout", () =>
    Effect.gen(function* () {
      const { used, files } = yield* running({ key: "right" }, (url) =>
        Effect.forEach(["wrong", "right"], (key) => send(`${url}/sessions/typo/end`, { body: "{}", key })),
      )
      assert.deepStrictEqual(
        used.map(({ status, text }) => [status, JSON.parse(text).error.code]),
        [
          [401, "invalid_api_key"],
          [404, "unknown_session"],
        ],
      )
      assert.deepStrictEqual(rolloutsIn(files), [])
    }).pipe(Effect.provide(machine)),
  )

  it.live("only asks for embeddings and numbers of tokens meets no limit on recorded calls", () =>
    Effect.gen(function* () {
      const server = yield* serve()
      const lmConfig = { model: "m", protocol: "openai", baseUrl: server.url }
      const { used } = yield* running({ config: { lmConfig, maxCalls: 1 } }, (url) =>
        Effect.gen(function* () {
          const tokens = JSON.stringify({ model: "m", messages: [{ role: "user", content: "Hi" }] })
          const paths = ["a/v1/embeddings", "a/v1/messages/count_tokens", "a/v1/chat/completions"]
          return yield* Effect.forEach([...paths, ...paths], (path) => post(url, path, tokens))
        }),
      )
      assert.deepStrictEqual(
        used.map(({ status }) => status),
        [200, 200, 200, 200, 200, 429],
      )
    }).pipe(Effect.provide(machine)),
  )
})
