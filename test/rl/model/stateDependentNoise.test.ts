import { assert, describe, it } from "@effect/vitest"
import { type Distribution, squashed, stateDependentGaussian } from "../../../src/tensor/graph/distributions.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import { stateDependentNoise } from "../../../src/rl/model/stateDependentNoise.ts"
import { evaluated } from "../losses/evaluated.ts"

const features = G.constant([0.5, -1, 2, 0.1, 0.3, -0.7], [2, 3])
const mean = G.constant([0.2, -0.4, 0.6, 0.1], [2, 2])
const actions = G.constant([0.3, -0.9, -0.2, 0.5], [2, 2])
const logs = [-1, 0.5, 0.2, -0.3, -2, 1]

const close = (found: ReadonlyArray<number>, expected: ReadonlyArray<number>, within: number) => {
  assert.strictEqual(found.length, expected.length)
  for (const [at, value] of expected.entries()) assert.closeTo(found[at], value, within)
}

const gaussianOf = (fullStd: boolean, expln: boolean) => {
  const { deviation } = stateDependentNoise("logStd", 3, 2, { fullStd, expln, logStdInit: 0 })
  const weight = fullStd ? G.constant(logs, [3, 2]) : G.constant([-1, 0.2, -2], [3, 1])
  return stateDependentGaussian(mean, { features, deviation: deviation({ logStd: weight }) })
}

describe("state-dependent Gaussians", () => {
  // The numbers are those of Stable-Baselines3's StateDependentNoiseDistribution at the same features, means and parameters.
  for (const [fullStd, expln, logProbabilities, entropies, squashedProbabilities] of [
    [true, false, [-3.793237, -3.759495], [4.786049, 2.524752], [-2.053437, -3.4518]],
    [false, false, [-2.388511, -2.670428], [3.307207, 0.904046], [-0.915431, -2.501877]],
    [true, true, [-3.318832, -3.439599], [4.305518, 2.034777], [-1.600419, -3.141389]],
    [false, true, [-2.333039, -2.781975], [3.246659, 0.843796], [-0.877558, -2.623357]],
  ] as const) {
    it(`have Stable-Baselines3's densities, with ${fullStd ? "full" : "one"} deviation${expln ? " by expln" : ""}`, () => {
      const policy = gaussianOf(fullStd, expln)
      close(evaluated(policy.logProbability(actions)), logProbabilities, 1e-5)
      close(evaluated(policy.entropy()), entropies, 1e-5)
      close(evaluated(squashed(policy).logProbability(actions)), squashedProbabilities, 1e-4)
    })
  }

  /** The noise of a sample: its distance from the mean. */
  const noiseOf = (policy: Distribution, uniform: ReadonlyArray<number>, rows: number) =>
    evaluated(G.sub(policy.sample(G.constant(uniform, [rows, policy.noiseSize])), mean))

  it("draw one matrix for each row, or one for all rows, and map the features by it", () => {
    const policy = gaussianOf(true, false)
    assert.strictEqual(policy.noiseSize, 12)
    const uniform = Array.from({ length: 24 }, (_, at) => ((at * 7 + 3) % 24) / 24)
    const matrixOf = (numbers: ReadonlyArray<number>) =>
      logs.map((log, at) => {
        const normal = Math.sqrt(-2 * Math.log(1 - numbers[at])) * Math.cos(2 * Math.PI * numbers[6 + at])
        return Math.exp(log) * normal
      })
    const rowsOf = [
      [0.5, -1, 2],
      [0.1, 0.3, -0.7],
    ]
    const mapped = (row: number, matrix: ReadonlyArray<number>) =>
      [0, 1].map((action) => rowsOf[row].reduce((sum, feature, at) => sum + feature * matrix[at * 2 + action], 0))
    const [first, second] = [matrixOf(uniform.slice(0, 12)), matrixOf(uniform.slice(12))]
    close(noiseOf(policy, uniform, 2), [...mapped(0, first), ...mapped(1, second)], 1e-5)
    close(noiseOf(policy, uniform.slice(0, 12), 1), [...mapped(0, first), ...mapped(1, first)], 1e-5)
  })

  it("begin with the deviation that the settings name", () => {
    const { parameters } = stateDependentNoise("logStd", 3, 2, { fullStd: false, expln: false, logStdInit: -2 })
    assert.deepEqual(parameters.logStd.shape, [3, 1])
  })
})
