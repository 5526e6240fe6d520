import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { AiError, LanguageModel, type Response } from "effect/ai"
import { type Completion, LmRequest } from "../../../../src/agents/lm/Chat.ts"
import { CallSettings } from "../../../../src/agents/lm/providers/languageModel.ts"
import { Lm } from "../../../../src/agents/lm/Lm.ts"
import { LmError } from "../../../../src/agents/lm/LmError.ts"
import * as Lms from "../../../../src/agents/lm/Lms.ts"
import * as Scripted from "../../../../src/agents/lm/providers/scripted.ts"

/** Asked in our words, through Effect's, by a model in our words. */
const through = (script: Scripted.Script) =>
  Lms.fromLanguageModel.pipe(Layer.provide(Scripted.layerLanguageModel(script)))

const request: LmRequest = {
  ...LmRequest.defaults,
  model: "m",
  messages: [
    { role: "system", content: "Be brief." },
    { role: "user", content: "Look." },
    { role: "assistant", content: "", toolCalls: [{ id: "1", name: "look", arguments: "{at: the sky" }] },
    { role: "tool", toolCallId: "1", toolName: "look", content: "Not JSON.", isError: true },
    { role: "assistant", content: "Again.", toolCalls: [{ id: "2", name: "look", arguments: '{ "at":"sea" }' }] },
    { role: "tool", toolCallId: "2", toolName: "look", content: "Blue." },
    { role: "user", content: "So?" },
  ],
  tools: [
    { name: "look", description: "Looks.", parameters: { type: "object", properties: { at: { type: "string" } } } },
  ],
  toolChoice: "required",
  temperature: 0.5,
  topP: 0.9,
  maxOutputTokens: 12,
  stop: ["END"],
  seed: 7,
  traceTokens: true,
}

const completion: Completion = {
  content: "Aye",
  toolCalls: [
    { id: "3", name: "look", arguments: '{ "at": "you" }' },
    { id: "4", name: "unheard of", arguments: "{broken" },
  ],
  finishReason: "length",
  usage: { inputTokens: 10, outputTokens: 5, reasoningTokens: 2 },
  tokens: { promptIds: [1, 2], completionIds: [3, 4], logprobs: [-0.5, -1.25] },
  model: "m-2026",
  attempts: 1,
}

describe("Lms.fromLanguageModel", () => {
  it.effect("loses nothing of a request or a completion on the way through Effect's LanguageModel", () =>
    Effect.gen(function* () {
      const seen: Array<LmRequest> = []
      const answer = yield* Lm.complete(request).pipe(
        Effect.provide(
          through((request) => {
            seen.push(request)
            return completion
          }),
        ),
      )
      assert.deepStrictEqual(seen, [request])
      assert.deepStrictEqual(answer, completion)
    }),
  )

  it.effect("works without tools, and if the model calls an unknown tool", () =>
    Effect.gen(function* () {
      const answer = yield* Lm.complete({ ...request, tools: [], toolChoice: "auto" })
      assert.deepStrictEqual(answer, completion)
    }).pipe(Effect.provide(through(() => completion))),
  )

  it.effect("fails if a filter withholds the answer", () =>
    Effect.gen(function* () {
      const filtered = through(() => ({ content: "Hel", finishReason: "content_filter" }))
      const error = yield* Effect.flip(Effect.provide(Lm.complete({ ...request, tools: [] }), filtered))
      assert.strictEqual(error.reason, "refused")
    }),
  )

  it.effect("distinguishes the kinds of failures", () =>
    Effect.gen(function* () {
      const reasons = ["unauthorised", "rejected", "unavailable", "malformed", "refused"] as const
      for (const reason of reasons) {
        const error = new LmError({ model: "m", reason, attempts: 1, message: "m: it is so" })
        const met = yield* Effect.flip(
          Effect.provide(
            Lm.complete(request),
            through(() => Effect.fail(error)),
          ),
        )
        assert.deepStrictEqual([met.reason, met.message], [reason, "m: it is so"])
      }
      const busy = new LmError({ model: "m", reason: "unavailable", attempts: 1, message: "m: busy", retryAfter: 3 })
      const met = yield* Effect.flip(
        Effect.provide(
          Lm.complete(request),
          through(() => Effect.fail(busy)),
        ),
      )
      assert.strictEqual(met.retryAfter, 3)
    }),
  )

  it.effect("works with another implementation, which reports less", () => {
    const parts: Array<Response.PartEncoded> = [
      { type: "text", text: "Hel" },
      { type: "text", text: "lo" },
      { type: "tool-call", id: "9", name: "look", params: { at: "me" } },
    ]
    const theirs = Layer.effect(
      LanguageModel.LanguageModel,
      LanguageModel.make({
        generateText: (options) =>
          options.tools.length === 0
            ? Effect.fail(AiError.make({ module: "x", method: "y", reason: new AiError.RateLimitError({}) }))
            : Effect.succeed(parts),
        streamText: () => Stream.empty,
      }),
    )
    return Effect.gen(function* () {
      assert.deepStrictEqual(yield* Lm.complete(request), {
        content: "Hello",
        toolCalls: [{ id: "9", name: "look", arguments: '{"at":"me"}' }],
        finishReason: "unknown",
        usage: { inputTokens: 0, outputTokens: 0, reasoningTokens: 0 },
        tokens: null,
        model: "m",
        attempts: 1,
      })
      const error = yield* Effect.flip(Lm.complete({ ...request, tools: [] }))
      assert.strictEqual(error.reason, "unavailable")
      assert.match(error.message, /^m: /)
      assert.isUndefined(yield* CallSettings)
    }).pipe(Effect.provide(Lms.fromLanguageModel.pipe(Layer.provide(theirs))))
  })

  it.effect("streams a whole answer as Effect's parts", () =>
    Effect.gen(function* () {
      const parts = yield* Stream.runCollect(LanguageModel.streamText({ prompt: "Hi" }))
      assert.deepStrictEqual(
        parts.map((part) => (part.type === "text-delta" ? part.delta : part.type)),
        ["text-start", "Hi", "text-end", "finish"],
      )
    }).pipe(Effect.provide(Scripted.layerLanguageModel(Scripted.echo))),
  )
})
