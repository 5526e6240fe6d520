import { assert, describe, it } from "@effect/vitest"
import { GraphError } from "../../../src/tensor/graph/GraphError.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import {
  doubleQValue,
  qLearningValue,
  rescaled,
  tdTarget,
  unrescaled,
  valueOfAction,
  weightedMean,
} from "../../../src/rl/losses/qLearning.ts"
import { evaluated, gradientOf } from "./evaluated.ts"

const rows = (numbers: ReadonlyArray<ReadonlyArray<number>>) =>
  G.constant(numbers.flat(), [numbers.length, numbers[0].length])

describe("losses of Q-learning", () => {
  it("select the value of the action in each row", () => {
    const q = rows([
      [1, 2, 3],
      [4, 5, 6],
    ])
    assert.deepStrictEqual(evaluated(valueOfAction(q, G.constant(Int32Array.of(2, 0)))), [3, 4])
  })

  it("compute r + γ v, through which no gradient flows", () => {
    const v_t = G.constant([10, 20, 30])
    const target = tdTarget({ r_t: G.constant([1, 2, 3]), discount_t: G.constant([0.5, 0.25, 0]), v_t })
    assert.deepStrictEqual(evaluated(target), [6, 7, 3])
    assert.deepStrictEqual(gradientOf(G.sum(target), v_t), [0, 0, 0])
  })

  it("give the next observation the largest value, or the target network's value of the online network's choice", () => {
    const q_t = rows([
      [1, 5],
      [7, 2],
    ])
    const selector_t = rows([
      [4, 3],
      [2, 1],
    ])
    assert.deepStrictEqual(evaluated(qLearningValue({ q_t })), [5, 7])
    assert.deepStrictEqual(evaluated(doubleQValue({ q_t, selector_t })), [1, 7])
  })

  it("rescale values, and back", () => {
    const values = [0, 3, -3, 99, -2499]
    const scaled = evaluated(rescaled(G.constant(values)))
    for (const [index, expected] of [0, 1.003, -1.003, 9.099, -51.499].entries())
      assert.closeTo(scaled[index], expected, 1e-4)
    for (const [index, value] of evaluated(unrescaled(rescaled(G.constant(values)))).entries())
      assert.closeTo(value, values[index], 1e-5 + 1e-5 * Math.abs(values[index]))
  })

  it("weigh rows by importance", () => {
    assert.deepStrictEqual(evaluated(weightedMean(G.constant([2, 4]))), [3])
    assert.deepStrictEqual(evaluated(weightedMean(G.constant([2, 4]), G.constant([0.5, 1]))), [2.5])
  })

  it("reject shapes that would broadcast", () => {
    const column = G.constant([1, 2], [2, 1])
    const vector = G.constant([1, 2])
    assert.throws(
      () => tdTarget({ r_t: column, discount_t: vector, v_t: vector }),
      GraphError,
      /^tdTarget: r_t: expected/,
    )
    assert.throws(() => weightedMean(vector, column), GraphError, /^weightedMean: importance: expected shape \[2\]/)
    assert.throws(() => valueOfAction(vector, vector), GraphError, /^valueOfAction: q: expected \[rows, actions\]/)
  })
})
