import { assert, describe, it } from "@effect/vitest"
import { hermes } from "../../../src/agents/lm/toolFormats/hermes.ts"
import { forcedCall } from "../../../src/decoder/engine/forcedCall.ts"

const text = (maxLength: number) => ({ type: "string", maxLength })

/** Makes a tool with a schema of many states, of which the last keyword is not supported. */
const large = (name: string) => ({
  name,
  parameters: {
    type: "object",
    properties: {
      ...Object.fromEntries(["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"].map((key) => [key, text(4000)])),
      last: { type: "object", minProperties: 1 },
    },
  },
})

const small = { name: "small", parameters: { type: "object", properties: { city: text(4) } } }

/** Returns the schema to which the arguments of `small` are held after some large tools. */
const heldTo = (largeTools: number): unknown => {
  const tools = [...Array.from({ length: largeTools }, (_, at) => large(`large${at}`)), small]
  const { schema } = forcedCall(hermes, tools, null)
  const alternatives = schema?.anyOf
  return Array.isArray(alternatives) ? alternatives.at(-1).properties.arguments : alternatives
}

describe("A call of any tool", () => {
  it("is held to each supported schema, as long as the work of checking all of them is limited", () => {
    assert.deepEqual(heldTo(3), small.parameters)
    assert.deepEqual(heldTo(12), { type: "object" })
  })
})
