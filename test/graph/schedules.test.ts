import { assert, describe, it } from "@effect/vitest"
import { GraphError } from "../../src/graph/GraphError.ts"
import { constant, cosine, linear, polynomial } from "../../src/graph/schedules.ts"

describe("schedules", () => {
  it("polynomial: the start, nine tenths after one step of ten, nothing at the end and beyond", () => {
    const schedule = polynomial(1)
    assert.strictEqual(schedule(0), 1)
    assert.closeTo(schedule(1 / 10), 0.9, 1e-15)
    assert.strictEqual(schedule(1), 0)
    assert.strictEqual(schedule(1.5), 0)
    assert.strictEqual(schedule(-1), 1)
  })

  it("polynomial: to an end, in a curve", () => {
    const schedule = polynomial(1, 0.2, 2)
    assert.strictEqual(schedule(0.5), 0.2 + 0.8 * 0.25)
    assert.strictEqual(schedule(1), 0.2)
  })

  it("polynomial: never goes up", () => {
    assert.throws(() => polynomial(0.1, 0.2), GraphError, /^polynomial: 0.2 is not below 0.1/)
    assert.strictEqual(polynomial(0.1, 0.1)(0.3), 0.1)
  })

  it("linear is the polynomial of power one", () => {
    for (const progress of [0, 0.3, 1]) assert.strictEqual(linear(0.5, 0.1)(progress), polynomial(0.5, 0.1)(progress))
  })

  it("constant", () => assert.strictEqual(constant(0.3)(0.7), 0.3))

  it("cosine: up in a line, then down half a wave", () => {
    const schedule = cosine(2, { warmUp: 0.2, end: 0.5 })
    assert.strictEqual(schedule(0), 0)
    assert.closeTo(schedule(0.1), 1, 1e-12)
    assert.closeTo(schedule(0.2), 2, 1e-12)
    assert.closeTo(schedule(0.6), 1.25, 1e-12)
    assert.closeTo(schedule(1), 0.5, 1e-12)
    assert.strictEqual(cosine(2)(0), 2)
  })
})
