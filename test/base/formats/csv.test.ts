import { assert, it } from "vitest"
import { fieldsOf } from "../../../src/base/formats/csv.ts"

it("a record of very many quoted fields is read in one pass", () => {
  const fields = fieldsOf('"\n",'.repeat(300_000), ",", 1)
  assert.strictEqual("problem" in fields || fields.length, 300_001)
})

it("a problem has the line where the quote was opened", () => {
  assert.deepStrictEqual(fieldsOf('"\n","\n",a,"b\n', ",", 7), {
    line: 9,
    problem: "expected the quote opened here to be closed",
  })
})
