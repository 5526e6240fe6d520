import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { collect, hermes, llama3, mistral, mistralArgs } from "../src/agents/lm/toolFormats/ToolFormats.ts"

const formats = fc.constantFrom(hermes, llama3, mistral, mistralArgs)
const tools = ["add", "search"]
/** Texts with many parts of calls, whole and broken. */
const part = fc.constantFrom(
  "<tool_call>",
  "</tool_call>",
  "<|python_tag|>",
  "[TOOL_CALLS]",
  "[ARGS]",
  "[CALL_ID]",
  "add",
  "Ab1Cd2Ef3",
  "[",
  "]",
  ",",
  '{"name": "add", "arguments": {"a": 1}}',
  '{"name": "add", "parameters": ',
  '{"arguments": {}, "name": "search"}',
  '{"x": "\\"}"}',
  "}",
  ";",
  "\n",
  " ",
  "<",
  "word",
  "ü𝄞",
)
const answer = fc.array(part, { maxLength: 12 }).map((parts) => parts.join(""))
const values = fc.dictionary(fc.string({ minLength: 1 }), fc.jsonValue(), { maxKeys: 4 })
const call = fc.record({ name: fc.constantFrom(...tools), values })

const pieces = (text: string, cuts: ReadonlyArray<number>): ReadonlyArray<string> => {
  const places = [0, ...cuts.map((cut) => cut % (text.length + 1)), text.length].toSorted((a, b) => a - b)
  return places.slice(1).map((to, index) => text.slice(places[index], to))
}

type Calls = ReadonlyArray<{ readonly name: string; readonly values: object }>

/** Writes calls in each format. */
const written = {
  hermes: (calls: Calls) =>
    calls
      .map(({ name, values }) => `<tool_call>\n${JSON.stringify({ name, arguments: values })}\n</tool_call>`)
      .join("\n"),
  llama3: (calls: Calls) => calls.map(({ name, values }) => JSON.stringify({ name, parameters: values })).join("; "),
  mistral: (calls: Calls) =>
    `[TOOL_CALLS] [${calls.map(({ name, values }) => JSON.stringify({ name, arguments: values })).join(", ")}]`,
  "mistral-args": (calls: Calls) =>
    calls.map(({ name, values }) => `[TOOL_CALLS]${name}[ARGS]${JSON.stringify(values)}`).join(""),
}

describe("answers with calls of tools", () => {
  it("are read the same, however the text is cut into pieces", () => {
    fc.assert(
      fc.property(formats, answer, fc.array(fc.nat(), { maxLength: 30 }), (format, text, cuts) => {
        const whole = format.reader({ tools })
        const parts = format.reader({ tools })
        assert.deepStrictEqual(
          collect([...pieces(text, cuts).flatMap((piece) => parts.push(piece)), ...parts.end()]),
          collect([...whole.push(text), ...whole.end()]),
        )
      }),
      { numRuns: 500 },
    )
  })

  it("give each call back as it was written", () => {
    fc.assert(
      fc.property(formats, fc.array(call, { minLength: 1, maxLength: 3 }), (format, calls) => {
        const reader = format.reader({ tools })
        const read = collect([...reader.push(written[format.name](calls)), ...reader.end()])
        assert.deepStrictEqual(read, {
          content: "",
          calls: calls.map(({ name, values }) => ({ name, arguments: JSON.stringify(values) })),
        })
      }),
    )
  })
})
