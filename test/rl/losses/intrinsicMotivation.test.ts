import { assert, describe, it } from "@effect/vitest"
import * as G from "../../../src/tensor/graph/ops.ts"
import { distillationError, forwardError, inverseLoss, maskedMean } from "../../../src/rl/losses/intrinsicMotivation.ts"
import { evaluated, gradientOf } from "./evaluated.ts"

const [a, b] = [G.constant([1, 2, 3, 4], [2, 2]), G.constant([1, 0, 0, 4], [2, 2])]

describe("errors of predictions", () => {
  it("distillationError: the mean squared error of each row; the fixed network has no gradient", () => {
    const errors = distillationError({ predicted: a, fixed: b })
    assert.deepStrictEqual(evaluated(errors), [2, 4.5])
    assert.deepStrictEqual(gradientOf(G.sum(errors), b), [0, 0, 0, 0])
    assert.deepStrictEqual(gradientOf(G.sum(errors), a), [0, 2, 3, 0])
  })

  it("forwardError: half the mean squared error of each row; the next features have no gradient", () => {
    const errors = forwardError({ predicted_tp1: a, features_tp1: b })
    assert.deepStrictEqual(evaluated(errors), [1, 2.25])
    assert.deepStrictEqual(gradientOf(G.sum(errors), b), [0, 0, 0, 0])
  })

  it("inverseLoss: cross-entropy of choices, the squared error of real numbers", () => {
    const logits = G.constant([Math.log(0.25), Math.log(0.75), 0, 0], [2, 2])
    const [loss] = evaluated(inverseLoss(logits, G.constant(Int32Array.of(1, 0))))
    assert.closeTo(loss, -(Math.log(0.75) + Math.log(0.5)) / 2, 1e-6)
    assert.deepStrictEqual(evaluated(inverseLoss(a, b)), [(0 + 4 + 9 + 0) / 4])
  })

  it("maskedMean: the mean of the marked rows, 0 without any", () => {
    const rows = G.constant([1, 2, 6])
    assert.deepStrictEqual(evaluated(maskedMean(rows, G.constant([1, 0, 1]))), [3.5])
    assert.deepStrictEqual(evaluated(maskedMean(rows, G.constant([0, 0, 0]))), [0])
  })
})
