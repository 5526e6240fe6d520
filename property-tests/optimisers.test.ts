import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import * as Reference from "../src/tensor/backend/reference.ts"
import { evaluate } from "../src/tensor/graph/evaluate.ts"
import * as G from "../src/tensor/graph/ops.ts"
import { zeros } from "../src/tensor/graph/initialisers.ts"
import {
  adam,
  clipGlobalNorm,
  muon,
  type Optimiser,
  orthogonalised,
  rmsprop,
  sgd,
} from "../src/tensor/graph/optimisers.ts"
import { layout } from "../src/tensor/graph/Parameters.ts"
import { compileWith } from "./support/agreement.ts"

/** The parameters after all given gradients, by a program whose state they are. */
const descend = (optimiser: Optimiser, start: Float32Array, slopes: ReadonlyArray<Float32Array>): Float32Array => {
  const theta = G.state("theta", [start.length])
  const gradient = G.input("gradient", [start.length])
  const { next, moments } = optimiser.update(theta, gradient)
  const program = compileWith(Reference.layer, {
    name: "descent",
    inputs: { gradient },
    state: { theta: { tensor: theta, next }, ...moments },
    outputs: {},
  })
  Effect.runSync(program.write("theta", start))
  for (const slope of slopes) {
    program.feeds.gradient.set(slope)
    program.runSync?.()
  }
  return Effect.runSync(program.read("theta"))
}

const size = 3
const float = (bound: number) => fc.double({ min: -bound, max: bound, noNaN: true }).map((x) => Math.fround(x))
const vector = (bound: number) =>
  fc.array(float(bound), { minLength: size, maxLength: size }).map((values) => Float32Array.from(values))
const descents = fc.record({
  start: vector(2),
  slopes: fc.array(vector(5), { minLength: 1, maxLength: 12 }),
  learningRate: fc.double({ min: 1e-4, max: 0.1, noNaN: true }),
})

const close = (found: Float32Array, expected: ArrayLike<number>): void =>
  found.forEach((value, at) => assert.closeTo(value, expected[at], 2e-5 * Math.max(1, Math.abs(expected[at]))))

describe("after any gradients, the parameters equal those of a loop written as in the paper", () => {
  it("Adam, and AdamW with weight decay", () => {
    const settings = fc.record({
      beta1: fc.constantFrom(0, 0.5, 0.9),
      beta2: fc.constantFrom(0.9, 0.99, 0.999),
      epsilon: fc.constantFrom(1e-3, 1e-5, 1e-8),
      weightDecay: fc.constantFrom(0, 0.01, 0.1),
    })
    fc.assert(
      fc.property(descents, settings, ({ start, slopes, learningRate }, { beta1, beta2, epsilon, weightDecay }) => {
        const expected = Array.from(start, (value, i) => {
          let [theta, m, v] = [value, 0, 0]
          slopes.forEach((g, t) => {
            m = beta1 * m + (1 - beta1) * g[i]
            v = beta2 * v + (1 - beta2) * g[i] ** 2
            const mHat = m / (1 - beta1 ** (t + 1))
            const vHat = v / (1 - beta2 ** (t + 1))
            theta = theta - learningRate * weightDecay * theta - (learningRate * mHat) / (Math.sqrt(vHat) + epsilon)
          })
          return theta
        })
        close(descend(adam({ size, learningRate, beta1, beta2, epsilon, weightDecay }), start, slopes), expected)
      }),
    )
  })

  it("gradient descent, with momentum and without", () => {
    fc.assert(
      fc.property(descents, fc.constantFrom(0, 0.5, 0.9), ({ start, slopes, learningRate }, momentum) => {
        const expected = Array.from(start, (value, i) => {
          let [theta, velocity] = [value, 0]
          for (const g of slopes) {
            velocity = momentum * velocity + g[i]
            theta -= learningRate * velocity
          }
          return theta
        })
        close(descend(sgd({ size, learningRate, momentum }), start, slopes), expected)
      }),
    )
  })

  it("RMSProp", () => {
    fc.assert(
      fc.property(descents, fc.constantFrom(0.9, 0.99), ({ start, slopes, learningRate }, decay) => {
        const epsilon = 1e-3
        const expected = Array.from(start, (value, i) => {
          let [theta, square] = [value, 0]
          for (const g of slopes) {
            square = decay * square + (1 - decay) * g[i] ** 2
            theta -= (learningRate * g[i]) / (Math.sqrt(square) + epsilon)
          }
          return theta
        })
        close(descend(rmsprop({ size, learningRate, decay, epsilon }), start, slopes), expected)
      }),
    )
  })
})

describe("laws", () => {
  it("Adam's first step does not depend on the size of the gradient", () => {
    fc.assert(
      fc.property(vector(2), fc.constantFrom(0.01, 1, 100), (start, scale) => {
        const optimiser = adam({ size, learningRate: 0.01 })
        const slope = Float32Array.of(1, -2, 3)
        const step = (by: number) => descend(optimiser, start, [slope.map((g) => g * by)])
        close(step(scale), step(1))
      }),
    )
  })

  it("without a gradient there is no step, except by momentum", () => {
    fc.assert(
      fc.property(vector(2), (start) => {
        const still = [new Float32Array(size)]
        const options = { size, learningRate: 0.1 }
        const column = layout({ column: { shape: [size, 1], init: zeros } })
        const optimisers = [adam(options), sgd(options), rmsprop(options), muon({ ...options, layout: column })]
        for (const optimiser of optimisers) {
          assert.deepStrictEqual(descend(optimiser, start, still), start)
        }
      }),
    )
  })

  it("a clipped gradient has the same direction, and at most the largest norm", () => {
    fc.assert(
      fc.property(vector(100), fc.double({ min: 0.01, max: 50, noNaN: true }), (gradient, largest) => {
        const [clipped] = evaluate([clipGlobalNorm(G.constant(gradient), largest)])
        const norm = Math.hypot(...gradient)
        assert.isAtMost(Math.hypot(...clipped), Math.max(largest, 0) * (1 + 1e-6))
        const by = norm > largest ? largest / norm : 1
        clipped.forEach((value, at) => assert.closeTo(value, gradient[at] * by, 1e-4 * largest))
      }),
    )
  })
})

describe("Muon", () => {
  /** The eigenvalues of AᵀA or AAᵀ, the smaller one of both, by Jacobi's rotations; their roots are singular values. */
  const singularValues = (a: ArrayLike<number>, rows: number, columns: number): ReadonlyArray<number> => {
    const n = Math.min(rows, columns)
    const at = (i: number, k: number) => (rows <= columns ? a[i * columns + k] : a[k * columns + i])
    const gram = Array.from({ length: n }, (_, i) =>
      Array.from({ length: n }, (_, j) => {
        let sum = 0
        for (let k = 0; k < Math.max(rows, columns); k++) sum += at(i, k) * at(j, k)
        return sum
      }),
    )
    for (let sweep = 0; sweep < 30; sweep++)
      for (let p = 0; p < n; p++)
        for (let q = p + 1; q < n; q++) {
          const angle = 0.5 * Math.atan2(2 * gram[p][q], gram[q][q] - gram[p][p])
          const [c, s] = [Math.cos(angle), Math.sin(angle)]
          for (let k = 0; k < n; k++) {
            const [x, y] = [gram[k][p], gram[k][q]]
            gram[k][p] = c * x - s * y
            gram[k][q] = s * x + c * y
          }
          for (let k = 0; k < n; k++) {
            const [x, y] = [gram[p][k], gram[q][k]]
            gram[p][k] = c * x - s * y
            gram[q][k] = s * x + c * y
          }
        }
    return gram.map((row, i) => Math.sqrt(Math.max(row[i], 0)))
  }

  const matrix = fc
    .tuple(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 1, max: 6 }))
    .chain(([rows, columns]) =>
      fc
        .array(float(3), { minLength: rows * columns, maxLength: rows * columns })
        .map((values) => ({ rows, columns, values })),
    )

  it("turns singular values into numbers near 1, unless they are tiny beside the norm", () => {
    fc.assert(
      fc.property(matrix, ({ rows, columns, values }) => {
        const before = singularValues(values, rows, columns)
        fc.pre(Math.hypot(...values) > 0.01 && Math.min(...before) > 0.01 * Math.hypot(...values))
        const [found] = evaluate([orthogonalised(G.constant(values, [rows, columns]))])
        for (const value of singularValues(found, rows, columns)) {
          assert.isAbove(value, 0.65)
          assert.isBelow(value, 1.25)
        }
      }),
    )
  })

  it("does not depend on the size of the gradient", () => {
    fc.assert(
      fc.property(matrix, fc.constantFrom(0.125, 8, 1024), ({ rows, columns, values }, factor) => {
        fc.pre(Math.hypot(...values) > 0.1)
        const [one] = evaluate([orthogonalised(G.constant(values, [rows, columns]))])
        const scaled = values.map((value) => value * factor)
        const [other] = evaluate([orthogonalised(G.constant(scaled, [rows, columns]))])
        one.forEach((value, at) => assert.closeTo(other[at], value, 1e-3))
      }),
    )
  })

  it("descends a quadratic from any start", () => {
    fc.assert(
      fc.property(matrix, ({ rows, columns, values }) => {
        const parameters = layout({ weight: { shape: [rows, columns], init: zeros } })
        const { size } = parameters
        const theta = G.state("theta", [size])
        const rate = G.input("rate", [])
        const { next, moments } = muon({ layout: parameters, learningRate: rate }).update(theta, theta)
        const program = compileWith(Reference.layer, {
          name: "quadratic",
          inputs: { rate },
          state: { theta: { tensor: theta, next }, ...moments },
          outputs: {},
        })
        Effect.runSync(program.write("theta", Float32Array.from(values)))
        // The steps have a fixed length, so the rate has to fall for the parameters to come to rest.
        for (let step = 0; step < 150; step++) {
          program.feeds.rate[0] = (1 - step / 150) * 0.5
          program.runSync?.()
        }
        const left = Math.hypot(...Effect.runSync(program.read("theta")))
        assert.isBelow(left, Math.max(0.1 * Math.hypot(...values), 0.5))
      }),
      { numRuns: 20 },
    )
  })
})
