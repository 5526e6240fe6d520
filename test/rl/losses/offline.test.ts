import { assert, describe, it } from "vitest"
import * as G from "../../../src/tensor/graph/ops.ts"
import { GraphError } from "../../../src/tensor/graph/GraphError.ts"
import { advantageWeightedRegression, conservativePenalty, expectileLoss } from "../../../src/rl/losses/offline.ts"
import { evaluated, gradientOf } from "./evaluated.ts"

const q = [3, 1, -0.5, 2]
const v = [1, 2, 0.25, 2]
const logProbability = [-0.5, -1.25, -2, -0.1]

/** The loss of an expectile in float64, by its definition. */
const expectile = (tau: number): number =>
  q.reduce((sum, value, row) => {
    const u = value - v[row]
    return sum + Math.abs(tau - (u < 0 ? 1 : 0)) * u ** 2
  }, 0) / q.length

describe("losses of implicit Q-learning", () => {
  it("fit an expectile of the values of the data's actions", () => {
    for (const tau of [0.1, 0.5, 0.7, 0.9]) {
      const loss = expectileLoss({ q_t: G.constant(q), v_t: G.constant(v), expectile: tau })
      assert.closeTo(evaluated(loss)[0], expectile(tau), 1e-6)
    }
    // Half of the squared error.
    assert.closeTo(expectile(0.5), (4 + 1 + 0.5625) / 8, 1e-12)
  })

  it("imitate actions by their advantage, up to a limit", () => {
    const advantage = q.map((value, row) => value - v[row])
    for (const [beta, limit] of [
      [0, 100],
      [3, 100],
      [1, 2],
    ]) {
      const expected = -advantage.reduce(
        (sum, a, row) => sum + (Math.min(Math.exp(beta * a), limit) * logProbability[row]) / q.length,
        0,
      )
      const loss = advantageWeightedRegression({
        logProbability_t: G.constant(logProbability),
        advantage_t: G.constant(advantage),
        beta,
        limit,
      })
      assert.closeTo(evaluated(loss)[0], expected, 1e-5)
    }
  })

  it("reject shapes that would broadcast", () => {
    const [vector, column] = [G.constant([1, 2]), G.constant([1, 2], [2, 1])]
    assert.throws(() => expectileLoss({ q_t: column, v_t: vector, expectile: 0.7 }), GraphError, /^expectileLoss: q_t/)
    assert.throws(
      () => advantageWeightedRegression({ logProbability_t: vector, advantage_t: column, beta: 1, limit: 1 }),
      GraphError,
      /^advantageWeightedRegression: advantage_t/,
    )
  })
})

describe("the penalty of conservative Q-learning", () => {
  const values = [0, 1.0986122887, -2, 0.5, 0.25, 3]
  const [rows, count] = [2, 3]
  const taken = [1, 0]
  const q_t = G.constant(values, [rows, count])
  const rowOf = (row: number) => values.slice(row * count, (row + 1) * count)
  const total = (row: number) => rowOf(row).reduce((sum, value) => sum + Math.exp(value), 0)

  it("is the log of the sum of exponentials minus the value of the data's action, in the mean", () => {
    const penalty = conservativePenalty({ q_t, actions: G.constant(Int32Array.from(taken)) })
    const expected = taken.reduce((sum, action, row) => sum + Math.log(total(row)) - rowOf(row)[action], 0) / rows
    assert.closeTo(evaluated(penalty)[0], expected, 1e-6)
    // Worked out by other means: log(1 + 3 + e⁻²) − log 3 = 0.3209561, log(e^0.5 + e^0.25 + e³) − 0.5 = 2.6362888.
    assert.closeTo(expected, (0.3209561 + 2.6362888) / 2, 1e-6)
  })

  it("lowers each value by its share of the exponentials, and raises that of the data's action", () => {
    const penalty = conservativePenalty({ q_t, actions: G.constant(Int32Array.from(taken)) })
    for (const [index, slope] of gradientOf(penalty, q_t).entries()) {
      const row = Math.floor(index / count)
      const isTaken = index % count === taken[row] ? 1 : 0
      assert.closeTo(slope, (Math.exp(values[index]) / total(row) - isTaken) / rows, 1e-6)
    }
  })

  it("rejects shapes that would broadcast", () => {
    const actions = G.constant(Int32Array.of(1, 0), [2, 1])
    assert.throws(() => conservativePenalty({ q_t, actions }), GraphError, /^valueOfAction: actions/)
  })
})
