import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { lineChanges } from "../../../src/agents/prompts/changes.ts"

const signs = { same: " ", removed: "-", added: "+" }
const written = (before: string, after: string) =>
  lineChanges(before, after).map(({ kind, line }) => `${signs[kind]}${line}`)

describe("differences of two texts", () => {
  it("are lines that were removed and added", () => {
    assert.deepStrictEqual(written("a\nb\nc", "a\nx\nc\nd"), [" a", "-b", "+x", " c", "+d"])
    assert.deepStrictEqual(written("", "a"), ["+a"])
    assert.deepStrictEqual(written("a", ""), ["-a"])
    assert.deepStrictEqual(written("a\nb", "a\nb"), [" a", " b"])
  })

  it("give both versions again", () => {
    const text = fc
      .array(fc.constantFrom("a", "b", "c"), { minLength: 1, maxLength: 8 })
      .map((lines) => lines.join("\n"))
    fc.assert(
      fc.property(text, text, (before, after) => {
        const changes = lineChanges(before, after)
        const version = (left: string) => changes.filter(({ kind }) => kind !== left).map(({ line }) => line)
        assert.strictEqual(version("added").join("\n"), before)
        assert.strictEqual(version("removed").join("\n"), after)
      }),
    )
  })
})
