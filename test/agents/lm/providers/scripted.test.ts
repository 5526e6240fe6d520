import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Schema } from "effect"
import { LanguageModel, Tool, Toolkit } from "effect/ai"
import { TestClock } from "effect/testing"
import { type ChatMessage, LmRequest } from "../../../../src/agents/lm/Chat.ts"
import { Lm } from "../../../../src/agents/lm/Lm.ts"
import { LmError } from "../../../../src/agents/lm/LmError.ts"
import { reader } from "../../../../src/agents/lm/providers/reader.ts"
import * as Scripted from "../../../../src/agents/lm/providers/scripted.ts"

const ask = (...messages: ReadonlyArray<ChatMessage>): LmRequest => ({
  ...LmRequest.defaults,
  model: "scripted:test",
  messages,
})
const user = (content: string): ChatMessage => ({ role: "user", content })

describe("scripted", () => {
  it.effect("answers with the function's value, and fills in the rest", () =>
    Effect.gen(function* () {
      const completion = yield* Lm.complete(ask({ role: "system", content: "Be brief." }, user("What now?")))
      assert.deepStrictEqual(completion, {
        content: "You said: What now?",
        toolCalls: [],
        finishReason: "stop",
        usage: { inputTokens: 4, outputTokens: 4, reasoningTokens: 0 },
        tokens: null,
        model: "scripted:test",
        attempts: 1,
      })
    }).pipe(Effect.provide(Scripted.layer(({ messages }) => `You said: ${messages.at(-1)?.content}`))),
  )

  it.effect("takes time on the clock, and can fail", () =>
    Effect.gen(function* () {
      const late = yield* Effect.forkChild(
        Lm.complete(ask(user("?"))).pipe(
          Effect.provide(Scripted.layer(() => Effect.delay(Effect.succeed("late"), "1 hour"))),
        ),
      )
      yield* TestClock.adjust("59 minutes")
      assert.isUndefined(late.pollUnsafe())
      yield* TestClock.adjust("1 minute")
      assert.strictEqual((yield* Fiber.join(late)).content, "late")
      const error = new LmError({ model: "m", reason: "rejected", attempts: 1, message: "no" })
      const failed = yield* Effect.exit(
        Lm.complete(ask(user("?"))).pipe(Effect.provide(Scripted.layer(() => Effect.fail(error)))),
      )
      assert.deepStrictEqual(failed, Exit.fail(error))
    }),
  )

  it.effect("gives tokens that the next prompt continues", () =>
    Effect.gen(function* () {
      const first = { ...ask(user("héllo")), traceTokens: true }
      const completion = yield* Lm.complete(first)
      const next = {
        ...first,
        messages: [...first.messages, { role: "assistant", content: completion.content } as const, user("more")],
      }
      const { tokens } = yield* Lm.complete(next)
      assert(completion.tokens !== null && tokens !== null)
      const before = [...completion.tokens.promptIds, ...completion.tokens.completionIds]
      assert.deepStrictEqual(tokens.promptIds.slice(0, before.length), before)
      assert.isAbove(tokens.promptIds.length, before.length)
      assert.strictEqual(completion.tokens.logprobs?.length, completion.tokens.completionIds.length)
      assert.strictEqual(completion.usage.inputTokens, completion.tokens.promptIds.length)
    }).pipe(Effect.provide(Scripted.layer(Scripted.echo))),
  )
})

describe("scripted, as Effect's LanguageModel", () => {
  const Add = Tool.make("add", { parameters: Schema.Struct({ a: Schema.Number }), success: Schema.Number })

  it.effect("answers, and passes the request to the function", () =>
    Effect.gen(function* () {
      let seen: LmRequest | undefined
      const script: Scripted.Script = (request) => {
        seen = request
        return { content: "Let me see.", toolCalls: [{ id: "1", name: "add", arguments: '{"a":2}' }] }
      }
      const response = yield* LanguageModel.generateText({
        prompt: [
          { role: "system", content: "Be brief." },
          { role: "user", content: "1 + 2?" },
        ],
        toolkit: Toolkit.make(Add),
        disableToolCallResolution: true,
      }).pipe(Effect.provide(Scripted.layerLanguageModel(script)))
      assert.strictEqual(response.text, "Let me see.")
      assert.strictEqual(response.finishReason, "tool-calls")
      assert.deepStrictEqual(
        response.toolCalls.map(({ name, params }) => [name, params]),
        [["add", { a: 2 }]],
      )
      assert.deepStrictEqual(seen?.messages, [{ role: "system", content: "Be brief." }, user("1 + 2?")])
      assert.strictEqual(seen?.tools[0].name, "add")
    }),
  )
})

describe("reader", () => {
  const question = "OBSERVATION: The [sparrow] eats?"
  const answer = (...lines: ReadonlyArray<string>): string => reader(ask(user(lines.join("\n\n"))))

  it("knows nothing by itself", () => {
    assert.strictEqual(answer(question), "I don't know.")
    assert.strictEqual(answer("Q: The [sparrow] eats?"), "I don't know.")
  })

  it("finds the target in the feedback on the same question, in any form", () => {
    for (const feedback of [
      'FEEDBACK: {"score":0,"target":"seeds","message":"Incorrect"}',
      "FEEDBACK: Incorrect. The correct answer is seeds.",
      "FEEDBACK: Incorrect. Your answer was: worms. The answer is: seeds",
      'FEEDBACK: Wrong; target: "seeds"',
    ]) {
      assert.strictEqual(answer(question, "ACTION: worms", feedback, question), "seeds", feedback)
    }
    assert.strictEqual(answer(question, "ACTION: seeds", "FEEDBACK: Correct!", question), "seeds")
    assert.strictEqual(
      answer(question, "ACTION: worms", "FEEDBACK: answer: seeds", "OBSERVATION: Another?"),
      "I don't know.",
    )
  })

  it("ignores the feedback on another question", () => {
    assert.strictEqual(answer(question, "OBSERVATION: Other?", "FEEDBACK: answer: 3", question), "I don't know.")
  })

  it("answers a new question by the rule of a reflection, and states rules", () => {
    const reflection = reader(
      ask(
        { role: "system", content: "Reflect on what happened." },
        user([question, "ACTION: worms", "FEEDBACK: The answer is seeds."].join("\n\n")),
      ),
    )
    assert.strictEqual(reflection, "RULE: [sparrow] -> seeds")
    assert.strictEqual(answer(`REFLECTION: ${reflection}`, "OBSERVATION: What does a [sparrow] like?"), "seeds")
    assert.strictEqual(answer(`REFLECTION: ${reflection}`, "What does a [sparrow] like?"), "seeds")
    assert.strictEqual(answer(`REFLECTION: ${reflection}`, "What does a [cat] like?"), "I don't know.")
  })
})
