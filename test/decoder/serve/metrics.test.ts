import { Redacted } from "effect"
import { assert, describe, it } from "vitest"
import { serving } from "./serving.ts"

const messages = [{ role: "user" as const, content: "Hi" }]

/** Returns the value of a line, such as `a{b="c"}`; undefined if there is none. */
const valueOf = (text: string, line: string): number | undefined => {
  const found = text.split("\n").find((one) => one.startsWith(`${line} `))
  return found === undefined ? undefined : Number(found.slice(line.length + 1))
}

describe("the metrics of a server", () => {
  it("count requests by route and status, and answers with their tokens and durations", () =>
    serving({}, async ({ client, url, post }) => {
      const answer = await client.chat.completions.create({ model: "base", messages, seed: 1 })
      const stream = await client.chat.completions.create({ model: "base", messages, seed: 1, stream: true })
      for await (const _ of stream) continue
      await post("/v1/chat/completions", { model: "other", messages })
      await fetch(`${url}/v1/models/a%20b?x=1`)
      await fetch(`${url}/made-up/${"x".repeat(100)}`)
      const response = await fetch(`${url}/metrics`)
      assert.strictEqual(response.headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8")
      const text = await response.text()
      const requests = (route: string, status: number) =>
        valueOf(text, `effect_serve_requests_total{route="${route}",status="${status}"}`)
      assert.strictEqual(requests("/v1/chat/completions", 200), 2)
      assert.strictEqual(requests("/v1/chat/completions", 404), 1)
      assert.strictEqual(requests("/v1/models", 404), 1)
      assert.strictEqual(requests("other", 404), 1)
      assert.notInclude(text, "made-up")
      assert.strictEqual(valueOf(text, "effect_serve_answer_seconds_count"), 2)
      assert.strictEqual(valueOf(text, 'effect_serve_answer_seconds_bucket{le="+Inf"}'), 2)
      assert.strictEqual(valueOf(text, "effect_serve_answers"), 0)
      assert.strictEqual(valueOf(text, "effect_serve_answers_limit"), 1024)
      assert.isDefined(valueOf(text, "effect_serve_generated_tokens_total"))
      assert.isAbove(answer.usage?.completion_tokens ?? 0, 0)
    }))

  it("need the server's key, and a host name that it goes by", () =>
    serving({ apiKey: Redacted.make("secret-key") }, async ({ url }) => {
      assert.strictEqual((await fetch(`${url}/metrics`)).status, 401)
      const headers = { authorization: "Bearer secret-key" }
      assert.strictEqual((await fetch(`${url}/metrics`, { headers })).status, 200)
      const other = await fetch(`${url}/metrics`, { headers: { ...headers, origin: "https://other.example" } })
      assert.strictEqual(other.status, 403)
    }))
})
