import { assert, describe, it } from "@effect/vitest"
import { GraphError } from "../../../src/tensor/graph/GraphError.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import * as Losses from "../../../src/rl/losses/Losses.ts"
import { evaluated, gradientOf } from "./evaluated.ts"

const near = (found: ReadonlyArray<number>, expected: ReadonlyArray<number>): void => {
  assert.strictEqual(found.length, expected.length)
  for (const [index, value] of expected.entries()) assert.closeTo(found[index], value, 1e-6)
}

const logProbability_t = G.constant([-1, -2])
const advantage_t = G.constant([1, -1])

describe("losses of tokens", () => {
  it("weightedSum: Σ w L, whose gradient is the weight", () => {
    const loss_t = G.constant([3, 4])
    const loss = Losses.weightedSum({ loss_t, weight_t: G.constant([0.5, 0.25]) })
    near(evaluated(loss), [2.5])
    near(gradientOf(loss, loss_t), [0.5, 0.25])
  })

  it("tokenNegativeLogLikelihood: −log π", () => {
    near(evaluated(Losses.tokenNegativeLogLikelihood({ logProbability_t })), [1, 2])
  })

  it("tokenPolicyGradient: −A log π, without a gradient of the advantage", () => {
    const loss = Losses.tokenPolicyGradient({ logProbability_t, advantage_t })
    near(evaluated(loss), [1, -2])
    near(gradientOf(G.sum(loss), logProbability_t), [-1, 1])
    near(gradientOf(G.sum(loss), advantage_t), [0, 0])
  })

  it("tokenClippedSurrogate: clips good tokens above and bad tokens below", () => {
    const ratios = [0.5, 1, 2, 0.5, 1, 2]
    const logRatio_t = G.constant(ratios.map(Math.log))
    const advantage_t = G.constant([1, 1, 1, -1, -1, -1])
    const loss = Losses.tokenClippedSurrogate({ logRatio_t, advantage_t, clipLow: 0.2, clipHigh: 0.28 })
    near(evaluated(loss), [-0.5, -1, -1.28, 0.8, 1, 2])
    near(gradientOf(G.sum(loss), logRatio_t), [-0.5, -1, 0, 0, 1, 2])
  })

  it("sequenceLogRatio: the mean of each sequence, and 0 outside of all", () => {
    const logRatio_t = G.constant([1, 5, 3, 7], [2, 2])
    const sequence_t = G.constant(Int32Array.of(0, 1, 0, -1), [2, 2])
    const ratio = Losses.sequenceLogRatio({ logRatio_t, sequence_t, sequences: 3 })
    near(evaluated(ratio), [2, 5, 2, 0])
    near(gradientOf(G.sum(ratio), logRatio_t), [1, 1, 1, 0])
  })

  it("tokenCispo: clipped ratios are weights, so that clipped tokens have a gradient too", () => {
    const logRatio_t = G.sub(logProbability_t, G.constant([-1 - Math.log(2), -2 + Math.log(4)]))
    const loss = (clipLow: number | null) =>
      Losses.tokenCispo({ logProbability_t, logRatio_t, advantage_t, clipLow, clipHigh: 0.28 })
    near(evaluated(loss(null)), [1.28, -0.5])
    near(gradientOf(G.sum(loss(null)), logProbability_t), [-1.28, 0.25])
    near(gradientOf(G.sum(loss(0.2)), logProbability_t), [-1.28, 0.8])
  })

  it("tokenSapo: 2 A / τ and a slope of −A at a ratio of 1; finite and flat far away from it", () => {
    const logRatio_t = G.constant([0, 0, 500, -500])
    const advantages = G.constant([1, -1, 1, -1])
    const loss = Losses.tokenSapo({
      logRatio_t,
      advantage_t: advantages,
      temperaturePositive: 1,
      temperatureNegative: 2,
    })
    near(evaluated(loss), [-2, 1, -4, 2 / (1 + Math.exp(2))])
    near(gradientOf(G.sum(loss), logRatio_t), [-1, 1, 0, 0])
  })

  it("tokenGmpo: the geometric mean of ratios that are clipped by the sign of the advantage", () => {
    const logRatio_t = G.constant([0.1, 0.9, -0.9, 3, 7])
    const loss = Losses.tokenGmpo({
      logRatio_t,
      advantage_t: G.constant([1, 1, -1, -1, 5]),
      sequence_t: G.constant(Int32Array.of(0, 0, 1, 1, -1)),
      sequences: 2,
      clipLow: 0.4,
      clipHigh: 0.5,
    })
    const [first, second] = [Math.exp(0.3), Math.exp(1.3)]
    near(evaluated(loss), [-first, -first, second, second, -5])
    near(gradientOf(G.sum(loss), logRatio_t), [-first, 0, 0, second, 0])
  })

  it("tokenKl: k1, k2 and k3", () => {
    const referenceLogProbability_t = G.constant([-1.5, -2])
    const kl = (estimator: Losses.KlEstimator) =>
      Losses.tokenKl({ logProbability_t, referenceLogProbability_t, estimator })
    near(evaluated(kl("k1")), [0.5, 0])
    near(evaluated(kl("k2")), [0.125, 0])
    near(evaluated(kl("k3")), [Math.exp(-0.5) - 0.5, 0])
    near(gradientOf(G.sum(kl("k1")), logProbability_t), [1, 1])
    near(gradientOf(G.sum(kl("k2")), logProbability_t), [0.5, 0])
    near(gradientOf(G.sum(kl("k3")), logProbability_t), [1 - Math.exp(-0.5), 0])
  })

  it("truncatedImportance: min(π / π_inference, cap), without a gradient", () => {
    const inferenceLogProbability_t = G.constant([-1 + Math.log(2), -5])
    const weight = Losses.truncatedImportance({
      oldLogProbability_t: logProbability_t,
      inferenceLogProbability_t,
      cap: 2,
    })
    near(evaluated(weight), [0.5, 2])
    near(gradientOf(G.sum(weight), logProbability_t), [0, 0])
  })

  it("tokenEntropy: of a fair and of a sure choice", () => {
    near(evaluated(Losses.tokenEntropy(G.constant([0, 0, 100, 0], [1, 2, 2]))), [Math.LN2, 0])
  })

  it("name the tensor that does not fit, instead of broadcasting", () => {
    const column = G.constant([1, 2], [2, 1])
    const sequence_t = G.constant(Int32Array.of(0, 0), [2, 1])
    const wrong = [
      () => Losses.weightedSum({ loss_t: advantage_t, weight_t: column }),
      () => Losses.tokenPolicyGradient({ logProbability_t, advantage_t: column }),
      () => Losses.tokenClippedSurrogate({ logRatio_t: advantage_t, advantage_t: column, clipLow: 0, clipHigh: 0 }),
      () => Losses.sequenceLogRatio({ logRatio_t: advantage_t, sequence_t, sequences: 1 }),
      () =>
        Losses.tokenSapo({
          logRatio_t: advantage_t,
          advantage_t: column,
          temperaturePositive: 1,
          temperatureNegative: 1,
        }),
      () => Losses.tokenKl({ logProbability_t, referenceLogProbability_t: column, estimator: "k1" }),
    ]
    for (const make of wrong) assert.throws(make, GraphError, /^\w+: \w+: expected shape \[2\]/)
  })
})
