import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Layer, Option, Tracer } from "effect"
import { FetchHttpClient } from "effect/http"
import * as LmConfig from "../../../src/agents/lm/LmConfig.ts"
import * as Lms from "../../../src/agents/lm/Lms.ts"
import { inAgentSpan, inToolSpan } from "../../../src/agents/lm/genAi.ts"
import { isTraced, spanOfRequest, traceparent, TraceContent, underCaller } from "../../../src/agents/lm/spans.ts"
import * as OpenAiEmbeddings from "../../../src/agents/lm/providers/openAiEmbeddings.ts"
import { disk } from "../../run/store/disk.ts"
import { conventionNames, type KeptSpan, keptSpans } from "./keptSpans.ts"
import { ask, user } from "./calls.ts"
import { type Fault, serve } from "./server.ts"

const machine = Layer.mergeAll(disk, FetchHttpClient.layer)

const attributesOf = ({ span }: KeptSpan): Readonly<Record<string, unknown>> => Object.fromEntries(span.attributes)

const isKnown = (name: string): boolean =>
  conventionNames.has(name) || /^(effect_rl\.|error\.type$|server\.)/.test(name)

const opened = (url: string, more: Partial<LmConfig.LmOptions> = {}) =>
  Lms.open(LmConfig.make({ model: "vllm:m", baseUrl: url, maxRetries: 1, startingDelay: 0, jitter: 0, ...more }))

const request = ask({ model: "vllm:m", temperature: 0.5, maxOutputTokens: 7, stop: ["END"], seed: 3 })

describe("the span of a call of a model", () => {
  it.live("has the names and attributes of the conventions, and no texts", () =>
    Effect.gen(function* () {
      const { tracer, spans, only } = keptSpans()
      const server = yield* serve({ say: () => "A secret answer." })
      const lm = yield* opened(server.url)
      yield* Effect.withTracer(lm.complete(request), tracer)
      const chat = only("chat m")
      assert.strictEqual(chat.kind, "client")
      const { port } = new URL(server.url)
      const { "gen_ai.usage.input_tokens": inputs, "gen_ai.usage.output_tokens": outputs, ...rest } = attributesOf(chat)
      assert.isAbove(Number(inputs), 0)
      assert.isAbove(Number(outputs), 0)
      assert.deepStrictEqual(rest, {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "vllm",
        "gen_ai.request.model": "m",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.max_tokens": 7,
        "gen_ai.request.seed": 3,
        "gen_ai.request.stop_sequences": ["END"],
        "gen_ai.response.model": "m-2026",
        "gen_ai.response.finish_reasons": ["stop"],
        "server.address": "127.0.0.1",
        "server.port": Number(port),
        "effect_rl.phase": "default",
        "effect_rl.purpose": "action",
        "effect_rl.episode": 0,
        "effect_rl.step": 0,
        "effect_rl.attempts": 1,
      })
      const all = JSON.stringify(spans.map(attributesOf))
      for (const text of ["secret answer", "Say hello"]) assert.notInclude(all, text)
      for (const name of Object.keys(attributesOf(chat))) assert.isTrue(isKnown(name), name)
    }).pipe(Effect.provide(machine)),
  )

  it.live("has the texts if the user asks for them, in the form of the conventions", () =>
    Effect.gen(function* () {
      const { tracer, only } = keptSpans()
      const call = { id: "1", name: "add", arguments: '{"a":1}' }
      const server = yield* serve({ say: () => ({ content: "Hm.", toolCalls: [call], finish: "tool_calls" }) })
      const lm = yield* opened(server.url)
      const tool = { name: "add", description: "Adds.", parameters: { type: "object" } }
      const asked = lm.complete({
        ...request,
        messages: [{ role: "system", content: "Be kind." }, user("1 + 1?")],
        tools: [tool],
      })
      yield* asked.pipe(Effect.withTracer(tracer), Effect.provideService(TraceContent, true))
      const attributes = attributesOf(only("chat m"))
      const json = (name: string): unknown => JSON.parse(String(attributes[name]))
      assert.deepStrictEqual(json("gen_ai.input.messages"), [
        { role: "system", parts: [{ type: "text", content: "Be kind." }] },
        { role: "user", parts: [{ type: "text", content: "1 + 1?" }] },
      ])
      assert.deepStrictEqual(json("gen_ai.output.messages"), [
        {
          role: "assistant",
          parts: [
            { type: "text", content: "Hm." },
            { type: "tool_call", id: "1", name: "add", arguments: '{"a":1}' },
          ],
          finish_reason: "tool_call",
        },
      ])
      assert.deepStrictEqual(json("gen_ai.tool.definitions"), [{ type: "function", ...tool }])
      for (const name of Object.keys(attributes)) assert.isTrue(isKnown(name), name)
    }).pipe(Effect.provide(machine)),
  )

  it.live("covers the retries, and names the reason of a failure but quotes nothing", () =>
    Effect.gen(function* () {
      const { tracer, spans, only } = keptSpans()
      const fault = (): Fault => ({ kind: "body", body: "Once upon a time" })
      const server = yield* serve({ fault })
      const lm = yield* opened(server.url)
      const error = yield* lm.complete(request).pipe(Effect.withTracer(tracer), Effect.flip)
      assert.include(error.message, "Once upon a time")
      const { span } = only("chat m")
      assert.strictEqual(span.attributes.get("error.type"), "exhausted")
      assert.strictEqual(spans.filter(({ around }) => around.includes("chat m")).length, 2)
      const { status } = span
      if (status._tag !== "Ended" || Exit.isSuccess(status.exit)) return assert.fail("the span ended well")
      assert.notInclude(Cause.pretty(status.exit.cause), "Once")
      assert.include(Cause.pretty(status.exit.cause), "exhausted")
    }).pipe(Effect.provide(machine)),
  )

  it.live("is that of the models in this process, too, and of embeddings", () =>
    Effect.gen(function* () {
      const { tracer, only } = keptSpans()
      const lm = yield* Lms.open(LmConfig.make({ model: "scripted:echo" }))
      yield* Effect.withTracer(lm.complete(ask({ model: "scripted:echo" })), tracer)
      const { kind, span } = only("chat scripted:echo")
      assert.deepStrictEqual([kind, span.attributes.get("gen_ai.provider.name")], ["internal", "effect-rl"])
      assert.isUndefined(span.attributes.get("server.address"))
      const server = yield* serve({ fault: () => ({ kind: "body", body: '{"data":[{"index":0,"embedding":[1]}]}' }) })
      const embeddings = yield* OpenAiEmbeddings.make({ model: "bge", baseUrl: server.url })
      yield* Effect.withTracer(embeddings.embed(["a"]), tracer)
      assert.strictEqual(only("embeddings bge").span.attributes.get("gen_ai.operation.name"), "embeddings")
    }).pipe(Effect.provide(machine)),
  )
})

describe("the spans of agents and tools", () => {
  it.effect("have the names of the conventions, and texts only if the user asks for them", () =>
    Effect.gen(function* () {
      const { tracer, spans, only } = keptSpans()
      const call = { id: "7", name: "look", arguments: '{"at":"the sky"}' }
      const looking = inToolSpan(call, Effect.succeed({ content: "It is blue.", isError: true }))
      const playing = inAgentSpan({ type: "history_agent", model: "m" }, "task-1", looking)
      yield* Effect.withTracer(playing, tracer)
      assert.deepStrictEqual(attributesOf(only("invoke_agent history_agent")), {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "effect-rl",
        "gen_ai.agent.name": "history_agent",
        "gen_ai.request.model": "m",
        "effect_rl.rollout": "task-1",
      })
      const tool = only("execute_tool look")
      assert.deepStrictEqual(tool.around, ["invoke_agent history_agent"])
      assert.deepStrictEqual(attributesOf(tool), {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "look",
        "gen_ai.tool.call.id": "7",
        "gen_ai.tool.type": "function",
        "error.type": "tool_error",
      })
      for (const name of spans.flatMap((span) => Object.keys(attributesOf(span)))) assert.isTrue(isKnown(name), name)
      const told = keptSpans()
      yield* looking.pipe(Effect.withTracer(told.tracer), Effect.provideService(TraceContent, true))
      const { "gen_ai.tool.call.arguments": given, "gen_ai.tool.call.result": result } = attributesOf(
        told.only("execute_tool look"),
      )
      assert.deepStrictEqual([given, result], [call.arguments, "It is blue."])
    }),
  )
})

describe("the header traceparent", () => {
  const header = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"

  it.live("is sent to a model's server if a tracer is provided, with the span of the request", () =>
    Effect.gen(function* () {
      const { tracer, spans } = keptSpans()
      const server = yield* serve({})
      const lm = yield* opened(server.url)
      yield* Effect.withTracer(lm.complete(request), tracer)
      const sent = server.asked[0].headers["traceparent"]
      const asking = spans.find(({ around }) => around.at(-1) === "chat m")
      assert.strictEqual(sent, `00-${asking?.span.traceId}-${asking?.span.spanId}-01`)
    }).pipe(Effect.provide(machine)),
  )

  it.live("is not sent without a tracer, except for the trace of another program", () =>
    Effect.gen(function* () {
      const server = yield* serve({})
      const lm = yield* opened(server.url)
      assert.isFalse(yield* isTraced)
      yield* Effect.withSpan(lm.complete(request), "nobody sees this")
      const caller = spanOfRequest({ traceparent: header })
      yield* underCaller(caller, lm.complete(request))
      assert.deepStrictEqual(
        server.asked.map(({ headers }) => headers["traceparent"]),
        [undefined, header],
      )
    }).pipe(Effect.provide(machine)),
  )

  it.effect("is read and written by the rules of W3C Trace Context", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* underCaller(spanOfRequest({ traceparent: header }), traceparent), header)
      const unsampled = header.replace(/01$/, "00")
      assert.strictEqual(yield* underCaller(spanOfRequest({ traceparent: unsampled }), traceparent), unsampled)
      for (const wrong of ["", "00-xyz-1-01", header.replace(/[1-9a-f]/g, "0"), `${header}-more`, header.toUpperCase()])
        assert.isNull(spanOfRequest({ traceparent: wrong }), wrong)
      assert.isTrue(Option.isNone(yield* Effect.serviceOption(Tracer.ParentSpan)))
      assert.isUndefined(yield* traceparent)
    }),
  )
})
