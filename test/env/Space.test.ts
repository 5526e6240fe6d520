import { assert, describe, it } from "vitest"
import * as Space from "../../src/env/Space.ts"
import { stream } from "../../src/rng/Rng.ts"
import { envError } from "./errors.ts"

describe("box", () => {
  it("spreads one bound over a shape", () => {
    assert.deepEqual(Space.box(0, 255, [2, 3]), {
      _tag: "Box",
      shape: [2, 3],
      low: [0, 0, 0, 0, 0, 0],
      high: [255, 255, 255, 255, 255, 255],
    })
  })

  it("has the length of its bounds by default", () => {
    assert.deepEqual(Space.box([-1, -2], 2).shape, [2])
    assert.deepEqual(Space.box(-1, [1, 2, 3]).shape, [3])
    assert.deepEqual(Space.box(-1, 1).shape, [1])
  })

  it("refuses invalid bounds", () => {
    assert.strictEqual(envError(() => Space.box([0, 2], [1, 1])).message, "box: low 2 is above high 1 at element 1")
    assert.strictEqual(
      envError(() => Space.box([0, 0], [1, 1, 1])).message,
      "box: high has 3 elements, shape [2] has 2",
    )
    assert.include(envError(() => Space.box(Number.NaN, 1)).message, "low NaN")
    assert.include(envError(() => Space.box(0, 1, [0])).message, "shape [0]")
  })
})

describe("discrete", () => {
  it("counts its choices", () => {
    assert.deepEqual(Space.discrete(3), { _tag: "Discrete", n: 3 })
    for (const n of [0, -1, 1.5, Number.NaN])
      assert.include(envError(() => Space.discrete(n)).message, `expected a whole number from 1, found ${n}`)
  })
})

describe("sizeOf and display", () => {
  it("counts the numbers that hold a member", () => {
    assert.strictEqual(Space.sizeOf(Space.discrete(7)), 1)
    assert.strictEqual(Space.sizeOf(Space.box(0, 1, [4, 5])), 20)
    assert.strictEqual(Space.display(Space.discrete(7)), "Discrete(7)")
    assert.strictEqual(Space.display(Space.box(0, 1, [4, 5])), "Box([4, 5])")
  })
})

describe("contains", () => {
  const box = Space.box([-1, 0], [1, Number.POSITIVE_INFINITY])
  it.each([
    [Space.discrete(2), 0, true],
    [Space.discrete(2), 1, true],
    [Space.discrete(2), 2, false],
    [Space.discrete(2), -1, false],
    [Space.discrete(2), 0.5, false],
    [Space.discrete(2), "1", false],
    [Space.discrete(2), [1], false],
    [box, [0, 5], true],
    [box, Float32Array.of(-1, 1e30), true],
    [box, [-1.001, 5], false],
    [box, [0, -0.1], false],
    [box, [0], false],
    [box, [0, Number.NaN], false],
    [box, [0, Number.POSITIVE_INFINITY], false],
    [box, ["0", 1], false],
    [box, 0, false],
    [box, undefined, false],
  ])("%o, %o: %s", (space, value, expected) => {
    assert.strictEqual(Space.contains(space, value), expected)
  })

  it("accepts a bound rounded to float32", () => {
    assert.isTrue(Space.contains(Space.box(-0.07, 0.07), Float32Array.of(0.07)))
  })
})

describe("sample", () => {
  it("returns members, and all choices eventually", () => {
    const random = stream(1, "sample")
    const seen = new Set<number>()
    const numbers = Space.box(
      [-2, 0, Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY],
      [1, Number.POSITIVE_INFINITY, 3, Number.POSITIVE_INFINITY],
    )
    const sums = [0, 0, 0, 0]
    for (let draw = 0; draw < 4000; draw++) {
      seen.add(Space.sample(Space.discrete(4), random))
      const member = Space.sample(numbers, random)
      assert.isTrue(Space.contains(numbers, member))
      for (const [at, value] of member.entries()) sums[at] += value / 4000
    }
    assert.deepEqual([...seen].sort(), [0, 1, 2, 3])
    // Uniform, exponential from 0, exponential down from 3, normal.
    for (const [at, mean] of [-0.5, 1, 2, 0].entries()) assert.approximately(sums[at], mean, 0.1)
  })
})
