import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { ask, failing, opened } from "../calls.ts"
import { busy, type Fault, overloaded, serve } from "../server.ts"

describe("an error status", () => {
  const status = (status: number, body?: string, headers?: Readonly<Record<string, string>>): Fault => ({
    kind: "status",
    status,
    ...(body === undefined ? {} : { body }),
    ...(headers === undefined ? {} : { headers }),
  })

  it.effect("says whether to retry", () =>
    Effect.gen(function* () {
      const expected: Readonly<Record<string, ReadonlyArray<number>>> = {
        unauthorised: [401, 403],
        rejected: [400, 404, 405, 409, 413, 422],
        unavailable: [408, 429, 500, 502, 503, 504, 529],
      }
      for (const [reason, all] of Object.entries(expected)) {
        for (const one of all) assert.strictEqual((yield* failing(status(one))).reason, reason, `${one}`)
      }
      const empty = '{"error":{"message":"You exceeded your quota.","code":"insufficient_quota"}}'
      assert.strictEqual((yield* failing(status(429, empty))).reason, "rejected")
    }),
  )

  it.effect("gives the delay that the server asks for", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(Date.parse("2026-11-21T10:00:00Z"))
      const after = (headers?: Readonly<Record<string, string>>) =>
        Effect.map(failing(status(503, "", headers)), ({ retryAfter }) => retryAfter)
      assert.strictEqual((yield* failing(busy)).retryAfter, 2)
      assert.strictEqual((yield* failing(overloaded)).retryAfter, undefined)
      assert.strictEqual(yield* after({ "retry-after": "1.5" }), 1.5)
      assert.strictEqual(yield* after({ "retry-after-ms": "250", "retry-after": "1" }), 0.25)
      assert.strictEqual(yield* after({ "retry-after": "Sat, 21 Nov 2026 10:00:30 GMT" }), 30)
      assert.strictEqual(yield* after({ "retry-after": "Sat, 21 Nov 2026 09:00:00 GMT" }), 0)
      assert.strictEqual(yield* after({ "retry-after": "soon" }), undefined)
      assert.strictEqual(yield* after({ "retry-after": "9".repeat(400) }), undefined)
      assert.strictEqual(yield* after({ "retry-after-ms": "Infinity" }), undefined)
    }),
  )

  it.effect("becomes one line with the server's own message", () =>
    Effect.gen(function* () {
      const said: ReadonlyArray<readonly [string, string]> = [
        ['{"error":{"message":"Too long:\\n 9 tokens"}}', ": Too long:; 9 tokens"],
        ['{"error":"no such model"}', ": no such model"],
        ['{"object":"error","message":"bad"}', ": bad"],
        ['{"detail":[{"loc":["x"],"msg":"field required"}]}', ": field required"],
        ['[{"error":{"message":"API key not valid"}}]', ": API key not valid"],
        ["<html><style>a{}</style><h1>Bad\nGateway</h1></html>", ": Bad; Gateway"],
        ["", ""],
      ]
      for (const [body, words] of said) {
        const error = yield* failing(status(400, body))
        assert.match(error.message, /^m: http:\/\/127\.0\.0\.1:\d+\/v1\/chat\/completions answered 400/)
        assert.strictEqual(error.message.split("answered 400")[1], words)
      }
      assert.isBelow((yield* failing(status(500, "x".repeat(9999)))).message.length, 500)
    }),
  )

  it.effect("names the address that cannot be reached", () =>
    Effect.gen(function* () {
      const server = yield* Effect.scoped(serve())
      const lm = yield* opened(server)
      const error = yield* Effect.flip(lm.complete(ask()))
      assert.strictEqual(error.reason, "unavailable")
      assert.strictEqual(error.message, `m: ${server.url}/v1/chat/completions cannot be reached: ECONNREFUSED`)
    }),
  )
})
