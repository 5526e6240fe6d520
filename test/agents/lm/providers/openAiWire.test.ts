import { assert, describe, it } from "@effect/vitest"
import { completionOf, gather, OpenAiAnswer, type AnswerPiece } from "../../../../src/agents/lm/providers/openAiWire.ts"
import { ask } from "../calls.ts"

type Delta = NonNullable<AnswerPiece["choices"][number]["delta"]>
const calls = (...deltas: ReadonlyArray<NonNullable<Delta["tool_calls"]>>) => {
  const into = new OpenAiAnswer()
  for (const tool_calls of deltas) gather(into, { choices: [{ delta: { tool_calls } }] })
  return completionOf(ask(), into).toolCalls.map((call) => [call.id, call.name, call.arguments])
}
const named = (name: string, said = "") => ({ function: { name, arguments: said } })
const more = (said: string) => ({ function: { arguments: said } })

describe("calls in pieces", () => {
  it("are distinguished by their indices, in any order of their pieces", () => {
    const found = calls(
      [{ index: 0, id: "a", ...named("look") }],
      [{ index: 1, id: "b", ...named("go") }],
      [{ index: 0, ...more("{}") }],
      [
        { index: 1, ...more('{"to"') },
        { index: 1, ...more(":1}") },
      ],
    )
    assert.deepStrictEqual(found, [
      ["a", "look", "{}"],
      ["b", "go", '{"to":1}'],
    ])
  })

  it("are distinguished by their ids if their indices are equal or missing", () => {
    const expected = [
      ["a", "look", "{}"],
      ["b", "go", "{1}"],
    ]
    for (const index of [{ index: 0 }, { index: null }, {}]) {
      const found = calls(
        [{ ...index, id: "a", ...named("look", "{}") }],
        [{ ...index, id: "b", ...named("go", "{") }],
        [{ ...index, ...more("1}") }],
      )
      assert.deepStrictEqual(found, expected)
    }
  })

  it("may repeat their id, and may have objects as arguments", () => {
    const found = calls(
      [{ index: 0, id: "a", ...named("look") }],
      [{ index: 0, id: "a", function: { arguments: { at: 1 } } }],
    )
    assert.deepStrictEqual(found, [["a", "look", '{"at":1}']])
  })

  it("that arrive all at once are separate, even without ids", () => {
    const into = new OpenAiAnswer()
    gather(into, { choices: [{ message: { tool_calls: [named("look", "{}"), named("look", "{}")] } }] })
    assert.strictEqual(completionOf(ask(), into).toolCalls.length, 2)
  })
})

describe("the content of an answer", () => {
  const said = (message: Delta) => {
    const into = new OpenAiAnswer()
    gather(into, { choices: [{ message, finish_reason: "stop" }] })
    return completionOf(ask(), into).content
  }

  it("may consist of parts, and is no refusal", () => {
    assert.strictEqual(said({ content: [{ text: "Hel" }, {}, { text: "lo" }] }), "Hello")
    assert.strictEqual(said({ content: null, refusal: "I won't." }), "")
    assert.strictEqual(said({ content: "I will.", refusal: null }), "I will.")
  })
})

describe("tokens", () => {
  const traced = (choice: Partial<AnswerPiece["choices"][number]>, top: Partial<AnswerPiece> = {}) => {
    const into = new OpenAiAnswer()
    gather(into, { ...top, choices: [{ message: { content: "x" }, ...choice }] })
    return completionOf(ask({ traceTokens: true }), into).tokens
  }
  const logprobs = (...all: ReadonlyArray<number | null>) => ({
    logprobs: { content: all.map((logprob) => ({ logprob })) },
  })

  it("are found in all places where servers put them", () => {
    const expected = { promptIds: [1], completionIds: [2, 3], logprobs: [-1, -2] }
    const ids = { token_ids: [2, 3], ...logprobs(-1, -2) }
    assert.deepStrictEqual(traced(ids, { prompt_token_ids: [1] }), expected)
    assert.deepStrictEqual(traced({ ...ids, prompt_token_ids: [1] }), expected)
    const message = { content: "x", prompt_token_ids: [1], generation_token_ids: [2, 3] }
    assert.deepStrictEqual(traced({ message, ...logprobs(-1, -2) }), expected)
  })

  it("have one log-probability each, or none", () => {
    const top = { prompt_token_ids: [1] }
    for (const all of [logprobs(-1), logprobs(-1, null), logprobs(-1, -2, -3), {}]) {
      assert.deepStrictEqual(traced({ token_ids: [2, 3], ...all }, top), {
        promptIds: [1],
        completionIds: [2, 3],
        logprobs: null,
      })
    }
  })

  it("have texts if all of them do; a character of several tokens belongs to the last one", () => {
    const top = { prompt_token_ids: [1] }
    const content = [
      { logprob: -1, token: "caf", bytes: [99, 97, 102] },
      { logprob: -2, token: "\\xc3", bytes: [0xc3] },
      { logprob: -3, token: "\\xa9", bytes: [0xa9] },
      { logprob: -4, token: "!" },
    ]
    const ids = { token_ids: [2, 3, 4, 5] }
    assert.deepStrictEqual(traced({ ...ids, logprobs: { content } }, top)?.texts, ["caf", "", "é", "!"])
    const silent = [...content.slice(0, 3), { logprob: -4 }]
    assert.notProperty(traced({ ...ids, logprobs: { content: silent } }, top), "texts")
  })

  it("are missing if those of the prompt or of a part of the answer are", () => {
    assert.isNull(traced({ token_ids: [2] }))
    const some = { logprobs: { content: [{ logprob: -1, id: 2 }, { logprob: -1 }] } }
    assert.isNull(traced(some, { prompt_token_ids: [1] }))
  })
})
