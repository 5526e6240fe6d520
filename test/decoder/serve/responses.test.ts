import { assert, describe, it } from "vitest"
import { serving } from "./serving.ts"

const add = {
  type: "function" as const,
  name: "add",
  description: null,
  parameters: { type: "object", properties: {} },
  strict: false,
}
const calling = 'So.\n<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>'

describe("responses", () => {
  it("answer a text, instructions and earlier items, whole and streamed", () =>
    serving({ script: (prompt) => `${prompt.length}ü` }, async ({ client, engine }) => {
      const asked = { model: "base", instructions: "Be brief.", input: "Hi", temperature: 0.5, max_output_tokens: 20 }
      const answer = await client.responses.create(asked)
      const prompt = "system: Be brief.\nuser: Hi\nassistant: "
      assert.strictEqual(answer.output_text, `${prompt.length}ü`)
      assert.deepStrictEqual([answer.status, answer.object], ["completed", "response"])
      assert.deepStrictEqual([answer.usage?.input_tokens, answer.usage?.output_tokens], [prompt.length, 5])
      assert.deepStrictEqual(engine.requests[0].sampling?.temperature, 0.5)
      const types: Array<string> = []
      const numbers: Array<number> = []
      const stream = client.responses.stream(asked).on("event", ({ type, sequence_number }) => {
        types.push(type)
        numbers.push(sequence_number)
      })
      const final = await stream.finalResponse()
      assert.deepStrictEqual(numbers, Array.from(numbers.keys()))
      assert.strictEqual(final.output_text, answer.output_text)
      assert.deepStrictEqual(final.usage, answer.usage)
      assert.deepStrictEqual(
        [...new Set(types)],
        [
          "response.created",
          "response.in_progress",
          "response.output_item.added",
          "response.content_part.added",
          "response.output_text.delta",
          "response.output_text.done",
          "response.content_part.done",
          "response.output_item.done",
          "response.completed",
        ],
      )
    }))

  it("call tools, and take their results", () =>
    serving(
      { script: (prompt) => (prompt.includes("tool (add): 2") ? "It is 2." : calling) },
      async ({ client, engine }) => {
        const asked = { model: "base", tools: [add], input: [{ role: "user" as const, content: "1 + 1?" }] }
        const answer = await client.responses.create(asked)
        const [text, call] = answer.output
        assert.strictEqual(answer.output_text, "So.")
        assert.deepStrictEqual([text.type, call.type], ["message", "function_call"])
        if (text.type !== "message" || call.type !== "function_call") return
        assert.deepStrictEqual([call.name, call.arguments, call.call_id], ["add", '{"a": 1}', "call_1_0"])
        const streamed = await client.responses.stream(asked).finalResponse()
        assert.deepStrictEqual(
          streamed.output.map((item) => (item.type === "function_call" ? [item.name, item.arguments] : item.type)),
          ["message", ["add", '{"a": 1}']],
        )
        const result = { type: "function_call_output" as const, call_id: call.call_id, output: "2" }
        const next = await client.responses.create({ ...asked, input: [...asked.input, text, call, result] })
        assert.strictEqual(next.output_text, "It is 2.")
        const prompt = String.fromCodePoint(...Array.from(engine.requests.at(-1)?.promptIds ?? []))
        assert.strictEqual(prompt.split("assistant: ").length, 3, "the text and the call are one message")
      },
    ))

  it("hold the text to a format, and say when it was cut off", () =>
    serving({ script: () => "abc" }, async ({ client, engine }) => {
      const schema = { type: "object" }
      const text = { format: { type: "json_schema" as const, name: "it", schema } }
      const answer = await client.responses.create({ model: "base", input: "Hi", text, max_output_tokens: 2 })
      assert.deepStrictEqual(engine.requests[0].sampling?.jsonSchema, schema)
      assert.deepStrictEqual([answer.status, answer.incomplete_details?.reason], ["incomplete", "max_output_tokens"])
    }))

  it.each([
    ["input[0]", { input: [{ type: "item_reference", id: "a" }] }],
    ["input[0].content[0]", { input: [{ role: "user", content: [{ type: "input_image" }] }] }],
    ["input[0].call_id", { input: [{ type: "function_call", name: "a", arguments: "{}" }] }],
    ["input[0].call_id", { input: [{ type: "function_call_output", output: "1" }] }],
    ["input", { input: Array.from({ length: 10_001 }, () => ({ role: "user", content: "a" })) }],
    ["input", { input: "refuse" }],
    ["tools[0].type", { input: "Hi", tools: [{ type: "web_search" }] }],
    ["tool_choice", { input: "Hi", tool_choice: "required" }],
    ["text.format", { input: "Hi", tools: [add], text: { format: { type: "json_object" } } }],
    ["previous_response_id", { input: "Hi", previous_response_id: "resp_1" }],
    ["max_output_tokens", { input: "Hi", max_output_tokens: 5000 }],
  ])("are refused with the key %s", (param, body) =>
    serving({}, async ({ post, engine }) => {
      const answer = await post("/v1/responses", body)
      assert.deepStrictEqual([answer.status, answer.body.error?.param], [400, param])
      assert.include(answer.body.error.message, param)
      assert.isEmpty(engine.requests)
    }),
  )
})
