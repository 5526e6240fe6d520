import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import * as Reference from "../src/backend/reference.ts"
import { evaluate } from "../src/graph/evaluate.ts"
import * as G from "../src/graph/ops.ts"
import { adam, clipGlobalNorm, type Optimiser, rmsprop, sgd } from "../src/graph/optimisers.ts"
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
        for (const optimiser of [adam(options), sgd(options), rmsprop(options)]) {
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
