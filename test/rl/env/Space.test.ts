import { Schema } from "effect"
import { assert, describe, it } from "vitest"
import * as Space from "../../../src/rl/env/Space.ts"
import { stream } from "../../../src/base/rng/Rng.ts"
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

  it("refuses a shape with more numbers than an array can have, before it makes one", () => {
    assert.strictEqual(
      envError(() => Space.box(0, 1, [100_000, 100_000])).message,
      "box: shape [100000, 100000]: expected at most 16777216 (an array has so many numbers), found 10000000000",
    )
  })
})

describe("discrete", () => {
  it("counts its choices", () => {
    assert.deepEqual(Space.discrete(3), { _tag: "Discrete", n: 3 })
    for (const n of [0, -1, 1.5, Number.NaN])
      assert.include(envError(() => Space.discrete(n)).message, `expected a whole number from 1, found ${n}`)
  })

  it("has no more choices than an array can have numbers, as have the other spaces of whole numbers", () => {
    for (const make of [Space.discrete, Space.multiBinary, (n: number) => Space.multiDiscrete([n / 2, n / 2])])
      assert.match(envError(() => make(1e12)).message, /: expected at most 16777216 .*, found 1000000000000$/)
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

const camera = Space.box(0, 1, [1, 2, 2])
const robot = Space.dict({
  camera,
  arm: Space.tuple(Space.discrete(3), Space.multiBinary(2)),
  tools: Space.multiDiscrete([4, 2]),
})
const value = { camera: [0, 0.5, 1, 0.25], arm: [2, [true, 0]], tools: Int32Array.of(3, 1) } as const

describe("spaces with parts", () => {
  it("are flat rows, part after part", () => {
    assert.strictEqual(Space.sizeOf(robot), 9)
    const row = Space.flatten(robot, value)
    assert.deepEqual([...row], [0, 0.5, 1, 0.25, 2, 1, 0, 3, 1])
    const back = Space.unflatten(robot, row)
    assert.deepEqual(back, { camera: [0, 0.5, 1, 0.25], arm: [2, [1, 0]], tools: [3, 1] })
    assert.deepEqual(
      Space.partsOf(robot).map(({ path, offset, size }) => [path, offset, size]),
      [
        ["camera", 0, 4],
        ["arm.0", 4, 1],
        ["arm.1", 5, 2],
        ["tools", 7, 2],
      ],
    )
    assert.strictEqual(
      Space.display(robot),
      "Dict(camera: Box([1, 2, 2]), arm: Tuple(Discrete(3), MultiBinary(2)), tools: MultiDiscrete([4, 2]))",
    )
  })

  it.each([
    [{ ...value, arm: [3, [0, 1]] }, "value.arm[0] is 3; expected a whole number from 0 to 2"],
    [{ ...value, arm: [0, [0, 2]] }, "value.arm[1][1] is 2, not 0 or 1"],
    [{ ...value, arm: [0] }, "value.arm: expected a list of 2 parts, found 1"],
    [{ ...value, tools: [1, 2] }, "value.tools[1] is 2; expected a whole number from 0 to 1"],
    [{ ...value, camera: [1, 2] }, "value.camera: expected 4 numbers, found 2"],
    [{ ...value, camera: [0, 0, 0, 2] }, "value.camera[3] is 2; expected a number from 0 to 1"],
    [{ camera: value.camera, arm: value.arm }, "value.tools is missing"],
    [{ ...value, legs: 2 }, "value.legs is no part; expected camera, arm, tools"],
    [[1, 2], "value: expected an object with camera, arm, tools, found [1,2]"],
  ])("refuse %o", (wrong, problem) => {
    assert.strictEqual(Space.problemOf(robot, wrong), problem)
    assert.isFalse(Space.contains(robot, wrong))
  })

  it("are sampled part by part", () => {
    const random = stream(1, "robot")
    for (let draw = 0; draw < 200; draw++) assert.isTrue(Space.contains(robot, Space.sample(robot, random)))
  })

  it("refuse wrong definitions", () => {
    assert.include(envError(() => Space.multiDiscrete([2, 0])).message, "found [2, 0]")
    assert.include(envError(() => Space.multiBinary(0)).message, "found 0")
    assert.include(envError(() => Space.dict({})).message, "at least one part")
    assert.include(envError(() => Space.dict({ b: camera, 1: camera })).message, 'a part is called "1"')
    assert.include(envError(() => Space.tuple()).message, "at least one part")
    assert.include(envError(() => Space.masked(camera, Space.multiBinary(2))).message, "only choices can be masked")
  })

  it("have a form in JSON", () => {
    const space = Space.tuple(robot, Space.box(Number.NEGATIVE_INFINITY, [0, Number.POSITIVE_INFINITY]))
    const text = JSON.stringify(Schema.encodeSync(Space.Json)(space))
    assert.include(text, '"-Infinity"')
    assert.deepEqual(Schema.decodeUnknownSync(Space.Json)(JSON.parse(text)), space)
    const short = { _tag: "Box", shape: [3], low: [0], high: [1] }
    assert.throws(() => Schema.decodeUnknownSync(Space.Json)(short), /bound/)
  })

  it("has a limit in JSON, for each part and for all of them", () => {
    const switches = { _tag: "MultiBinary", n: 1e7 }
    const decode = Schema.decodeUnknownSync(Space.Json)
    assert.strictEqual(Space.sizeOf(decode(switches)), 1e7)
    assert.throws(() => decode({ _tag: "Tuple", parts: [switches, switches] }), /a space with at most 16777216 numbers/)
    assert.throws(() => decode({ _tag: "Discrete", n: 1e12 }), /between 1 and 16777216/)
  })
})

describe("rows with action masks", () => {
  it("have the mask after the observation", () => {
    const rows = Space.masked(camera, Space.multiDiscrete([3, 2]))
    assert.strictEqual(Space.sizeOf(rows), 9)
    assert.strictEqual(Space.maskSizeOf(rows), 5)
    assert.strictEqual(Space.unmasked(rows), camera)
    assert.strictEqual(Space.display(rows), "Box([1, 2, 2]) with a mask of 3 + 2 choices")
  })
})
