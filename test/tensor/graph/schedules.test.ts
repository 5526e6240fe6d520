import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { GraphError } from "../../../src/tensor/graph/GraphError.ts"
import {
  byStep,
  constant,
  cosine,
  course,
  linear,
  polynomial,
  ScheduleConfig,
} from "../../../src/tensor/graph/schedules.ts"

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
    // The warm-up can take the whole run.
    assert.deepStrictEqual([0.5, 1].map(cosine(2, { warmUp: 1 })), [1, 2])
    assert.deepStrictEqual([0.5, 1].map(course({ type: "linear", warmUp: 1 })), [0.5, 1])
  })
})

describe("schedules by step", () => {
  const config = Schema.decodeSync(ScheduleConfig)
  const settings = { learningRate: 2, maxSteps: 20 }

  it("constant by default, without a warm-up", () => {
    const rate = byStep(config({}), { learningRate: 2, maxSteps: null })
    assert.deepStrictEqual([0, 1, 1e6].map(rate), [2, 2, 2])
  })

  it("constant: rises from a hundred-millionth along a line", () => {
    const rate = byStep(config({ type: "constant", warmupSteps: 4 }), settings)
    assert.closeTo(rate(0), 2e-8, 1e-15)
    ;[0, 0.5, 1, 1.5, 2, 2].forEach((value, step) => assert.closeTo(rate(step), value, 3e-8))
  })

  it("linear: rises, stays, and falls over the last steps to min_lr, where it remains", () => {
    const rate = byStep(config({ type: "linear", warmupSteps: 4, decaySteps: 8, minLr: 0.4 }), settings)
    const expected = [0, 0.5, 1, 1.5, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1.8, 1.6, 1.4, 1.2, 1, 0.8, 0.6, 0.4, 0.4]
    expected.forEach((value, step) => assert.closeTo(rate(step), value, 3e-8, `step ${step}`))
  })

  it("linear: without decay_steps it falls from the warm-up to the end, never to 0", () => {
    const rate = byStep(config({ type: "linear", warmupSteps: 10 }), settings)
    assert.closeTo(rate(10), 2, 1e-12)
    assert.closeTo(rate(15), 1, 1e-7)
    assert.closeTo(rate(20), 2e-8, 1e-15)
  })

  it("cosine: falls along half a wave", () => {
    const rate = byStep(config({ type: "cosine", warmupSteps: 4, minLr: 1 }), settings)
    const expected = (step: number) => 1 + 0.5 * (1 + Math.cos((Math.PI * (step - 4)) / 16))
    for (const step of [4, 8, 12, 19, 20]) assert.closeTo(rate(step), expected(step), 1e-12)
  })

  it("decays after the warm-up in a run without an end", () => {
    const rate = byStep(config({ type: "linear", warmupSteps: 2, decaySteps: 4 }), { learningRate: 2, maxSteps: null })
    ;[0, 1, 2, 1.5, 1, 0.5, 0, 0].forEach((value, step) => assert.closeTo(rate(step), value, 3e-8))
  })

  it("refuses settings that do not fit together", () => {
    const make = (written: object, maxSteps: number | null) => () =>
      byStep(Schema.decodeUnknownSync(ScheduleConfig)(written), { learningRate: 2, maxSteps })
    const problems = [
      [{ type: "linear", minLr: 3 }, 20, /^schedule: minLr: expected at most the learning rate, which is 2/],
      [{ type: "cosine" }, null, /^schedule: decaySteps: expected the length of the cosine decay, because/],
      [
        { type: "linear", warmupSteps: 15, decaySteps: 6 },
        20,
        /^schedule: decaySteps: expected .* within the 20 steps/,
      ],
      [{ type: "linear", warmupSteps: 20 }, 20, /^schedule: warmupSteps: expected .* within the 20 steps/],
    ] as const
    for (const [written, maxSteps, message] of problems) assert.throws(make(written, maxSteps), GraphError, message)
    make({ type: "linear", warmupSteps: 14, decaySteps: 6 }, 20)()
    make({ type: "constant", minLr: 3 }, null)()
  })
})
