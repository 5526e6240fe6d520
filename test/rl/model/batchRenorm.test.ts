import { assert, describe, it } from "@effect/vitest"
import { gradients } from "../../../src/tensor/graph/gradients.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import { layout } from "../../../src/tensor/graph/Parameters.ts"
import type { Tensor } from "../../../src/tensor/graph/Tensor.ts"
import { batchRenorm, normalisedMlp, withStatistics } from "../../../src/rl/model/batchRenorm.ts"
import { stream } from "../../../src/base/rng/Rng.ts"
import { evaluated } from "../losses/evaluated.ts"

const close = (found: ReadonlyArray<number>, expected: ReadonlyArray<number>) => {
  assert.strictEqual(found.length, expected.length)
  for (const [at, value] of expected.entries()) assert.closeTo(found[at], value, 2e-4 * Math.max(1, Math.abs(value)))
}

describe("batch renormalisation", () => {
  // The numbers are those of sb3-contrib's BatchRenorm1d with one batch of warm-up: outputs, the gradients of Σ k y² by the inputs
  // and by the scale, and the running statistics, for three batches one after another.
  const batches = [
    {
      x: [1, -2, 3, 0, -1, 4],
      y: [0.1, 0.63641, 1.59981, 0.3091, -1.39981, -0.34552],
      byX: [1.19966, 0.15129, -0.59762, -0.22703, -0.60204, 0.07574],
      byScale: [23.59406, -7.28511],
      mean: [0.01, 0.00667],
      variance: [1.03, 1.08333],
    },
    {
      x: [0.5, 20, 2, -10, 4, 1],
      y: [-1.32351, -0.3381, -0.04235, 0.65025, 1.66586, 0.28785],
      byX: [1.89794, 0.00516, -3.32624, 0.00891, 1.4283, -0.01406],
      byScale: [19.92609, -6.7468],
      mean: [0.03157, 0.04327],
      variance: [1.05053, 3.37583],
    },
    {
      x: [10, 3, 30, 2, -20, 7],
      y: [8.19598, -0.60436, 11.77219, -0.33229, 2.83166, -1.69265],
      byX: [-4.3896, -0.61168, 2.63405, 0.48687, 1.75555, 0.12481],
      byScale: [689.66974, -83.60505],
      mean: [0.09792, 0.08283],
      variance: [7.37336, 3.41208],
    },
  ]

  it("has sb3-contrib's values, gradients and statistics, in the warm-up and after it", () => {
    const norm = batchRenorm("norm", 2, 1)
    let [mean, variance] = [
      [0, 0],
      [1, 1],
    ]
    for (const [index, batch] of batches.entries()) {
      const weights = {
        "norm.scale": G.constant([1.5, -0.5]),
        "norm.bias": G.constant([0.1, 0.2]),
        "norm.mean": G.constant(mean),
        "norm.variance": G.constant(variance),
        "norm.batches": G.constant([index]),
      }
      const x = G.constant(batch.x, [3, 2])
      const { value, statistics } = norm.learn(weights, x)
      close(evaluated(value), batch.y)
      const loss = G.sum(G.mul(G.square(value), G.constant([1, 2, 3, 4, 5, 6], [3, 2])))
      const [byX, byScale, byMean] = gradients(loss, [x, weights["norm.scale"], weights["norm.mean"]])
      close(evaluated(byX), batch.byX)
      close(evaluated(byScale), batch.byScale)
      assert.deepEqual(evaluated(byMean), [0, 0])
      mean = [...evaluated(statistics["norm.mean"])]
      variance = [...evaluated(statistics["norm.variance"])]
      close(mean, batch.mean)
      close(variance, batch.variance)
      assert.deepEqual(evaluated(statistics["norm.batches"]), [index + 1])
    }
    const weights = {
      "norm.scale": G.constant([1.5, -0.5]),
      "norm.bias": G.constant([0.1, 0.2]),
      "norm.mean": G.constant(mean),
      "norm.variance": G.constant(variance),
    }
    close(
      evaluated(norm.apply(weights, G.constant(batches[0].x, [3, 2]))),
      [0.59828, 0.7637, 1.70302, 0.22242, -0.50646, -0.86015],
    )
  })

  it("has finite gradients for a column of equal numbers", () => {
    const norm = batchRenorm("norm", 1, 0)
    const weights = Object.fromEntries(
      Object.keys(norm.parameters).map((name): [string, Tensor] => [name, G.constant([1])]),
    )
    const x = G.constant([2, 2, 2], [3, 1])
    const [slope] = gradients(G.sum(norm.learn(weights, x).value), [x])
    for (const number of evaluated(slope)) assert.isTrue(Number.isFinite(number))
  })

  it("changes the statistics of all layers of a network, and no other parameter", () => {
    const net = normalisedMlp("net", 2, { hidden: [3, 4], activation: "relu", warmUp: 10 })
    const parameters = layout(net.parameters)
    const theta = G.constant(parameters.initialise(stream(1, "weights")))
    const { statistics } = net.learn(parameters.tensorsOf(theta), G.constant([1, 2, -3, 4, 0.5, 0.2], [3, 2]))
    const before = parameters.toNamed(Float32Array.from(evaluated(theta)))
    const after = parameters.toNamed(Float32Array.from(evaluated(withStatistics(parameters, theta, statistics))))
    for (const [name, { data }] of Object.entries(after)) {
      const isStatistic = /\.(mean|variance|batches)$/.test(name)
      if (isStatistic) assert.notDeepEqual(data, before[name].data, name)
      else assert.deepEqual(data, before[name].data, name)
    }
  })
})
