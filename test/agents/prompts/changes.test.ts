import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { textChanges } from "../../../src/agents/prompts/changes.ts"

const signs = { same: " ", removed: "-", added: "+" }
const written = (before: string, after: string) =>
  textChanges({ a: before }, { a: after }).flatMap(({ lines }) =>
    lines.map(({ kind, line }) => `${signs[kind]}${line}`),
  )

describe("differences of two texts", () => {
  it("are lines that were removed and added", () => {
    assert.deepStrictEqual(written("a\nb\nc", "a\nx\nc\nd"), [" a", "-b", "+x", " c", "+d"])
    assert.deepStrictEqual(written("", "a"), ["+a"])
    assert.deepStrictEqual(written("a", ""), ["-a"])
    assert.deepStrictEqual(written("a\nb", "a\nb"), [])
  })

  it("give both versions again", () => {
    const text = fc
      .array(fc.constantFrom("a", "b", "c"), { minLength: 1, maxLength: 8 })
      .map((lines) => lines.join("\n"))
    fc.assert(
      fc.property(text, text, (before, after) => {
        fc.pre(before !== after)
        const [{ lines: changes }] = textChanges({ a: before }, { a: after })
        const version = (left: string) => changes.filter(({ kind }) => kind !== left).map(({ line }) => line)
        assert.strictEqual(version("added").join("\n"), before)
        assert.strictEqual(version("removed").join("\n"), after)
      }),
    )
  })

  it("have any names, also those of properties that every object has", () => {
    const after: Record<string, string> = JSON.parse('{ "__proto__": "x", "constructor": "y" }')
    assert.deepStrictEqual(textChanges({}, after), [
      { name: "__proto__", lines: [{ kind: "added", line: "x" }] },
      { name: "constructor", lines: [{ kind: "added", line: "y" }] },
    ])
    assert.deepStrictEqual(textChanges(after, after), [])
  })

  it("are those of whole texts when the work for all of them together would be too much", { tags: "slow" }, () => {
    const lines = (word: string) => Array.from({ length: 1400 }, (_, line) => (line === 0 ? "same" : `${word}${line}`))
    const texts = (word: string) => ({
      a: lines(word).join("\n"),
      b: lines(word).join("\n"),
      c: lines(word).join("\n"),
    })
    const same = textChanges(texts("x"), texts("y")).map(
      (text) => text.lines.filter(({ kind }) => kind === "same").length,
    )
    assert.deepStrictEqual(same, [1, 1, 0])
  })
})
