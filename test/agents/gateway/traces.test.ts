import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as Node from "../../../src/node.ts"
import { disk } from "../../run/store/disk.ts"
import { keptSpans } from "../lm/keptSpans.ts"
import { serve } from "../lm/server.ts"
import { behind, opened, send } from "./opened.ts"

const machine = Layer.mergeAll(disk, Node.httpClient, Node.gateway)
const agent = { traceId: "0123456789abcdef0123456789abcdef", spanId: "0123456789abcdef" }
const traceparent = `00-${agent.traceId}-${agent.spanId}-01`
const body = JSON.stringify({ model: "any", messages: [{ role: "user", content: "Hi" }] })

describe("the trace of a call through the gateway", () => {
  it.live("is that of the agent, if its call names one, up to the model's server", () =>
    Effect.gen(function* () {
      const { tracer, spans, only } = keptSpans()
      const server = yield* serve({})
      const calling = Effect.gen(function* () {
        const { baseUrl, key } = yield* opened(yield* behind(server.url))
        yield* send(`${baseUrl}/chat/completions`, { key, body, headers: { traceparent } })
        yield* send(`${baseUrl}/chat/completions`, { key, body })
      })
      yield* Effect.scoped(Effect.withSpan(calling, "episode")).pipe(Effect.withTracer(tracer))
      const chats = spans.filter(({ name }) => name.startsWith("chat "))
      assert.deepStrictEqual(
        chats.map(({ around }) => around),
        [["external"], ["episode"]],
      )
      assert.deepStrictEqual(
        chats.map(({ span }) => span.attributes.get("gen_ai.conversation.id")),
        ["s/1", "s/1"],
      )
      assert.strictEqual(chats[0].span.traceId, agent.traceId)
      assert.strictEqual(chats[1].span.traceId, only("episode").span.traceId)
      const sent = server.asked.map(({ headers }) => String(headers["traceparent"]).slice(3, 35))
      assert.deepStrictEqual(sent, [agent.traceId, chats[1].span.traceId])
      // The gateway's own server makes no spans: they would say the same.
      assert.isFalse(spans.some(({ kind }) => kind === "server"))
    }).pipe(Effect.provide(machine)),
  )

  it.live("is passed on as it is if nobody traces here", () =>
    Effect.gen(function* () {
      const server = yield* serve({})
      const { baseUrl, key } = yield* opened(yield* behind(server.url))
      yield* send(`${baseUrl}/chat/completions`, { key, body, headers: { traceparent } })
      yield* send(`${baseUrl}/chat/completions`, { key, body })
      assert.deepStrictEqual(
        server.asked.map(({ headers }) => headers["traceparent"]),
        [traceparent, undefined],
      )
    }).pipe(Effect.provide(machine)),
  )
})
