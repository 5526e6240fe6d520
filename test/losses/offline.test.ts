import { assert, describe, it } from "vitest"
import * as G from "../../src/graph/ops.ts"
import { GraphError } from "../../src/graph/GraphError.ts"
import { advantageWeightedRegression, expectileLoss } from "../../src/losses/offline.ts"
import { evaluated } from "./evaluated.ts"

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
