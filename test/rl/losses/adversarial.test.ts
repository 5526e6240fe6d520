import { assert, describe, it } from "vitest"
import { GraphError } from "../../../src/tensor/graph/GraphError.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import { discriminatorLoss, gradientPenalty, imitationReward } from "../../../src/rl/losses/adversarial.ts"
import { evaluated, gradientOf } from "./evaluated.ts"

const expert = [2, -1, 0.5]
const policy = [-3, 0.25]
const probability = (logit: number): number => 1 / (1 + Math.exp(-logit))
const meanOf = (numbers: ReadonlyArray<number>): number => numbers.reduce((sum, one) => sum + one, 0) / numbers.length

describe("losses of adversarial imitation", () => {
  it("teach a discriminator by the cross entropy of both kinds of steps", () => {
    const loss = discriminatorLoss({ expert: G.constant(expert), policy: G.constant(policy) })
    const expected =
      meanOf(expert.map((logit) => -Math.log(probability(logit)))) +
      meanOf(policy.map((logit) => -Math.log(1 - probability(logit))))
    assert.closeTo(evaluated(loss)[0], expected, 1e-6)
  })

  it("have the gradient D − 1 for steps of the expert, and D for those of the policy", () => {
    const [shown, own] = [G.constant(expert), G.constant(policy)]
    const loss = discriminatorLoss({ expert: shown, policy: own })
    const slopes = [...gradientOf(loss, shown), ...gradientOf(loss, own)]
    const expected = [
      ...expert.map((logit) => (probability(logit) - 1) / expert.length),
      ...policy.map((logit) => probability(logit) / policy.length),
    ]
    for (const [at, slope] of slopes.entries()) assert.closeTo(slope, expected[at], 1e-6)
  })

  it("reward by the probability D in three forms, also where D is 0 or 1 in float32", () => {
    const logits = [...expert, ...policy]
    const rewards = (form: "positive" | "negative" | "logit", of = logits) =>
      evaluated(imitationReward(G.constant(of), form))
    for (const [at, logit] of logits.entries()) {
      const d = probability(logit)
      assert.closeTo(rewards("positive")[at], -Math.log(1 - d), 1e-5)
      assert.closeTo(rewards("negative")[at], Math.log(d), 1e-5)
      assert.closeTo(rewards("logit")[at], Math.log(d) - Math.log(1 - d), 1e-5)
    }
    assert.deepStrictEqual(rewards("positive", [200, -200]), [200, 0])
    assert.closeTo(rewards("negative", [-200])[0], -200, 1e-3)
  })

  it("punish steep logits by the mean squared slope, whose own gradient flows", () => {
    const [first, second] = [G.constant([1, 2, -1, 0.5], [2, 2]), G.constant([3, -2], [2, 1])]
    const weight = G.constant([0.5])
    // x = w · (a² + b²) / 2 + 2 c, so its slopes are w a, w b and 2.
    const logits = G.add(G.mul(G.mul(G.sum(G.square(first), 1), 0.5), weight), G.mul(G.reshape(second, [2]), 2))
    const penalty = gradientPenalty(logits, [first, second])
    const squares = (1 + 4 + 1 + 0.25) / 2
    assert.closeTo(evaluated(penalty)[0], 0.25 * squares + 4, 1e-6)
    assert.closeTo(gradientOf(penalty, weight)[0], 2 * 0.5 * squares, 1e-6)
  })

  it("reject logits of another shape", () => {
    const [vector, column] = [G.constant([1, 2]), G.constant([1, 2], [2, 1])]
    assert.throws(() => discriminatorLoss({ expert: column, policy: vector }), GraphError, /^discriminatorLoss: expert/)
    assert.throws(() => discriminatorLoss({ expert: vector, policy: column }), GraphError, /^discriminatorLoss: policy/)
    assert.throws(() => gradientPenalty(vector, [vector]), GraphError, /^gradientPenalty: expected/)
  })
})
