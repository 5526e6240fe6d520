import { assert, describe, it } from "@effect/vitest"
import { GraphError } from "../../../src/tensor/graph/GraphError.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import type { ProgramSpec } from "../../../src/tensor/graph/Program.ts"
import { feedShapes, resultShapes, rootsOf, validate } from "../../../src/tensor/graph/validate.ts"

const x = G.input("x", [4, 3])
const rate = G.input("rate", [])
const s = G.state("s", [3])
const next = G.add(s, G.mul(G.sum(x, 0), rate))
const all = G.state("all", [3, 3])
const good: ProgramSpec = {
  name: "good",
  inputs: { x, rate },
  state: { s: { tensor: s, next } },
  outputs: { sum: G.sum(next), best: G.argMax(x) },
  minibatches: { rows: 10, batch: 4, count: 3, gathered: ["x"], continueWhile: G.less(G.sum(next), 1) },
}

describe("validate", () => {
  it("accepts a program whose parts fit together", () => validate(good))

  it("accepts an input that nothing reads", () =>
    validate({ name: "idle", inputs: { x }, state: {}, outputs: { rate: G.constant(1) } }))

  const wrong: Readonly<Record<string, readonly [Partial<ProgramSpec>, RegExp]>> = {
    "an input by another name": [{ inputs: { y: x, rate } }, /^good: input "y": expected an input op of this name/],
    "an input that is no input": [{ inputs: { x: s, rate } }, /^good: input "x": expected an input op of this name/],
    "an input that isn't declared": [{ inputs: { x } }, /^good: input "rate" is used but not declared/],
    "an input of the same name, but another": [
      { inputs: { x: G.input("x", [4, 3]), rate } },
      /^good: input "x" is used but not declared/,
    ],
    "a state by another name": [
      { state: { t: { tensor: s, next } } },
      /^good: state "t": expected a state op of this name/,
    ],
    "a state that isn't declared": [{ state: {} }, /^good: state "s" is used but not declared/],
    "a frozen state with a next value": [
      { state: { s: { tensor: s, next, frozen: true } } },
      /^good: state "s": a frozen state has no next value/,
    ],
    "a stacked state in a program that can end early": [
      { state: { s: { tensor: s, next }, all: { tensor: G.state("all", [3, 3]), next, stacked: true } } },
      /^good: state "all": a stacked state needs a next value, and minibatches without continueWhile/,
    ],
    "a stacked state of another number of rows": [
      {
        state: { s: { tensor: s, next }, all: { tensor: G.state("all", [2, 3]), next, stacked: true } },
        minibatches: { rows: 10, batch: 4, count: 3, gathered: ["x"] },
      },
      /^good: state "all": its next value has another shape or dtype/,
    ],
    "a stacked state that the program reads": [
      {
        state: { s: { tensor: s, next }, all: { tensor: all, next: G.sum(all, 0), stacked: true } },
        minibatches: { rows: 10, batch: 4, count: 3, gathered: ["x"] },
      },
      /^good: state "all" is stacked, so only other programs can read it/,
    ],
    "a next value of another shape": [
      { state: { s: { tensor: s, next: G.sum(next) } } },
      /^good: state "s": its next value has another shape or dtype/,
    ],
    "a next value of another kind": [
      { state: { s: { tensor: s, next: G.cast(next, "i32") } } },
      /^good: state "s": its next value has another shape or dtype/,
    ],
    "a gathered input that isn't declared": [
      { minibatches: { rows: 10, batch: 4, count: 3, gathered: ["z"] } },
      /^good: gathered input "z" is not declared/,
    ],
    "a gathered input of another batch": [
      { minibatches: { rows: 10, batch: 5, count: 3, gathered: ["x"] } },
      /^good: gathered input "x": expected 5 rows/,
    ],
    "no minibatches at all": [
      { minibatches: { rows: 10, batch: 4, count: 0, gathered: ["x"] } },
      /^good: minibatches need whole, positive sizes/,
    ],
    "a condition that is no truth": [
      { minibatches: { rows: 10, batch: 4, count: 3, gathered: ["x"], continueWhile: G.sum(next) } },
      /^good: continueWhile must be a bool scalar/,
    ],
    "a condition for each element": [
      { minibatches: { rows: 10, batch: 4, count: 3, gathered: ["x"], continueWhile: G.less(next, 1) } },
      /^good: continueWhile must be a bool scalar/,
    ],
  }
  for (const [name, [change, message]] of Object.entries(wrong)) {
    it(`refuses ${name}`, () => assert.throws(() => validate({ ...good, ...change }), GraphError, message))
  }

  it("rejects an input with the name of the index matrix", () => {
    const indices = G.input("indices", [4])
    assert.throws(
      () => validate({ ...good, inputs: { ...good.inputs, indices } }),
      /input "indices": the name is reserved for the index matrix/,
    )
    validate({ name: "once", inputs: { indices }, state: {}, outputs: { y: G.sum(indices) } })
  })
})

describe("shapes outside of a program", () => {
  it("feeds hold gathered inputs whole, and the index matrix", () => {
    assert.deepStrictEqual(feedShapes(good), {
      x: { shape: [10, 3], dtype: "f32" },
      rate: { shape: [], dtype: "f32" },
      indices: { shape: [3, 4], dtype: "i32" },
    })
  })

  it("results are stacked", () => {
    assert.deepStrictEqual(resultShapes(good), {
      sum: { shape: [3], dtype: "f32" },
      best: { shape: [3, 4], dtype: "i32" },
    })
  })

  it("without minibatches, feeds and results have the graph's shapes", () => {
    const once: ProgramSpec = { name: good.name, inputs: good.inputs, state: good.state, outputs: good.outputs }
    assert.deepStrictEqual(feedShapes(once), { x: { shape: [4, 3], dtype: "f32" }, rate: { shape: [], dtype: "f32" } })
    assert.deepStrictEqual(resultShapes(once), { sum: { shape: [], dtype: "f32" }, best: { shape: [4], dtype: "i32" } })
  })

  it("roots are everything that a program computes", () => {
    assert.deepStrictEqual(rootsOf(good), [
      good.outputs.sum,
      good.outputs.best,
      next,
      ...(good.minibatches?.continueWhile === undefined ? [] : [good.minibatches.continueWhile]),
    ])
  })
})
