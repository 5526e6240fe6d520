import { assert, describe, it } from "vitest"
import { actionForm } from "../../../../src/agents/task/openenv/actions.ts"

const schema = { type: "object", properties: { a: { type: "integer" }, b: { type: "integer" } } }

describe("an answer that is an object of JSON", () => {
  const form = actionForm(schema, { actionKey: null, actionDefaults: {} })
  const actionOf = (answer: string) => ("problem" in form ? form : form.action?.(answer))

  it("may be in a fence", () => {
    for (const answer of ['{"a":1}', '```json\n{"a":1}\n```', ' ```\n\n{"a":1}```\n', '```JSON \n{"a":1}\n\n```  '])
      assert.deepStrictEqual(actionOf(answer), { a: 1 })
    for (const answer of ["```json\n```", '```json {"a":1} ```', "```\n``", '```json\n{"a":1}'])
      assert.deepStrictEqual(actionOf(answer), { problem: "expected an object of JSON" })
  })

  it("is read once, however many spaces and fences it has", () => {
    const many = 300_000
    for (const answer of [`\`\`\`${"\n".repeat(many)}\`\`\`${" ".repeat(many)}x`, `\`\`\`\n${"```\n".repeat(many)}x`])
      assert.deepStrictEqual(actionOf(answer), { problem: "expected an object of JSON" })
  })
})
