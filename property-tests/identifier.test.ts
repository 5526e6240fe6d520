import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { fromFlatPath, fromPath, timeOf, toFlatPath, toPath } from "../src/run/identifier.ts"

/** Any text, and much of what means something in a path. */
const text = fc.oneof(
  fc.string({ unit: "grapheme" }),
  fc.string({ unit: fc.constantFrom("_", "/", "=", "%", "-", ".", "5", "F", "2", "D", "\\", "a", " ", ":") }),
)
const time = fc.date({ min: new Date(0), max: new Date("9999-12-31T23:59:59Z"), noInvalidDate: true }).map(timeOf)
const identifier = fc.record({
  time,
  commit: fc.oneof(fc.constantFrom("no-hash", "0123abc"), text),
  name: text,
  population: fc.dictionary(text, text, { maxKeys: 4, noNullPrototype: true }),
  seed: fc.oneof(fc.nat(20_000), fc.maxSafeInteger()),
})

describe("the path of a run", () => {
  it("gives its identifier back, wherever it lies", () => {
    fc.assert(
      fc.property(identifier, fc.constantFrom("", "results/", "/some where/a_b/"), (given, base) => {
        assert.deepEqual(fromPath(base + toPath(given)), given)
      }),
    )
  })

  it("is four folders whose names every file system takes", () => {
    fc.assert(
      fc.property(identifier, (given) => {
        const parts = toPath(given).split("/")
        assert.strictEqual(parts.length, 4)
        // oxlint-disable-next-line no-control-regex
        for (const part of parts) assert.notMatch(part, /^$|^\.{1,2}$|[\\:*?"<>|\u0000-\u001f]|[. ]$/)
      }),
    )
  })

  it("is another one for another identifier", () => {
    fc.assert(
      fc.property(identifier, identifier, (one, two) => {
        const same = JSON.stringify(one) === JSON.stringify(two)
        assert.strictEqual(toPath(one) === toPath(two), same)
      }),
    )
  })

  it("is found in no other text, or means the same there", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          text,
          fc.array(text).map((parts) => parts.join("/")),
        ),
        (path) => {
          const found = fromPath(path)
          if (found !== undefined) assert.deepEqual(fromPath(toPath(found)), found)
        },
      ),
    )
  })
})

it("a flat path gives its time back", () => {
  fc.assert(
    fc.property(time, (given) =>
      assert.deepEqual(fromFlatPath(`results/${toFlatPath({ time: given })}`), { time: given }),
    ),
  )
})
