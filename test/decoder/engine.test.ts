/** The provider in this process and the one over HTTP are asked the same, over the same engine. */
import { Effect, Layer, Logger } from "effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import { assert, describe, it } from "vitest"
import type { LmRequest, ToolSpec } from "../../src/agents/lm/Chat.ts"
import * as EngineLm from "../../src/decoder/engine/EngineLm.ts"
import * as LmConfig from "../../src/agents/lm/LmConfig.ts"
import * as Lms from "../../src/agents/lm/Lms.ts"
import * as OpenAi from "../../src/agents/lm/providers/openAi.ts"
import type { Provider } from "../../src/agents/lm/providers/Provider.ts"
import { chat, eos, type FakeEngine, fakeEngine, tokens } from "./serve/fakeEngine.ts"
import { disk } from "../run/store/disk.ts"
import { servingEngine } from "./serve/serving.ts"
import { request } from "../agents/lm/support.ts"

const add: ToolSpec = { name: "add", description: "Adds", parameters: { type: "object", properties: {} } }
const base = { model: "base" }

/** Calls `test` with the same engine in this process, over HTTP, and over HTTP with streams. */
const eachWay = (
  options: Parameters<typeof fakeEngine>[0],
  test: (lm: Provider, way: string) => Promise<void>,
): Promise<void> => {
  const engine: FakeEngine = fakeEngine(options)
  return servingEngine(engine, {}, async ({ url }) => {
    await test(EngineLm.make({ engine, chat, model: "base" }), "in process")
    for (const streaming of [false, true]) {
      const provider = OpenAi.make({ model: "base", baseUrl: `${url}/v1`, streaming })
      const lm = await Effect.runPromise(Effect.provide(provider, Layer.fresh(FetchHttpClient.layer)))
      await test(lm, streaming ? "streamed" : "over HTTP")
    }
  })
}

const complete = (lm: Provider, asked: LmRequest) => Effect.runPromise(lm.complete(asked))

describe("a model in this process and behind HTTP", () => {
  it("gives the same answer and the same trace of tokens", () =>
    eachWay({ script: (prompt) => (prompt.includes("Hi") ? "ünï" : undefined) }, async (lm, way) => {
      const asked = request("Hi", { ...base, traceTokens: true, maxOutputTokens: 50 })
      assert.deepStrictEqual(
        await complete(lm, asked),
        {
          content: "ünï",
          toolCalls: [],
          finishReason: "stop",
          usage: { inputTokens: 20, outputTokens: 6, reasoningTokens: 0 },
          tokens: {
            promptIds: tokens.encode("user: Hi\nassistant: "),
            completionIds: [...tokens.encode("ünï"), eos],
            logprobs: [-1, -1, -1, -1, -1, -1],
            texts: ["", "ü", "n", "", "ï", "<eos>"],
            weights: { model: "base", step: 0 },
          },
          model: "base",
          attempts: 1,
        },
        way,
      )
    }))

  it("gives the same calls of tools, and the trace with them", () =>
    eachWay({ script: () => 'So.\n<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>' }, async (lm, way) => {
      const asked = request("1 + 1?", { ...base, tools: [add], traceTokens: true })
      const { content, toolCalls, finishReason, tokens: trace } = await complete(lm, asked)
      assert.strictEqual(content, "So.", way)
      assert.deepStrictEqual(toolCalls, [{ id: "call_1_0", name: "add", arguments: '{"a": 1}' }], way)
      assert.strictEqual(finishReason, "tool_calls", way)
      assert.strictEqual(trace?.logprobs?.length, trace?.completionIds.length, way)
      assert.include(trace?.texts?.join(""), "</tool_call>", way)
    }))

  it("puts the same conversation to the model, with calls and their results", () =>
    Promise.resolve(new Set<string>()).then((prompts) =>
      eachWay({ script: (prompt) => (prompts.add(prompt), "2") }, async (lm) => {
        const asked = request("1 + 1?", {
          ...base,
          tools: [add],
          messages: [
            { role: "system", content: "Add." },
            { role: "user", content: "1 + 1?" },
            { role: "assistant", content: "", toolCalls: [{ id: "1", name: "add", arguments: '{"a":1}' }] },
            { role: "tool", toolCallId: "1", toolName: "add", content: "2" },
          ],
        })
        assert.strictEqual((await complete(lm, asked)).content, "2")
        assert.strictEqual(prompts.size, 1, [...prompts].join("\n---\n"))
      }),
    ))

  it("draws the same text for a seed, and other text for another", () =>
    Promise.resolve(new Set<string>()).then(async (texts) => {
      await eachWay({}, async (lm) => {
        texts.add((await complete(lm, request("Hi", { ...base, seed: 7 }))).content)
      })
      assert.strictEqual(texts.size, 1)
      await eachWay({}, async (lm) => {
        texts.add((await complete(lm, request("Hi", { ...base, seed: 8 }))).content)
      })
      assert.strictEqual(texts.size, 2)
    }))

  it("says so if the context of the model ends an answer before max_output_tokens", async () => {
    const warnings: Array<string> = []
    const logger = Logger.make(({ logLevel, message }) => warnings.push(`${logLevel}: ${String(message)}`))
    const lm = EngineLm.make({
      engine: fakeEngine({ script: () => "long answer", maxLength: 24 }),
      chat,
      model: "base",
    })
    const ask = (maxOutputTokens: number) =>
      Effect.runPromise(
        Effect.provide(lm.complete(request("Hi", { ...base, maxOutputTokens })), Logger.layer([logger])),
      )
    assert.deepStrictEqual((await ask(4)).finishReason, "length")
    assert.deepStrictEqual(warnings, [])
    assert.deepStrictEqual((await ask(2048)).content, "long")
    assert.deepStrictEqual(warnings, [
      "Warn: base: an answer was cut off after 4 tokens, fewer than max_output_tokens: 2048, because the model takes at most 24 tokens of prompt and answer together and the prompt has 20; this is said once",
    ])
  })

  it("reports a cut answer, a refusal and a fault alike", () =>
    eachWay({ script: () => "long answer" }, async (lm, way) => {
      const cut = await complete(lm, request("Hi", { ...base, maxOutputTokens: 4 }))
      assert.deepStrictEqual([cut.content, cut.finishReason], ["long", "length"], way)
      const reasonOf = async (asked: LmRequest) => {
        const { reason, message } = await Effect.runPromise(Effect.flip(lm.complete(asked)))
        assert.notMatch(message, /^(\S+): \1: /, "the model is named once")
        return reason
      }
      assert.strictEqual(await reasonOf(request("Hi", { model: "none" })), "rejected", way)
      assert.strictEqual(await reasonOf(request("refuse", base)), "rejected", way)
      assert.strictEqual(await reasonOf(request("backend fails", base)), "unavailable", way)
    }))

  it("is named by a config as builtin:NAME", async () => {
    const engine = fakeEngine({ script: () => "Hello" })
    const config = LmConfig.make({ model: "builtin:policy", temperature: 0.5 })
    const opened = Lms.open(config, { models: { policy: EngineLm.make({ engine, chat, model: "base" }) } })
    const lm = await Effect.runPromise(Effect.provide(opened, Layer.merge(disk, FetchHttpClient.layer)))
    const asked = { ...LmConfig.request(config, [{ role: "user", content: "Hi" }]), traceTokens: true }
    const { content, tokens: trace } = await Effect.runPromise(lm.complete(asked))
    assert.strictEqual(content, "Hello")
    assert.deepStrictEqual(trace?.weights, { model: "base", step: 0 })
    assert.strictEqual(engine.requests[0].sampling?.temperature, 0.5)
  })
})
