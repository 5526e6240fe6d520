import { inspect } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { Cause, ConfigProvider, Effect, Redacted, Tracer } from "effect"
import { FetchHttpClient } from "effect/http"
import * as OpenAi from "../../../../src/agents/lm/providers/openAi.ts"
import { ask, call, failing, opened } from "../calls.ts"
import { type Fault, serve, type Server } from "../server.ts"

describe("keys", () => {
  const secret = "sk-very-secret-0123456789"
  const env = (variables: Readonly<Record<string, string>>) =>
    Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown(variables))
  const sent = ({ asked }: { readonly asked: Server["asked"] }) => asked[0].headers.authorization

  it.effect("come from the config, directly or by the name of a variable", () =>
    Effect.gen(function* () {
      const server = { key: "k-1" }
      const apiKey = (key: string) => ({ apiKey: Redacted.make(key) })
      assert.strictEqual(sent(yield* call(server, ask(), apiKey(" k-1\n"))), "Bearer k-1")
      const named = call(server, ask(), apiKey("${MINE}")).pipe(env({ MINE: "k-1" }))
      assert.strictEqual(sent(yield* named), "Bearer k-1")
      const variable = call(server, ask(), { keyVariable: "MINE" }).pipe(env({ MINE: "k-1" }))
      assert.strictEqual(sent(yield* variable), "Bearer k-1")
    }),
  )

  it.effect("are sent only to the servers that they are for", () =>
    Effect.gen(function* () {
      const keys = { OPENAI_API_KEY: secret, GOOGLE_API_KEY: secret, ANTHROPIC_API_KEY: secret }
      assert.isUndefined(sent(yield* call({}).pipe(env(keys))))
      // The placeholder for a key in a run's files is not sent as a key.
      assert.isUndefined(sent(yield* call({}, ask(), { apiKey: Redacted.make("<redacted>") }).pipe(env(keys))))
    }),
  )

  it.effect("are required at once, by name, if the server needs one", () =>
    Effect.gen(function* () {
      const missing = (options: Partial<OpenAi.OpenAiOptions>) =>
        OpenAi.make({ model: "m", ...options }).pipe(
          Effect.flip,
          Effect.provide(FetchHttpClient.layer),
          env({ GOOGLE_API_KEY: " " }),
        )
      const openAi = yield* missing({})
      assert.deepStrictEqual([openAi.reason, openAi.attempts], ["unauthorised", 0])
      assert.strictEqual(
        openAi.message,
        "m: no key; set the environment variable OPENAI_API_KEY, or api_key: ${NAME} to use another variable",
      )
      assert.match(
        (yield* missing({ baseUrl: `${OpenAi.geminiUrl}/` })).message,
        /set the environment variable GOOGLE_API_KEY/,
      )
      assert.strictEqual(
        (yield* missing({ apiKey: Redacted.make("${MINE}") })).message,
        "m: api_key: the environment variable MINE is not set",
      )
    }),
  )

  it.effect("that are wrong fail at once, in one line without the key", () =>
    Effect.gen(function* () {
      const wrong = Redacted.make(secret)
      const error = yield* Effect.flip(call({ key: "right" }, ask(), { apiKey: wrong }))
      assert.strictEqual(error.reason, "unauthorised")
      assert.match(
        error.message,
        /^m: \S+ answered 401: Incorrect API key provided: <redacted>\.; Find yours in your account\.; the key came from api_key$/,
      )
      const none = yield* Effect.flip(call({ key: "right" }))
      assert.match(none.message, /; no key was sent, set api_key: \$\{NAME\} to send one$/)
    }),
  )

  it.effect("appear in nothing that is printed, whatever fails", () =>
    Effect.gen(function* () {
      const said = `{"error":{"message":"Bearer ${secret} and ${secret} are wrong"}}`
      const kinds: ReadonlyArray<Fault> = [
        ...[400, 401, 429, 500].map((status): Fault => ({ kind: "status", status, body: said })),
        { kind: "body", body: said },
        { kind: "body", body: `What is ${secret}?` },
        // The message is cut in the middle of the key.
        { kind: "body", body: `${"x".repeat(110)}${secret}` },
        { kind: "status", status: 400, body: `${"x".repeat(290)}${secret}` },
        // Only the beginning of the body is read; it ends in the middle of the key.
        { kind: "status", status: 400, body: `${" ".repeat(16 * 1024 - 10)}${secret}` },
        { kind: "dropped" },
        { kind: "reset" },
      ]
      for (const apiKey of [secret, "hunter2-hunter2"]) {
        for (const fault of kinds) {
          const words = (fault: Fault): Fault => JSON.parse(JSON.stringify(fault).replaceAll(secret, apiKey))
          const error = yield* failing(words(fault), { apiKey: Redacted.make(apiKey) })
          const printed = [
            error.message,
            JSON.stringify(error),
            inspect(error, { depth: 9 }),
            Cause.pretty(Cause.fail(error)),
          ]
          assert.notInclude(printed.join("\n"), apiKey.slice(0, 9))
        }
        const odd = yield* Effect.flip(OpenAi.make({ model: "m", apiKey: Redacted.make(`${apiKey}\n${apiKey}`) }))
        assert.strictEqual(odd.reason, "unauthorised")
        assert.notInclude(inspect(odd, { depth: 9 }), apiKey)
      }
    }).pipe(Effect.provide(FetchHttpClient.layer)),
  )

  it.effect("appear in no trace, and servers get its ids only", () =>
    Effect.gen(function* () {
      const spans: Array<string> = []
      const tracer = Tracer.make({
        span: (options) => {
          const span = new Tracer.NativeSpan(options)
          const attribute = span.attribute.bind(span)
          span.attribute = (key, value) => {
            spans.push(`${key}=${inspect(value)}`)
            attribute(key, value)
          }
          return span
        },
      })
      const server = yield* serve({})
      const { asked } = server
      const lm = yield* opened({ ...server, url: `${server.url}/v1?code=${secret}` }, { apiKey: Redacted.make(secret) })
      yield* Effect.exit(lm.complete(ask())).pipe(Effect.withSpan("run"), Effect.withTracer(tracer))
      assert.include(spans.join("\n"), "http.request.method")
      assert.notInclude(spans.join("\n"), secret)
      assert.match(String(asked[0].headers["traceparent"]), /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/)
    }),
  )
})
