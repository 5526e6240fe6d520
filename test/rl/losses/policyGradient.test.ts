import { assert, describe, it } from "@effect/vitest"
import { GraphError } from "../../../src/tensor/graph/GraphError.ts"
import { categorical } from "../../../src/tensor/graph/distributions.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import * as Losses from "../../../src/rl/losses/policyGradient.ts"
import { evaluated, gradientOf } from "./evaluated.ts"

const near = (found: ReadonlyArray<number>, expected: ReadonlyArray<number>): void => {
  assert.strictEqual(found.length, expected.length)
  for (const [index, value] of expected.entries()) assert.closeTo(found[index], value, 1e-6)
}

/** Ratios of ½, 1, and 2 with ε = 0.2, once with a positive and once with a negative advantage. */
const ratio_t = G.constant([0.5, 1, 2, 0.5, 1, 2])
const advantage_t = G.constant([1, 1, 1, -1, -1, -1])

describe("losses of policies", () => {
  it("policyGradient: −E[A log π], whose gradient is −A / n", () => {
    const logProbability_t = G.constant([-1, -2, -3, -4])
    const loss = Losses.policyGradient({ logProbability_t, advantage_t: G.constant([1, -1, 2, 0]) })
    near(evaluated(loss), [(1 - 2 + 6) / 4])
    near(gradientOf(loss, logProbability_t), [-0.25, 0.25, -0.5, 0])
  })

  it("policyGradient: no gradient flows through the advantage", () => {
    const advantage_t = G.constant([1, -1])
    const loss = Losses.policyGradient({ logProbability_t: G.constant([-1, -2]), advantage_t })
    near(gradientOf(loss, advantage_t), [0, 0])
  })

  it("importanceRatio: exp(log π − log π_old)", () => {
    const ratios = Losses.importanceRatio({
      logProbability_t: G.constant([Math.log(0.5), -1]),
      logProbabilityOld_t: G.constant([Math.log(0.25), -1]),
    })
    near(evaluated(ratios.ratio_t), [2, 1])
    near(evaluated(ratios.logRatio_t), [Math.LN2, 0])
  })

  it("clippedSurrogate: the smaller of both products, and no gradient where the clip binds", () => {
    const loss = Losses.clippedSurrogate({ ratio_t, advantage_t, epsilon: 0.2 })
    // min: 0.5, 1, 1.2 for A = 1; −0.8, −1, −2 for A = −1.
    near(evaluated(loss), [-(0.5 + 1 + 1.2 - 0.8 - 1 - 2) / 6])
    const [below, , above, belowNegative, , aboveNegative] = gradientOf(loss, ratio_t)
    near([below, above, belowNegative, aboveNegative], [-1 / 6, 0, 0, 1 / 6])
  })

  it("clipFraction: the share of ratios outside of 1 ± ε", () => {
    near(evaluated(Losses.clipFraction({ ratio_t, epsilon: 0.2 })), [4 / 6])
  })

  it("approximateKl: E[(r − 1) − log r], 0 for equal policies", () => {
    const kl = (ratio: ReadonlyArray<number>) =>
      Losses.approximateKl({ ratio_t: G.constant(ratio), logRatio_t: G.constant(ratio.map(Math.log)) })
    near(evaluated(kl([1, 1])), [0])
    near(evaluated(kl([0.5, 2])), [(-0.5 + Math.LN2 + 1 - Math.LN2) / 2])
  })

  it("behaviourCloning: the mean negative log likelihood", () => {
    near(evaluated(Losses.behaviourCloning(G.constant([-1, -3]))), [2])
  })

  it("accuracy: the share of equal actions", () => {
    const chosen = G.constant(Int32Array.of(1, 0, 2, 2))
    near(evaluated(Losses.accuracy(chosen, G.constant(Int32Array.of(1, 1, 2, 0)))), [0.5])
  })
})

describe("losses of critics", () => {
  it("valueLoss: E[(V − G)²]", () => {
    near(evaluated(Losses.valueLoss({ v_t: G.constant([1, 2]), target_t: G.constant([0, 4]) })), [2.5])
  })

  it("clippedValueLoss: the larger of the error and the error of a value that moved by at most ε", () => {
    const loss = (v: number, old: number, target: number) =>
      evaluated(
        Losses.clippedValueLoss({
          v_t: G.constant([v]),
          vOld_t: G.constant([old]),
          target_t: G.constant([target]),
          epsilon: 0.5,
        }),
      )
    near(loss(2, 0, 3), [6.25]) // it moved by 2 towards the target, of which only 0.5 counts
    near(loss(0.25, 0, 3), [2.75 ** 2]) // it moved by less than the bound
    near(loss(-2, 0, 3), [25]) // it moved away from the target: all of its error counts
  })
})

describe("standardised", () => {
  it("has mean 0 and an unbiased standard deviation of 1", () => {
    const [a, b, c] = evaluated(Losses.standardised(G.constant([1, 2, 6])))
    const deviation = Math.sqrt((4 + 1 + 9) / 2)
    near([a, b, c], [-2 / deviation, -1 / deviation, 3 / deviation])
  })

  it("leaves a single row as it is", () => near(evaluated(Losses.standardised(G.constant([7]))), [7]))
})

describe("a loss whose tensors do not fit", () => {
  it("names itself and the tensor, instead of broadcasting", () => {
    const two = G.constant([1, 2])
    const column = G.constant([1, 2], [2, 1])
    const cases = [
      () => Losses.policyGradient({ logProbability_t: two, advantage_t: column }),
      () => Losses.clippedSurrogate({ ratio_t: two, advantage_t: column, epsilon: 0.2 }),
      () => Losses.importanceRatio({ logProbability_t: two, logProbabilityOld_t: column }),
      () => Losses.valueLoss({ v_t: two, target_t: column }),
      () => Losses.clippedValueLoss({ v_t: two, vOld_t: column, target_t: two, epsilon: 1 }),
    ]
    for (const wrong of cases) assert.throws(wrong, GraphError, /^\w+: \w+: expected shape \[2\]/)
  })
})

/**
 * Six completions of different lengths with the advantages of two groups: the losses and gradients of token-level
 * REINFORCE and of GRPO without a KL term, which PyTorch computed in float64.
 */
describe("against PyTorch", () => {
  const now = [
    [-2.4156451, -0.3397539, -1.6672562, -0.8602316, -2.2394789, -3.0009265, -0.2084933, -2.1148551, -0.1048127],
    [-0.6348348, -1.4939661, -1.3831825, -2.6797361],
    [-0.2048693, -2.8821928, -0.2154252, -2.9364329, -1.0450723, -0.658026, -0.5294206],
  ]
  const before = [
    [-2.4506569, 0.1198961, -1.3734656, -0.9763196, -2.2735688, -3.1440723, -0.4958431, -1.9590063, -0.0500825],
    [-0.8089063, -1.4154146, -1.5372566, -2.7738166],
    [-0.027347, -2.4931878, 0.0168956, -2.7281782, -1.2240607, -0.4343482, -0.5675383],
  ]

  it("policyGradient over all tokens is REINFORCE", () => {
    const advantages = [0.5, -0.5, 0]
    const logProbability_t = G.constant(now.flat())
    const advantage_t = G.constant(now.flatMap((tokens, at) => tokens.map(() => advantages[at])))
    const loss = Losses.policyGradient({ logProbability_t, advantage_t })
    // The second group has no advantages, but its 16 tokens count in the reference's mean.
    const share = 20 / 36
    near(evaluated(G.mul(loss, share)), [0.0938852])
    near(
      gradientOf(G.mul(loss, share), logProbability_t),
      [
        -0.0138889, -0.0138889, -0.0138889, -0.0138889, -0.0138889, -0.0138889, -0.0138889, -0.0138889, -0.0138889,
        0.0138889, 0.0138889, 0.0138889, 0.0138889, -0.0, -0.0, -0.0, -0.0, -0.0, -0.0, -0.0,
      ],
    )
  })

  it("clippedSurrogate over each completion, averaged, is GRPO", () => {
    const advantages = [0.9998, -0.9998, 0]
    const expected = [
      [-0.0191745, -0.0116922, -0.0138015, -0.0207939, -0.0191569, -0.0213642, 0.0, -0.0158429, -0.0175287],
      [0.0495793, 0.0385112, 0.0485977, 0.0457679],
    ]
    const losses = now.map((tokens, at) => {
      const logProbability_t = G.constant(tokens)
      const logProbabilityOld_t = G.constant(before[at])
      const { ratio_t } = Losses.importanceRatio({ logProbability_t, logProbabilityOld_t })
      const advantage_t = G.constant(tokens.map(() => advantages[at]))
      const loss = G.div(Losses.clippedSurrogate({ ratio_t, advantage_t, epsilon: 0.2 }), 6)
      if (at < 2) near(gradientOf(loss, logProbability_t), expected[at])
      return evaluated(loss)[0]
    })
    near([losses.reduce((sum, loss) => sum + loss, 0)], [0.0208834])
  })
})

describe("crossEntropy", () => {
  it("is −E[Σ π log p], and does not read forbidden actions", () => {
    const logits = [0.2, -0.3, 1, 0, -0.5, 0.5]
    const visits = [0.5, 0.25, 0.25, 0, 0.9, 0.1]
    const plain = [0, 1].map((row) => {
      const own = logits.slice(3 * row, 3 * row + 3)
      const total = Math.log(own.reduce((sum, logit) => sum + Math.exp(logit), 0))
      return own.reduce((sum, logit, at) => sum - visits[3 * row + at] * (logit - total), 0)
    })
    const target = G.constant(visits, [2, 3])
    const policy = categorical(G.constant(logits, [2, 3]))
    near(evaluated(Losses.crossEntropy({ logProbabilities: policy.logProbabilities, target })), [
      (plain[0] + plain[1]) / 2,
    ])
    const masked = categorical(G.constant([3, 1, 1], [1, 3]), G.constant([0, 1, 1], [1, 3]))
    const half = G.constant([0, 0.5, 0.5], [1, 3])
    near(evaluated(Losses.crossEntropy({ logProbabilities: masked.logProbabilities, target: half })), [Math.LN2])
  })
})
