import { assert, it } from "vitest"
import { jsonValue, parsedJson, roundedSpeed, shownScore, shownSpread } from "../../../src/base/config/text.ts"

it("speeds have a digit after the point if they are low, so that a slow run is not shown as one that stands still", () => {
  assert.deepStrictEqual([0, 0.26, 1, 9.94, 10.4, 2500.5].map(roundedSpeed), [0, 0.3, 1, 9.9, 10, 2501])
})

const nested = (levels: number) => `${'[{"a":'.repeat(levels / 2)}1${"}]".repeat(levels / 2)}`

it("JSON is refused if its lists and objects are nested so deep that walks over it would overflow the stack", () => {
  assert.strictEqual(JSON.stringify(jsonValue(nested(256))), nested(256))
  const lists = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`
  assert.strictEqual(JSON.stringify(jsonValue(lists(256))), lists(256))
  assert.throws(() => jsonValue(lists(257)), RangeError)
  assert.throws(() => jsonValue(`{"b":1,"__proto__":${lists(256)}}`), RangeError)
  for (const levels of [258, 100_000]) {
    assert.throws(
      () => jsonValue(nested(levels)),
      RangeError,
      "expected at most 256 lists and objects inside each other",
    )
    assert.isUndefined(parsedJson(nested(levels)))
  }
  assert.throws(() => jsonValue("{"), SyntaxError)
})

it("a mean and its deviation have as many digits after the point as the mean needs", () => {
  assert.deepStrictEqual([1, 0.0625, -1, 1.25, 500].map(shownScore), ["1.000", "0.063", "-1.000", "1.3", "500.0"])
  assert.strictEqual(shownSpread(1, 0), "1.000 ± 0.000")
  assert.strictEqual(shownSpread(0.5, 12.25), "0.500 ± 12.250")
  assert.strictEqual(shownSpread(498.7, 0.04), "498.7 ± 0.0")
})
