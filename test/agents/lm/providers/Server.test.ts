import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { baseUrlOf } from "../../../../src/agents/lm/providers/Server.ts"
import { ask, opened } from "../calls.ts"
import { serve } from "../server.ts"

describe("a base URL", () => {
  it.effect("needs no path, and must not hold secrets", () =>
    Effect.gen(function* () {
      const of = (said: string) => Effect.map(baseUrlOf("m", said), String)
      assert.strictEqual(yield* of("http://localhost:8000"), "http://localhost:8000/v1")
      assert.strictEqual(yield* of("https://a.b/c/d//"), "https://a.b/c/d")
      assert.strictEqual(yield* of("https://a.b/?version=2"), "https://a.b/v1?version=2")
      const refused = (said: string) => Effect.map(Effect.flip(baseUrlOf("m", said)), ({ message }) => message)
      assert.strictEqual(
        yield* refused("http://me:hunter2@a.b/c?key=hunter2"),
        'm: base_url: expected an address without user name and password (a key is an api_key), found "http://a.b/c"',
      )
      for (const said of [
        "ftp://me:hunter2@a.b?key=hunter2",
        "http://me:hunter2/hunter2@a.b",
        "http://me:x?hunter2@a.b",
        "http:me:hunter2@a.b",
        "http:/me:hunter2@a.b",
        "http:\\\\me:hunter2@a.b",
        "me:hunter2@a.b",
      ]) {
        const message = yield* refused(said)
        assert.include(message, "a.b")
        assert.notInclude(message, "hunter2", said)
      }
    }),
  )

  it.effect("keeps its query, and does not show it", () =>
    Effect.gen(function* () {
      const server = yield* serve({ fault: () => ({ kind: "status", status: 404 }) })
      const lm = yield* opened({ ...server, url: `${server.url}/api/?code=hunter2` })
      const error = yield* Effect.flip(lm.complete(ask()))
      assert.strictEqual(server.asked[0].path, "/api/chat/completions?code=hunter2")
      assert.strictEqual(error.message, `m: ${server.url}/api/chat/completions answered 404`)
    }),
  )
})
