import { assert, describe, it } from "@effect/vitest"
import { utf8 } from "../../../../src/base/text/utf8.ts"
import { eachItem } from "../../../../src/agents/task/hub/jsonList.ts"

const itemsOf = (text: string): ReadonlyArray<string> | undefined => {
  const items: Array<string> = []
  const isList = eachItem(utf8.encode(text), (item) => {
    items.push(utf8.decode(item).trim())
    return true
  })
  return isList ? items : undefined
}

describe("a JSON list", () => {
  it("is split into its items, whatever their texts hold", () => {
    for (const value of [
      [],
      [1],
      [{}, {}],
      [{ a: ["[", "]", '\\"', "{,"], b: { c: [1, 2] } }, { d: "\\" }, null, "é,"],
    ]) {
      for (const text of [
        JSON.stringify(value),
        ` ${JSON.stringify(value, null, 2)}\n`,
        `\uFEFF${JSON.stringify(value)}`,
      ]) {
        assert.deepStrictEqual(
          itemsOf(text)?.map((item) => JSON.parse(item)),
          value,
          text,
        )
      }
    }
  })

  it("is no other text", () => {
    for (const text of ["", "{}", "[", "[1", "[1]]", "[1] 2", "[[1]", '["]', "1, 2]"])
      assert.isUndefined(itemsOf(text), text)
    assert.deepStrictEqual(itemsOf("[,]"), ["", ""])
  })
})
