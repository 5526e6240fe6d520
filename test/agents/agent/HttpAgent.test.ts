import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer } from "effect"
import * as Agents from "../../../src/agents/agent/Agents.ts"
import { Lm } from "../../../src/agents/lm/Lm.ts"
import * as Scripted from "../../../src/agents/lm/providers/scripted.ts"
import * as Trust from "../../../src/base/trust/Trust.ts"
import { serveHttp } from "../../servers/listen.ts"

const files = Layer.merge(NodeFileSystem.layer, NodePath.layer)

/** A server that answers each task with `answer`, and keeps what it was asked. */
const server = (
  answer: (task: string) => { readonly status?: number; readonly location?: string; readonly body: string },
) =>
  Effect.gen(function* () {
    const asked: Array<{ readonly authorization: string | undefined; readonly task: unknown }> = []
    const { url } = yield* serveHttp((request, response) => {
      const pieces: Array<Buffer> = []
      request.on("data", (piece: Buffer) => pieces.push(piece))
      request.on("end", () => {
        const text = Buffer.concat(pieces).toString()
        asked.push({ authorization: request.headers.authorization, task: JSON.parse(text) })
        const { status = 200, location, body } = answer(text)
        response.writeHead(status, location === undefined ? {} : { location }).end(body)
      })
    })
    return { url, asked }
  })

const asks = (url: string, settings: object = {}) =>
  Effect.gen(function* () {
    const { make } = yield* Agents.decode({ type: "http", url, ...settings })
    const agent = yield* Effect.provideService(make, Lm, Scripted.make(Scripted.echo))
    return yield* agent.act({ _tag: "Observation", text: "2 + 2?" })
  }).pipe(
    Effect.provide(files),
    Effect.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env: { AGENT_TOKEN: "secret-token" } }))),
  )

describe("an agent that is a server", () => {
  it.live("gets the task as JSON, with its options and its token", () =>
    Effect.gen(function* () {
      const { url, asked } = yield* server(() => ({ body: "4\n" }))
      const { outcome, calls } = yield* asks(url, {
        options: { top_k: 3 },
        texts: { my_rules: "Be brief.", ownRules: "" },
        token_variable: "AGENT_TOKEN",
      })
      assert.deepStrictEqual(outcome, { _tag: "Act", action: "4", reward: 0 })
      assert.strictEqual(calls.length, 1)
      const [{ authorization, task }] = asked
      assert.strictEqual(authorization, "Bearer secret-token")
      assert.containSubset(task, {
        text: "2 + 2?",
        turns: [],
        tools: [],
        tool_results: [],
        options: { top_k: 3 },
        texts: { my_rules: "Be brief.", ownRules: "" },
        model: null,
      })
    }),
  )

  it.live("may answer with JSON in snake_case", () =>
    Effect.gen(function* () {
      const body = JSON.stringify({ text: "4", usage: { input_tokens: 3, output_tokens: 5 } })
      const { url } = yield* server(() => ({ body }))
      const { calls } = yield* asks(url)
      assert.deepStrictEqual(calls[0].completion.usage, { inputTokens: 3, outputTokens: 5, reasoningTokens: 0 })
    }),
  )

  it.live("keeps the names in the arguments and results of its tools", () =>
    Effect.gen(function* () {
      const called = { name: "weather", arguments: { city_name: "Rome" } }
      const calling = yield* server(() => ({ body: JSON.stringify({ call: [called] }) }))
      const { outcome } = yield* asks(calling.url)
      assert.strictEqual(outcome._tag === "CallTools" && outcome.toolCalls[0].arguments, '{"city_name":"Rome"}')
      const own = { tool_name: "weather", input: { city_name: "Rome" }, result: { max_temp: 30 } }
      const done = yield* server(() => ({ body: JSON.stringify({ text: "30", tool_calls: [own] }) }))
      const { calls } = yield* asks(done.url)
      const [{ completion, toolResults }] = calls
      assert.deepStrictEqual(completion.toolCalls, [
        { id: "own_0", name: "weather", arguments: '{"city_name":"Rome"}' },
      ])
      assert.strictEqual(toolResults[0].content, '{"max_temp":30}')
    }),
  )

  it.live("sends a key of its address, but saves none and shows none", () =>
    Effect.gen(function* () {
      const { url } = yield* server(() => ({ status: 403, body: "SECRET-CODE is no code" }))
      const withCode = `${url}/answer?team=a&code=SECRET-CODE`
      const { config } = yield* Effect.provide(Agents.decode({ type: "http", url: withCode }), files)
      assert.strictEqual(config["url"], `${url}/answer?team=a&code=<redacted>`)
      const error = yield* Effect.flip(asks(withCode))
      assert.match(error.message, /answered 403: <redacted> is no code/)
      const resumed = yield* Effect.flip(asks(String(config["url"])))
      assert.match(resumed.message, /url: a saved config has <redacted> instead of a key; set agent\.url/)
      const user = yield* Effect.flip(asks("http://me:SECRET-CODE@127.0.0.1:9/"))
      assert.match(user.message, /url: expected an address without user name and password/)
      // An evaluation must not begin, and count all its episodes as failed.
      assert.deepStrictEqual([resumed._tag, user._tag], ["ConfigError", "ConfigError"])
    }),
  )

  it.live("fails with the server's words, without the token", () =>
    Effect.gen(function* () {
      const { url } = yield* server(() => ({ status: 500, body: "secret-token is down" }))
      const error = yield* Effect.flip(asks(url, { token_variable: "AGENT_TOKEN" }))
      assert.match(error.message, /^http: http:.* answered 500: .* is down$/)
      assert.notInclude(error.message, "secret-token")
      const long = yield* server(() => ({ body: "x".repeat(2000) }))
      const tooLong = yield* Effect.flip(asks(long.url, { max_answer_mb: 0.001 }))
      assert.match(tooLong.message, /is longer than 1049 bytes/)
      const missing = yield* Effect.flip(asks(url, { token_variable: "NO_TOKEN" }))
      assert.match(missing.message, /token_variable: the environment variable NO_TOKEN holds no token/)
      assert.strictEqual(missing._tag, "ConfigError")
    }),
  )

  it.live("is asked again as often as its config says", () =>
    Effect.gen(function* () {
      let left = 1
      const { url, asked } = yield* server(() => (left-- > 0 ? { status: 503, body: "busy" } : { body: "4" }))
      yield* asks(url, { max_retries: 2 })
      assert.strictEqual(asked.length, 2)
    }),
  )

  it.live("gets its task only at its own origin, wherever it redirects to", () =>
    Effect.gen(function* () {
      const other = yield* server(() => ({ body: "4" }))
      const { url } = yield* server(() => ({ status: 307, location: `${other.url}/take`, body: "" }))
      const error = yield* Effect.flip(asks(url))
      assert.match(error.message, /redirects to http:.*, where nothing was sent; expected its own answer$/)
      assert.lengthOf(other.asked, 0)
      let left = 1
      const own = yield* server(() => (left-- > 0 ? { status: 307, location: "/moved", body: "" } : { body: "4" }))
      yield* asks(own.url)
      assert.lengthOf(own.asked, 2)
    }),
  )

  it.live("is sent nothing and starts nothing if its config is not trusted", () =>
    Effect.gen(function* () {
      const away = yield* Effect.flip(asks("https://agent.example/answer"))
      assert.match(away.message, /url: this would send texts to "https:\/\/agent\.example\/answer"/)
      const near = yield* Effect.flip(asks("http://127.0.0.1:9/answer"))
      assert.match(near.message, /url: this would send texts to "http:\/\/127\.0\.0\.1:9\/answer"/)
      const program = yield* Effect.flip(
        Effect.provide(Agents.decode({ type: "command", command: ["sh", "-c", "touch x"] }), files).pipe(
          Effect.flatMap(({ make }) => Effect.provideService(make, Lm, Scripted.make(Scripted.echo))),
        ),
      )
      assert.match(program.message, /command: this would start \["sh","-c","touch x"\]/)
      const wrong = yield* Effect.flip(asks("file:///etc/passwd"))
      assert.match(wrong.message, /url: expected an address with http or https/)
    }).pipe(Effect.provideService(Trust.Trust, Trust.refuseAll)),
  )
})
