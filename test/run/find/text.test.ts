import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { bar, bytesText, cell, short, table } from "../../../src/run/find/table.ts"
import { thinned } from "../../../src/base/statistics/resampling.ts"
import { curveOf, scoreLines } from "../../../src/run/read/validations.ts"

describe("text for terminals", () => {
  it("is a table whose numbers are on the right", () => {
    assert.strictEqual(
      table(
        ["name", "steps", "path"],
        [
          ["a", 5, "x"],
          ["longer", undefined, "y"],
          ["b", 123456, null],
        ],
      ),
      "name     steps  path\na            5  x\nlonger       -  y\nb       123456  -\n",
    )
    assert.strictEqual(table([], [["a", 1]]), "a  1\n")
  })

  it("lets nothing through that moves the cursor", () => {
    assert.strictEqual(cell("a\u001b[2Jb\nc"), "a�[2Jb�c")
  })

  it("has short numbers", () => {
    assert.deepEqual([464.5, 500, 0.001, 0.123456, -1234.56, 1e-7].map(short), [
      "464.5",
      "500",
      "0.001",
      "0.1235",
      "-1234.6",
      "1e-7",
    ])
    assert.deepEqual([0, 999, 1000, 1_234_567].map(bytesText), ["0 B", "999 B", "1.0 kB", "1.2 MB"])
  })

  it("has bars that are never nothing and never too long, the longer the more", () => {
    assert.deepEqual(
      [bar(0, 0, 10, 4), bar(5, 0, 10, 4), bar(10, 0, 10, 4), bar(3, 3, 3, 2), bar(0, 0, 0, 2)],
      ["▏", "██", "████", "██", "▏"],
    )
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1 }), fc.double({ min: 0, max: 1 }), (one, other) => {
        const [less, more] = [Math.min(one, other), Math.max(one, other)].map((value) => bar(value, 0, 1, 10).length)
        assert.isTrue(less >= 1 && less <= more && more <= 10)
      }),
    )
  })

  it("keeps the first and the last of what is thinned", () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 500 }), fc.integer({ min: 2, max: 30 }), (length, most) => {
        const kept = thinned(
          Array.from({ length }, (_, index) => index),
          most,
        )
        assert.strictEqual(kept.length, Math.min(length, most))
        assert.strictEqual(new Set(kept).size, kept.length)
        assert.deepEqual([kept[0], kept.at(-1)], [0, length - 1])
      }),
    )
  })
})

describe("validations in score files", () => {
  it("are one a step; a line that is still being written doesn't count, nor a score that is no number", () => {
    const text = '{"step_index":5,"score":1}\n{"step_index":5,"score":3}\n{"step_index":9,"score":null}\n{"step_ind'
    const { lines, damaged } = scoreLines(text)
    assert.isFalse(damaged)
    assert.deepEqual(curveOf(lines), [{ step: 5, mean: 2, std: 1, episodes: 2 }])
  })

  it("are what is left of a damaged file", () => {
    const { lines, damaged } = scoreLines('{"step_index":5,"score":1}\n\u0000\u0000\n{"score":3}\n')
    assert.isTrue(damaged)
    assert.deepEqual(
      lines.map(({ step, score }) => ({ step, score })),
      [{ step: 5, score: 1 }],
    )
  })
})
