import { assert, describe, it } from "vitest"
import type { AnswerEvent, ToolFormat } from "../../../../src/agents/lm/toolFormats/ToolFormat.ts"
import {
  collect,
  formatOf,
  hermes,
  llama3,
  mistral,
  mistralArgs,
} from "../../../../src/agents/lm/toolFormats/ToolFormats.ts"

const tools = ["add", "now"]

const events = (format: ToolFormat, pieces: ReadonlyArray<string>): ReadonlyArray<AnswerEvent> => {
  const reader = format.reader({ tools })
  return [...pieces.flatMap((piece) => reader.push(piece)), ...reader.end()]
}

const read = (format: ToolFormat, text: string) => collect(events(format, [text]))

describe("the format of Hermes and Qwen models", () => {
  it.each([
    [
      "a call",
      '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>',
      "",
      [["add", '{"a": 1, "b": 2}']],
    ],
    [
      "text and two calls",
      'Let me see.\n<tool_call>{"name": "add", "arguments": {}}</tool_call>\n<tool_call>{"name": "now", "arguments": {"in": "}</tool_call>"}}</tool_call>',
      "Let me see.",
      [
        ["add", "{}"],
        ["now", '{"in": "}</tool_call>"}'],
      ],
    ],
    ["text alone", "1 <tool 2", "1 <tool 2", []],
    [
      "the keys in another order",
      '<tool_call>{"arguments": {"a": 1}, "name": "add"}</tool_call>',
      "",
      [["add", '{"a":1}']],
    ],
    [
      "arguments as a text",
      '<tool_call>{"name": "add", "arguments": "{\\"a\\": 1}"}</tool_call>',
      "",
      [["add", '{"a": 1}']],
    ],
    ["no arguments", '<tool_call>{"name": "now"}</tool_call>', "", [["now", "{}"]]],
    ["a tag that is never closed", '<tool_call>{"name": "add", "arguments": {}} and more', "and more", [["add", "{}"]]],
    ["a call that is cut off", '<tool_call>{"name": "add", "arguments": {"a": ', "", [["add", '{"a": ']]],
    ["a call without a name", 'x <tool_call>{"arguments": {}}</tool_call>', 'x <tool_call>{"arguments": {}}', []],
    ["a tag without an object", "<tool_call>add</tool_call>", "<tool_call>add</tool_call>", []],
    ["a name that is cut off", '<tool_call>{"name": "ad', '<tool_call>{"name": "ad', []],
    ["a tag alone", "so <tool_call>\n", "so <tool_call>\n", []],
  ])("reads %s", (_, text, content, calls) => {
    const found = read(hermes, text)
    assert.strictEqual(found.content, content)
    assert.deepStrictEqual(
      found.calls.map((call) => [call.name, call.arguments]),
      calls,
    )
  })

  it("passes text and arguments on as soon as they cannot be a tag", () => {
    const reader = hermes.reader({ tools })
    assert.deepStrictEqual(reader.push("Hello <tool"), [{ _tag: "Text", text: "Hello" }])
    assert.deepStrictEqual(reader.push("s>"), [{ _tag: "Text", text: " <tools>" }])
    assert.deepStrictEqual(reader.push('<tool_call>{"name": "add", "arguments": '), [])
    assert.deepStrictEqual(reader.push('{"a": '), [
      { _tag: "Call", name: "add" },
      { _tag: "Arguments", text: '{"a": ' },
    ])
    assert.deepStrictEqual(reader.push("1}}</tool_"), [{ _tag: "Arguments", text: "1}" }])
    assert.deepStrictEqual(reader.push("call>"), [])
    assert.deepStrictEqual(reader.end(), [])
  })

  it("has an opening after which the model's answer is a call of the tool", () => {
    const named = collect(events(hermes, [hermes.opening("add"), '{"a": 1}}\n</tool_call>']))
    assert.deepStrictEqual(named, { content: "", calls: [{ name: "add", arguments: '{"a": 1}' }] })
    const any = collect(events(hermes, [hermes.opening(null), 'now", "arguments": {}}\n</tool_call>']))
    assert.deepStrictEqual(any, { content: "", calls: [{ name: "now", arguments: "{}" }] })
  })
})

describe("the format of Llama 3 models", () => {
  it.each([
    ["a call", '{"name": "add", "parameters": {"a": 1}}', "", [["add", '{"a": 1}']]],
    [
      "two calls after the tag",
      '<|python_tag|>{"name": "add", "parameters": {}}; {"type": "function", "name": "now", "parameters": {"b": 2}}',
      "",
      [
        ["add", "{}"],
        ["now", '{"b":2}'],
      ],
    ],
    [
      "text that mentions a call",
      'Call {"name": "add", "parameters": {}}',
      'Call {"name": "add", "parameters": {}}',
      [],
    ],
    ["an answer in JSON", '{"name": "Ada", "age": 36} is it', '{"name": "Ada", "age": 36} is it', []],
    ["an object with a name alone", '{"name": "Ada"}', '{"name": "Ada"}', []],
    ["a tool without parameters", '{"name": "now"}', "", [["now", "{}"]]],
    ["a call that is cut off", '{"name": "add", "parameters": {"a', "", [["add", '{"a']]],
    ["text after a call", '{"name": "add", "parameters": {}} done', " done", [["add", "{}"]]],
    ["half a tag", "<|pyt", "<|pyt", []],
  ])("reads %s", (_, text, content, calls) => {
    const found = read(llama3, text)
    assert.strictEqual(found.content, content)
    assert.deepStrictEqual(
      found.calls.map((call) => [call.name, call.arguments]),
      calls,
    )
  })

  it("has an opening after which the model's answer is a call of the tool", () => {
    const named = collect(events(llama3, [llama3.opening("add"), '{"a": 1}}']))
    assert.deepStrictEqual(named, { content: "", calls: [{ name: "add", arguments: '{"a": 1}' }] })
  })
})

describe("the format of Mistral models", () => {
  it.each([
    [
      "two calls after the tag",
      'So.\n[TOOL_CALLS] [{"name": "add", "arguments": {"a": [1]}, "id": "abc"}, {"name": "now", "arguments": {}}]',
      "So.",
      [
        ["add", '{"a": [1]}'],
        ["now", "{}"],
      ],
    ],
    ["a list without the tag, which is a special token", ' [{"name": "add", "arguments": {}}]', "", [["add", "{}"]]],
    ["a list that is no call", '[{"a": 1}, 2]', '[{"a": 1}, 2]', []],
    ["a list of numbers", "[1, 2]", "[1, 2]", []],
    ["a list in a text", 'See [{"name": "add", "arguments": {}}]', 'See [{"name": "add", "arguments": {}}]', []],
    ["a tag without a list", "a [TOOL_CALLS] none", "a [TOOL_CALLS] none", []],
    ["a tag alone", "a [TOOL_CALLS] [", "a [TOOL_CALLS] [", []],
    ["a call that is cut off", '[TOOL_CALLS][{"name": "add", "arguments": {"a', "", [["add", '{"a']]],
    ["text after the calls", '[{"name": "now", "arguments": {}}] done', "done", [["now", "{}"]]],
  ])("reads %s", (_, text, content, calls) => {
    const found = read(mistral, text)
    assert.strictEqual(found.content, content)
    assert.deepStrictEqual(
      found.calls.map((call) => [call.name, call.arguments]),
      calls,
    )
  })

  it("has an opening after which the model's answer is a call of the tool", () => {
    const named = collect(events(mistral, [mistral.opening("add"), '{"a": 1}}]']))
    assert.deepStrictEqual(named, { content: "", calls: [{ name: "add", arguments: '{"a": 1}' }] })
  })
})

describe("the newer format of Mistral models", () => {
  const two = [
    ["add", '{"a": [1]}'],
    ["now", "{}"],
  ]
  it.each([
    ["text and two calls", 'So.\n[TOOL_CALLS]add[ARGS]{"a": [1]}[TOOL_CALLS]now[ARGS]{}', "So.", two],
    ["calls with ids", '[TOOL_CALLS]add[CALL_ID]Ab1Cd2Ef3[ARGS]{"a": [1]}[TOOL_CALLS]now[CALL_ID]x[ARGS] {}', "", two],
    ["calls without the tags, which are special tokens", 'add{"a": [1]}now{}', "", two],
    ["calls with ids without the tags", ' addAb1Cd2Ef3{"a": [1]}nowAb1Cd2Ef4{}', "", two],
    ["a tool that is not offered, after the tag", "[TOOL_CALLS]other[ARGS]{}", "", [["other", "{}"]]],
    ["another word with an object", "other{}", "other{}", []],
    ["a text that begins with a tool's name", "now it is late", "now it is late", []],
    ["a name alone", "add", "add", []],
    ["a tag without a call", "a [TOOL_CALLS] none, really", "a [TOOL_CALLS] none, really", []],
    ["a tag alone", "a [TOOL_CALLS]ad", "a [TOOL_CALLS]ad", []],
    ["a call that is cut off", '[TOOL_CALLS]add[ARGS]{"a": "}', "", [["add", '{"a": "}']]],
    ["text after the calls", "now{} done", "done", [["now", "{}"]]],
  ])("reads %s", (_, text, content, calls) => {
    const found = read(mistralArgs, text)
    assert.strictEqual(found.content, content)
    assert.deepStrictEqual(
      found.calls.map((call) => [call.name, call.arguments]),
      calls,
    )
  })

  it("has an opening after which the model's answer is a call of the tool", () => {
    const named = collect(events(mistralArgs, [mistralArgs.opening("add"), '{"a": 1}']))
    assert.deepStrictEqual(named, { content: "", calls: [{ name: "add", arguments: '{"a": 1}' }] })
    const any = collect(events(mistralArgs, [mistralArgs.opening(null), "now{}"]))
    assert.deepStrictEqual(any, { content: "", calls: [{ name: "now", arguments: "{}" }] })
  })
})

describe("a chat template", () => {
  it("shows the format of its tools", () => {
    assert.strictEqual(formatOf("{% if tools %}<tool_call>{% endif %}"), hermes)
    assert.strictEqual(formatOf('{% if tools %}{"name": ..., "parameters": ...}{% endif %}'), llama3)
    assert.isNull(formatOf("{% for message in messages %}{{ message.content }}{% endfor %}"))
    assert.strictEqual(formatOf("{% if tools %}[AVAILABLE_TOOLS]{{ tools }}{% endif %}[TOOL_CALLS]"), mistral)
    assert.strictEqual(formatOf("{% if tools %}{{ tools }}{% endif %}[TOOL_CALLS]{{ name }}[ARGS]"), mistralArgs)
    assert.strictEqual(formatOf("{% if tools %}{{ tools }}{% endif %}"), llama3)
  })
})
