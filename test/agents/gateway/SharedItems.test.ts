import { assert, describe, it } from "@effect/vitest"
import { fieldsHash, jsonLength } from "../../../src/base/text/jsonFacts.ts"
import { sameJson, SharedItems } from "../../../src/agents/gateway/SharedItems.ts"

interface Item {
  readonly text: string
}

const listOf = (...texts: ReadonlyArray<string>): ReadonlyArray<Item> => texts.map((text) => ({ text }))

describe("lists that share items", () => {
  it("have the same objects as the nearest of the latest lists", () => {
    const shared = new SharedItems<Item>()
    const first = shared.share(listOf("a", "b"), 0)
    const other = shared.share(listOf("x", "y"), 1)
    const second = shared.share(listOf("a", "b", "c"), 2)
    assert.deepStrictEqual([first.start, other.start, second.start], [null, null, { list: 0, length: 2 }])
    assert.strictEqual(second.items[1], first.items[1])
    const next = shared.share(listOf("x", "y", "z"), 3)
    assert.deepStrictEqual(next.start, { list: 1, length: 2 })
    const rewritten = shared.share(listOf("a", "b", "d"), 4)
    assert.deepStrictEqual(rewritten.start, { list: 2, length: 2 })
    assert.deepStrictEqual(rewritten.items, listOf("a", "b", "d"))
  })

  it("forget the oldest list, and items that are not kept", () => {
    const shared = new SharedItems<Item>(({ text }) => text !== "large")
    for (const [number, text] of ["a", "b", "c", "d", "e"].entries()) shared.share(listOf(text), number)
    assert.strictEqual(shared.share(listOf("a"), 5).start, null)
    shared.share(listOf("f", "large", "g"), 6)
    const again = shared.share(listOf("f", "large", "g"), 7)
    assert.deepStrictEqual([again.start, again.items.length], [{ list: 6, length: 1 }, 3])
  })
})

describe("values", () => {
  it("have the same JSON if all keys and items have", () => {
    assert.isTrue(sameJson({ a: [1, { b: null }], c: "x" }, { a: [1, { b: null }], c: "x" }))
    assert.isFalse(sameJson({ a: 1, c: "x" }, { c: "x", a: 1 }))
    const one = { a: 1 }
    for (const other of [{ a: 2 }, { a: 1, b: 1 }, { b: 1 }, {}, [1], null, "a"]) assert.isFalse(sameJson(one, other))
    assert.isFalse(sameJson([1, 2], [1]))
    assert.isFalse(sameJson({ a: undefined }, { b: undefined }))
  })

  it("have equal hashes if they are equal, and others if they are not", () => {
    const fields = (text: string) => ({ model: "m", messages: listOf("a", text), n: 1 })
    assert.strictEqual(fieldsHash(fields("b")), fieldsHash(fields("b")))
    const all = Array.from({ length: 2000 }, (_, at) => fieldsHash(fields(`${at}`)))
    all.push(fieldsHash({ ...fields("1"), n: 2 }), fieldsHash({ ...fields("1"), messages: listOf("a") }))
    assert.strictEqual(new Set(all).size, all.length)
    for (const hash of all) assert.isTrue(Number.isSafeInteger(hash))
    assert.strictEqual(jsonLength({ a: "\n" }), '{"a":"\\n"}'.length)
  })
})
