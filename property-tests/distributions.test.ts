import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { categorical, diagonalGaussian, divergence, squashedGaussian } from "../src/tensor/graph/distributions.ts"
import { evaluate } from "../src/tensor/graph/evaluate.ts"
import * as G from "../src/tensor/graph/ops.ts"
import type { Tensor } from "../src/tensor/graph/Tensor.ts"
import { stream } from "../src/base/rng/Rng.ts"
import { tries } from "../test/house/tries.ts"

const row = (values: ReadonlyArray<number>): Tensor => G.constant(values, [1, values.length])
const column = (values: ArrayLike<number>): Tensor => G.constant(Array.from(values), [values.length, 1])
const numberOf = (tensor: Tensor): number => evaluate([tensor])[0][0]
const mean = (values: ArrayLike<number>): number => Array.from(values).reduce((sum, x) => sum + x, 0) / values.length

const logits = fc.array(fc.double({ min: -4, max: 4, noNaN: true }), { minLength: 1, maxLength: 8 })
const logitPairs = logits.chain((p) =>
  fc.tuple(
    fc.constant(p),
    fc.array(fc.double({ min: -4, max: 4, noNaN: true }), { minLength: p.length, maxLength: p.length }),
  ),
)

describe("a categorical distribution", () => {
  it("has probabilities that add up to one", () => {
    fc.assert(
      fc.property(logits, (values) => {
        const n = values.length
        const policy = categorical(G.broadcastTo(row(values), [n, n]))
        const [each] = evaluate([G.exp(policy.logProbability(G.constant(Int32Array.from({ length: n }, (_, i) => i))))])
        assert.closeTo(mean(each) * n, 1, 1e-9)
      }),
    )
  })

  it("samples each action with its probability from evenly spread uniform numbers", () => {
    fc.assert(
      fc.property(logits, (values) => {
        const draws = 1000
        const uniforms = Float64Array.from({ length: draws }, (_, i) => (i + 0.5) / draws)
        const policy = categorical(G.broadcastTo(row(values), [draws, values.length]))
        const [samples, probabilities] = evaluate([policy.sample(column(uniforms)), G.softmax(row(values))])
        probabilities.forEach((probability, action) => {
          const taken = samples.filter((sample) => sample === action).length
          assert.isAtMost(Math.abs(taken - probability * draws), 1.01)
        })
      }),
    )
  })

  it("samples no lower action for a higher uniform number", () => {
    fc.assert(
      fc.property(
        logits,
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        (values, u, v) => {
          const policy = categorical(G.broadcastTo(row(values), [2, values.length]))
          const [[low, high]] = evaluate([policy.sample(column([Math.min(u, v), Math.max(u, v)]))])
          assert.isAtMost(low, high)
        },
      ),
    )
  })

  it("does not change when a constant is added to its logits", () => {
    fc.assert(
      fc.property(logits, fc.double({ min: -50, max: 50, noNaN: true }), (values, shift) => {
        const [one, other] = [categorical(row(values)), categorical(G.add(row(values), shift))]
        assert.closeTo(numberOf(one.entropy()), numberOf(other.entropy()), 1e-9)
        assert.closeTo(numberOf(divergence(one, other)), 0, 1e-9)
      }),
    )
  })

  it("has an entropy between 0 and that of the uniform distribution, equal to −E[log p]", () => {
    fc.assert(
      fc.property(logits, (values) => {
        const policy = categorical(row(values))
        const [[entropy], p, logP] = evaluate([policy.entropy(), G.softmax(row(values)), policy.logProbabilities])
        assert.isAtLeast(entropy, -1e-12)
        assert.isAtMost(entropy, Math.log(values.length) + 1e-9)
        assert.closeTo(entropy, -p.reduce((sum, one, at) => sum + one * logP[at], 0), 1e-9)
      }),
    )
  })

  it("has a KL divergence of at least 0 from any other", () => {
    fc.assert(
      fc.property(logitPairs, ([p, q]) => {
        assert.isAtLeast(numberOf(divergence(categorical(row(p)), categorical(row(q)))), -1e-12)
        assert.closeTo(numberOf(divergence(categorical(row(p)), categorical(row(p)))), 0, 1e-12)
      }),
    )
  })
})

const means = fc.double({ min: -2, max: 2, noNaN: true })
const logDeviations = fc.double({ min: -1.5, max: 1, noNaN: true })

/** Midpoints of many small intervals, and their width. */
const grid = (low: number, high: number, count: number) => {
  const width = (high - low) / count
  return { width, points: Float64Array.from({ length: count }, (_, i) => low + (i + 0.5) * width) }
}

describe("a Gaussian", () => {
  it("has a density whose integral is one, and the entropy −E[log p]", () => {
    fc.assert(
      fc.property(means, logDeviations, (m, s) => {
        const { points, width } = grid(m - 9 * Math.exp(s), m + 9 * Math.exp(s), 2000)
        const policy = diagonalGaussian(G.constant(m, [points.length, 1]), G.constant(s, [1]))
        const [logP, [entropy]] = evaluate([policy.logProbability(column(points)), policy.entropy()])
        assert.closeTo(
          logP.reduce((sum, one) => sum + Math.exp(one) * width, 0),
          1,
          1e-6,
        )
        assert.closeTo(-logP.reduce((sum, one) => sum + one * Math.exp(one) * width, 0), entropy, 1e-5)
      }),
      { numRuns: tries(30) },
    )
  })

  it("has the product of densities over several dimensions", () => {
    const several = fc.array(fc.tuple(means, logDeviations, means), { minLength: 1, maxLength: 5 })
    fc.assert(
      fc.property(several, (actions) => {
        const [m, s, a] = [0, 1, 2].map((part) => actions.map((action) => action[part]))
        const whole = diagonalGaussian(row(m), G.constant(s))
        const parts = actions.map(([m1, s1, a1]) =>
          numberOf(diagonalGaussian(row([m1]), G.constant([s1])).logProbability(row([a1]))),
        )
        assert.closeTo(numberOf(whole.logProbability(row(a))), mean(parts) * parts.length, 1e-9)
      }),
    )
  })

  it("has a KL divergence of at least 0 from any other", () => {
    fc.assert(
      fc.property(means, logDeviations, means, logDeviations, (m, s, n, t) => {
        const [p, q] = [diagonalGaussian(row([m]), G.constant([s])), diagonalGaussian(row([n]), G.constant([t]))]
        assert.isAtLeast(numberOf(divergence(p, q)), -1e-12)
        assert.closeTo(numberOf(divergence(p, p)), 0, 1e-12)
      }),
    )
  })
})

describe("a squashed Gaussian", () => {
  it("has a density on (−1, 1) whose integral is one", () => {
    fc.assert(
      fc.property(means, fc.double({ min: -1.5, max: -0.2, noNaN: true }), (m, s) => {
        // Even steps before the tanh, so that the edges, where the density may be steep, are covered.
        const { points, width } = grid(m - 9 * Math.exp(s), m + 9 * Math.exp(s), 2000)
        const policy = squashedGaussian(G.constant(m, [points.length, 1]), G.constant(s, [1]))
        const [logP] = evaluate([policy.logProbabilityOfRaw(column(points))])
        const total = logP.reduce((sum, one, i) => sum + Math.exp(one) * (1 - Math.tanh(points[i]) ** 2) * width, 0)
        assert.closeTo(total, 1, 1e-5)
      }),
      { numRuns: tries(30) },
    )
  })

  it("computes the same log probability before and after the tanh", () => {
    fc.assert(
      fc.property(means, logDeviations, fc.double({ min: -2, max: 2, noNaN: true }), (m, s, raw) => {
        const policy = squashedGaussian(row([m]), G.constant([s]))
        const x = row([raw])
        assert.closeTo(numberOf(policy.logProbability(G.tanh(x))), numberOf(policy.logProbabilityOfRaw(x)), 1e-5)
      }),
    )
  })
})

describe("many samples", () => {
  const count = 40_000
  const noise = (size: number, path: string): Tensor => {
    const data = new Float32Array(count * size)
    stream(1, path).fillUniform(data)
    return G.constant(data, [count, size])
  }

  it("of a Gaussian agree with its mean, deviation, entropy and KL divergence", () => {
    const [m, s] = [0.7, Math.log(0.4)]
    const p = diagonalGaussian(G.constant(m, [count, 1]), G.constant([s]))
    const q = diagonalGaussian(G.constant(0.5, [count, 1]), G.constant([Math.log(0.6)]))
    const sample = p.sample(noise(p.noiseSize, "gaussian"))
    const [x, logP, logQ, [entropy], [kl]] = evaluate([
      sample,
      p.logProbability(sample),
      q.logProbability(sample),
      p.entropy(),
      divergence(p, q),
    ])
    const error = 5 / Math.sqrt(count)
    assert.closeTo(mean(x), m, error)
    assert.closeTo(Math.sqrt(mean(x.map((one) => (one - m) ** 2))), 0.4, error)
    assert.closeTo(-mean(logP), entropy, error)
    assert.closeTo(mean(logP.map((one, i) => one - logQ[i])), kl, error)
  })

  it("of a Gaussian's dimensions are uncorrelated", () => {
    const p = diagonalGaussian(G.constant(0, [count, 3]), G.constant([0, 0, 0]))
    const [x] = evaluate([p.sample(noise(p.noiseSize, "dimensions"))])
    for (const [a, b] of [
      [0, 1],
      [0, 2],
      [1, 2],
    ]) {
      assert.isBelow(Math.abs(mean(Float64Array.from({ length: count }, (_, i) => x[3 * i + a] * x[3 * i + b]))), 0.025)
    }
  })

  it("of a categorical distribution agree with its probabilities and KL divergence", () => {
    const [p, q] = [
      [0.5, -1, 2, 0],
      [0, 0, 1, -1],
    ].map((values) => categorical(G.broadcastTo(row(values), [count, 4])))
    const sample = p.sample(noise(1, "categorical"))
    const [actions, logP, logQ, [entropy], [kl], probabilities] = evaluate([
      sample,
      p.logProbability(sample),
      q.logProbability(sample),
      p.entropy(),
      divergence(p, q),
      G.exp(p.logProbabilities),
    ])
    const error = 5 / Math.sqrt(count)
    for (let action = 0; action < 4; action++) {
      const share = actions.filter((one) => one === action).length / count
      assert.closeTo(share, probabilities[action], error)
    }
    assert.closeTo(-mean(logP), entropy, error)
    assert.closeTo(mean(logP.map((one, i) => one - logQ[i])), kl, error)
  })
})
