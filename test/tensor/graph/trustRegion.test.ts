import { assert, describe, it } from "@effect/vitest"
import {
  bernoulli,
  categorical,
  diagonalGaussian,
  type Distribution,
  multiCategorical,
} from "../../../src/tensor/graph/distributions.ts"
import { evaluate } from "../../../src/tensor/graph/evaluate.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import type { Tensor } from "../../../src/tensor/graph/Tensor.ts"
import { conjugateGradient, hessianProduct, trustRegionStep } from "../../../src/tensor/graph/trustRegion.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import { compileWith } from "../../../property-tests/support/agreement.ts"
import { stream } from "../../../src/base/rng/Rng.ts"

/** A policy with one hidden layer: 3 observations, 4 tanh units, 3 outputs, and all weights in one vector of 31. */
const rows = 5
const [observed, hidden, outputs] = [3, 4, 3]
const size = hidden * (observed + 1) + outputs * (hidden + 1)
const random = stream(1, "trust region")
const draw = (count: number): ReadonlyArray<number> =>
  Array.from({ length: count }, () => 2 * random.uniformDouble() - 1)
const seen = draw(rows * observed)
const start = draw(size)

const outputsOf = (theta: Tensor): Tensor => {
  let at = 0
  const part = (...shape: ReadonlyArray<number>): Tensor => {
    const count = shape.reduce((product, one) => product * one, 1)
    at += count
    return G.reshape(G.slice(theta, [at - count], [count]), shape)
  }
  const first = G.tanh(G.add(G.matmul(G.constant(seen, [rows, observed]), part(observed, hidden)), part(hidden)))
  return G.add(G.matmul(first, part(hidden, outputs)), part(outputs))
}

/** The same network in plain numbers. */
const plainOutputs = (theta: ReadonlyArray<number>): ReadonlyArray<ReadonlyArray<number>> => {
  const [bias1, weight2, bias2] = [observed * hidden, (observed + 1) * hidden, (observed + 1 + outputs) * hidden]
  return Array.from({ length: rows }, (_, row) => {
    const units = Array.from({ length: hidden }, (_, unit) => {
      let sum = theta[bias1 + unit]
      for (let i = 0; i < observed; i++) sum += seen[row * observed + i] * theta[i * hidden + unit]
      return Math.tanh(sum)
    })
    return Array.from({ length: outputs }, (_, out) =>
      units.reduce((sum, unit, i) => sum + unit * theta[weight2 + i * outputs + out], theta[bias2 + out]),
    )
  })
}

const logSoftmax = (logits: ReadonlyArray<number>): ReadonlyArray<number> => {
  const total = Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit), 0))
  return logits.map((logit) => logit - total)
}

/** The Fisher matrix by its definition, E[∇log π ∇log πᵀ], with gradients by central differences. */
const fisher = (): ReadonlyArray<ReadonlyArray<number>> => {
  const h = 1e-5
  const slopes = start.map((_, i) => {
    const [up, down] = [h, -h].map((by) => plainOutputs(start.with(i, start[i] + by)).map(logSoftmax))
    return up.map((row, r) => row.map((one, a) => (one - down[r][a]) / (2 * h)))
  })
  const chances = plainOutputs(start).map((row) => logSoftmax(row).map(Math.exp))
  return slopes.map((one) =>
    slopes.map((other) => {
      let sum = 0
      for (let r = 0; r < rows; r++) for (let a = 0; a < outputs; a++) sum += chances[r][a] * one[r][a] * other[r][a]
      return sum / rows
    }),
  )
}

const policyOf = (theta: Tensor): Distribution => categorical(outputsOf(theta))
const divergenceFrom = (theta: Tensor, policy: (theta: Tensor) => Distribution): Tensor =>
  G.mean(policy(theta).klFrom(policy(theta).parameters.map((parameter) => G.stopGradient(parameter))))

const closeTo = (actual: ArrayLike<number>, expected: ReadonlyArray<number>, tolerance: number): void => {
  assert.strictEqual(actual.length, expected.length)
  expected.forEach((one, at) => assert.closeTo(actual[at], one, tolerance, `element ${at}`))
}

describe("the product with the Hessian of the divergence", () => {
  it("is the product with the Fisher matrix", () => {
    const theta = G.state("theta", [size])
    const vector = draw(size)
    const product = hessianProduct(divergenceFrom(theta, policyOf), theta)(G.constant(vector))
    const [actual] = evaluate([product], new Map([[theta, start]]))
    const expected = fisher().map((row) => row.reduce((sum, one, at) => sum + one * vector[at], 0))
    assert.isAbove(Math.max(...expected.map(Math.abs)), 0.05)
    closeTo(actual, expected, 1e-7)
  })

  const policies: Readonly<Record<string, (theta: Tensor) => Distribution>> = {
    "one choice": policyOf,
    "a choice with a mask": (theta) =>
      categorical(
        outputsOf(theta),
        G.constant(
          Float32Array.from({ length: rows * outputs }, (_, at) => (at % 4 === 1 ? 0 : 1)),
          [rows, outputs],
        ),
      ),
    "two choices": (theta) => multiCategorical(G.concat([outputsOf(theta), outputsOf(theta)], 1), [2, 4]),
    switches: (theta) => bernoulli(outputsOf(theta)),
    "real numbers": (theta) => diagonalGaussian(outputsOf(theta), G.slice(theta, [0], [outputs])),
  }
  for (const [name, policy] of Object.entries(policies)) {
    it(`agrees with differences of the gradient of KL, for ${name}`, () => {
      const theta = G.state("theta", [size])
      const old = G.state("old", [size])
      const vector = draw(size)
      const product = hessianProduct(divergenceFrom(theta, policy), theta)(G.constant(vector))
      const [actual] = evaluate([product], new Map([[theta, start]]))
      const kl = G.mean(policy(theta).klFrom(policy(old).parameters))
      /** The divergence of `start + by · vector` from `start`, in which the first derivative is 0. */
      const at = (by: number, other: ReadonlyArray<number>): number => {
        const moved = start.map((one, index) => one + by * (vector[index] + other[index]))
        return evaluate(
          [kl],
          new Map([
            [theta, moved],
            [old, start],
          ]),
        )[0][0]
      }
      // uᵀ H v from the second differences along v + u and v − u, for each axis u.
      const h = 1e-3
      const second = (other: ReadonlyArray<number>): number => (at(h, other) + at(-h, other)) / (h * h)
      for (const axis of [0, 7, size - 1]) {
        const unit = start.map((_, index) => (index === axis ? 1 : 0))
        const difference = (second(unit) - second(unit.map((one) => -one))) / 4
        assert.closeTo(actual[axis], difference, 1e-5)
      }
    })
  }
})

describe("the conjugate gradient", () => {
  it("solves a system in as many iterations as it has unknowns", () => {
    const matrix = G.constant([4, 1, 0, 1, 3, -1, 0, -1, 2], [3, 3])
    const product = (vector: Tensor): Tensor => G.reshape(G.matmul(matrix, G.reshape(vector, [3, 1])), [3])
    const [x] = evaluate([conjugateGradient(product, G.constant([6, 4, 4]), 3)])
    closeTo(x, [1, 2, 3], 1e-12)
  })

  it("stays at the solution, and at 0 for b = 0", () => {
    const [x, zero] = evaluate([
      conjugateGradient((vector) => G.mul(vector, 2), G.constant([2, 6]), 8),
      conjugateGradient((vector) => G.mul(vector, 2), G.constant([0, 0]), 8),
    ])
    closeTo(x, [1, 3], 1e-12)
    closeTo(zero, [0, 0], 0)
  })
})

describe("the conjugate gradient in float32", () => {
  const numbersOf = (x: Tensor): ReadonlyArray<number> => {
    const program = compileWith(Wasm.layer, { name: "solve", inputs: {}, state: {}, outputs: { x } })
    program.runSync?.()
    return Array.from(program.results.x)
  }

  it("keeps the solution through many more iterations", () => {
    const diagonal = G.constant([4, 3, 2, 1, 0.5])
    const x = numbersOf(conjugateGradient((vector) => G.mul(vector, diagonal), G.constant([4, 6, 6, 4, 2.5]), 60))
    closeTo(x, [1, 2, 3, 4, 5], 1e-3)
  })

  it("goes nowhere along directions without curvature", () => {
    for (const curvature of [0, 1e-9, -1e-9]) {
      const diagonal = G.constant([1, curvature])
      const x = numbersOf(conjugateGradient((vector) => G.mul(vector, diagonal), G.constant([1, 1]), 30))
      closeTo(x, [2, 2], 1e-5)
    }
    closeTo(numbersOf(conjugateGradient((vector) => G.mul(vector, -1), G.constant([1, 1]), 5)), [0, 0], 0)
  })
})

describe("a step in a trust region", () => {
  const settings = { maxKl: 0.01, iterations: size, damping: 1e-3, tries: 10, shrink: 0.8 }
  const theta = G.state("theta", [size])
  const actions = G.constant(Int32Array.from({ length: rows }, (_, row) => row % outputs))
  const old = policyOf(theta)
  const advantages = G.constant(draw(rows))
  const surrogate = (sign: number) => (weights: Tensor) => {
    const policy = policyOf(weights)
    const logRatio = G.sub(policy.logProbability(actions), G.stopGradient(old.logProbability(actions)))
    return {
      objective: G.mul(G.mean(G.mul(G.exp(logRatio), advantages)), sign),
      divergence: G.mean(policy.klFrom(old.parameters.map((parameter) => G.stopGradient(parameter)))),
    }
  }

  it("has the direction F⁻¹ g, increases the objective, and keeps within the limit, which it nearly reaches", () => {
    const { next, divergence, fraction } = trustRegionStep(theta, surrogate(1), settings)
    const [moved, [kl], [share]] = evaluate([next, divergence, fraction], new Map([[theta, start]]))
    const actual = G.constant(Array.from(moved))
    const [[objective], [before], [measured]] = evaluate(
      [surrogate(1)(actual).objective, surrogate(1)(theta).objective, surrogate(1)(actual).divergence],
      new Map([[theta, start]]),
    )
    assert.isAbove(objective, before)
    assert.closeTo(measured, kl, 1e-6)
    assert.isAtMost(kl, settings.maxKl)
    assert.isAbove(kl, 0.5 * settings.maxKl)
    assert.isAbove(share, 0)
    // (F + damping) times the step is a multiple of the gradient of the objective.
    const step = start.map((one, at) => moved[at] - one)
    const image = fisher().map((row, at) =>
      row.reduce((sum, one, i) => sum + one * step[i], settings.damping * step[at]),
    )
    const h = 1e-6
    const gradient = start.map((_, i) => {
      const objectiveAt = (by: number): number =>
        plainOutputs(start.with(i, start[i] + by)).reduce((sum, row, r) => {
          const now = logSoftmax(row)[r % outputs]
          const then = logSoftmax(plainOutputs(start)[r])[r % outputs]
          return sum + (Math.exp(now - then) * evaluate([advantages])[0][r]) / rows
        }, 0)
      return (objectiveAt(h) - objectiveAt(-h)) / (2 * h)
    })
    const largest = gradient.reduce((best, one, at) => (Math.abs(one) > Math.abs(gradient[best]) ? at : best), 0)
    const factor = image[largest] / gradient[largest]
    assert.isAbove(factor, 0)
    closeTo(
      image,
      gradient.map((one) => factor * one),
      1e-6,
    )
  })

  it("stays where no step increases the objective", () => {
    const flat = (weights: Tensor) => ({
      ...surrogate(1)(weights),
      objective: G.mul(surrogate(1)(weights).objective, 0),
    })
    const { next, fraction } = trustRegionStep(theta, flat, settings)
    const [moved, [share]] = evaluate([next, fraction], new Map([[theta, start]]))
    assert.strictEqual(share, 0)
    closeTo(moved, start, 0)
  })

  it("takes a shorter step where the whole one is too far", () => {
    // A divergence whose curvature at the start says too little: x² + 10⁴ x⁴.
    const x = G.state("x", [1])
    const steep = (at: Tensor) => {
      const away = G.sum(G.square(G.sub(at, G.stopGradient(x))))
      return { objective: G.sum(at), divergence: G.add(away, G.mul(G.square(away), 1e4)) }
    }
    const { next, divergence, fraction } = trustRegionStep(x, steep, { ...settings, iterations: 2, damping: 0 })
    const [[moved], [kl], [share]] = evaluate([next, divergence, fraction], new Map([[x, [0]]]))
    // The whole step has the length √0.01 = 0.1; 0.8⁵ of it diverges by 0.0126, and 0.8⁶ of it by 0.0054.
    assert.closeTo(share, 0.8 ** 6, 1e-7)
    assert.closeTo(moved, 0.1 * 0.8 ** 6, 1e-7)
    assert.closeTo(kl, (0.1 * 0.8 ** 6) ** 2 + 1e4 * (0.1 * 0.8 ** 6) ** 4, 1e-7)
  })
})
