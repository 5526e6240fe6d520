import { assert, describe, it } from "@effect/vitest"
import { GraphError } from "../../../src/tensor/graph/GraphError.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import type { Tensor } from "../../../src/tensor/graph/Tensor.ts"
import {
  clippedDoubleQTarget,
  deterministicPolicyLoss,
  lowest,
  smoothedAction,
  softPolicyLoss,
  softTarget,
  softValue,
  temperatureGradient,
  criticLoss,
} from "../../../src/rl/losses/critics.ts"
import { stream } from "../../../src/base/rng/Rng.ts"
import { evaluated, gradientOf } from "./evaluated.ts"

const close = (tensor: Tensor, expected: ReadonlyArray<number>): void => {
  const numbers = evaluated(tensor)
  assert.strictEqual(numbers.length, expected.length)
  for (const [index, value] of expected.entries()) assert.closeTo(numbers[index], value, 1e-6)
}

const transition = {
  r_t: G.constant([1, 2]),
  discount_t: G.constant([0.5, 0]),
  q_t: [G.constant([4, 10]), G.constant([6, 8])],
} as const

describe("targets of critics", () => {
  it("take the smallest value of the critics", () => {
    close(clippedDoubleQTarget(transition), [1 + 0.5 * 4, 2])
    close(clippedDoubleQTarget({ ...transition, q_t: [transition.q_t[1]] }), [1 + 0.5 * 6, 2])
    close(clippedDoubleQTarget({ ...transition, q_t: [...transition.q_t, G.constant([5, 1])] }), [1 + 0.5 * 4, 2])
  })

  it("of soft Q-learning subtract the temperature times the log probability", () => {
    close(softTarget({ ...transition, logProbability_t: G.constant([-2, 3]), alpha: 0.1 }), [1 + 0.5 * 4.2, 2])
  })

  it("of a policy over choices expect the value and the entropy", () => {
    const q_t = G.constant([1, 3, 2, 2], [2, 2])
    const logProbabilities_t = G.constant([Math.log(0.25), Math.log(0.75), 0, -40], [2, 2])
    const entropy = -(0.25 * Math.log(0.25) + 0.75 * Math.log(0.75))
    close(softValue({ q_t, logProbabilities_t, alpha: 0.5 }), [0.25 * 1 + 0.75 * 3 + 0.5 * entropy, 2])
  })

  it("smooth the target action by clipped noise, within −1 to 1", () => {
    const action = G.constant([0.9, -0.2, 0.1], [3, 1])
    const noise = G.constant([10, -10, 1], [3, 1])
    close(smoothedAction({ action, noise, deviation: 0.2, bound: 0.5 }), [1, -0.7, 0.3])
  })
})

describe("the lowest numbers of each row", () => {
  it("are those that a sort finds, also where numbers are equal", () => {
    const random = stream(3, "lowest")
    const rows = Array.from({ length: 40 }, () => Array.from({ length: 9 }, () => random.integer(6) - 2.5))
    const expected = rows.flatMap((row) => row.toSorted((a, b) => a - b).slice(0, 7))
    const values = G.constant(rows.flat(), [40, 9])
    assert.deepStrictEqual(evaluated(lowest(values, 7)), expected)
  })

  it("are not more than there are", () => {
    assert.throws(() => lowest(G.constant([1, 2], [1, 2]), 3), GraphError, /expected \[rows, n\] with n at least 3/)
  })
})

describe("losses of critics", () => {
  it("sum the squared errors of all critics and average over rows", () => {
    const q_tm1 = [G.constant([1, 2]), G.constant([3, 5])] as const
    close(criticLoss({ q_tm1, target: G.constant([2, 2]) }), [(1 + 1 + 0 + 9) / 2])
    close(criticLoss({ q_tm1: [q_tm1[1]], target: G.constant([2, 2]) }), [(1 + 9) / 2])
  })

  it("of SAC's policy are E[α log π − min Q]", () => {
    const q = [G.constant([1, 4]), G.constant([3, 2])] as const
    const loss = softPolicyLoss({ q, logProbability: G.constant([-1, 2]), alpha: G.constant([0.5]) })
    close(loss, [(-0.5 - 1 + 1 - 2) / 2])
  })

  it("of SAC's temperature have the gradient of −log α · E[log π + H̄]", () => {
    const logProbability = G.constant([1, 4])
    const logAlpha = G.constant([0.3])
    const loss = G.sum(G.mul(G.neg(logAlpha), G.mean(G.add(logProbability, -0.5))))
    const gradient = temperatureGradient({ logProbability, targetEntropy: -0.5 })
    assert.deepStrictEqual(gradient.shape, [1])
    close(gradient, [-2])
    assert.deepStrictEqual(evaluated(gradient), gradientOf(loss, logAlpha))
  })

  it("of TD3's policy are the negative mean value", () => {
    close(deterministicPolicyLoss(G.constant([1, 3])), [-2])
  })

  it("reject shapes that would broadcast", () => {
    const column = G.constant([1, 2], [2, 1])
    assert.throws(
      () => softTarget({ ...transition, logProbability_t: column, alpha: 1 }),
      GraphError,
      /^softTarget: logProbability_t: expected shape \[2\]/,
    )
  })
})
