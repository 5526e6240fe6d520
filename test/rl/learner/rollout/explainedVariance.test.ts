import { assert, describe, it } from "vitest"
import { explainedVariance } from "../../../../src/rl/learner/rollout/RolloutLearner.ts"

describe("explained variance", () => {
  it("is 1 for a critic without errors, 0 for one that predicts the mean, negative for a worse one", () => {
    const targets = Float32Array.of(1, 2, 3, 6)
    assert.closeTo(explainedVariance(targets, targets), 1, 1e-12)
    assert.closeTo(explainedVariance(new Float32Array(4).fill(3), targets), 0, 1e-12)
    assert.isBelow(explainedVariance(Float32Array.of(-1, -2, -3, -6), targets), 0)
    assert.strictEqual(explainedVariance(new Float32Array(2), new Float32Array(2)), 0)
  })
})
