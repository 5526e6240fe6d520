import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { fromText, toText } from "../src/rl/env/internal/plainData.ts"
import { make } from "../src/rl/env/RunningMoments.ts"

const typedArray = fc.oneof(
  fc.float64Array(),
  fc.float32Array(),
  fc.int32Array(),
  fc.uint32Array(),
  fc.uint8Array(),
  fc.int16Array(),
)
const leaf = fc.oneof(
  fc.double(),
  fc.integer(),
  fc.constantFrom(-0, Number.NaN, Infinity, -Infinity, null, undefined, "$", "undefined"),
  fc.string({ unit: "binary" }),
  fc.boolean(),
  fc.bigInt(),
  typedArray,
)
const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4 },
    leaf,
    fc.array(tie("tree"), { maxLength: 5 }),
    fc.dictionary(fc.oneof(fc.string(), fc.constantFrom("$", "value", "__proto__")), tie("tree"), {
      maxKeys: 5,
      noNullPrototype: true,
    }),
  ),
}))

describe("a state of plain data", () => {
  it("round-trips through text, including the sign of zero", () => {
    fc.assert(
      fc.property(tree, (value) => {
        const back = fromText(toText(value))
        assert.deepStrictEqual(back, value)
        assert.strictEqual(toText(back), toText(value))
      }),
      { numRuns: 500 },
    )
  })
})

describe("running moments", () => {
  it("do not depend on how the rows are split into batches", () => {
    const value = fc.double({ min: -1e3, max: 1e3, noNaN: true })
    fc.assert(
      fc.property(fc.array(fc.array(fc.tuple(value, value), { minLength: 1 }), { minLength: 1 }), (batches) => {
        const [cut, whole] = [make(2), make(2)]
        for (const batch of batches) cut.update(Float64Array.from(batch.flat()))
        whole.update(Float64Array.from(batches.flat(2)))
        assert.approximately(cut.count[0], whole.count[0], 1e-9)
        for (const column of [0, 1]) {
          assert.approximately(cut.mean[column], whole.mean[column], 1e-7)
          assert.approximately(cut.variance[column], whole.variance[column], 1e-4)
        }
      }),
    )
  })
})
