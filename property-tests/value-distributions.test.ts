import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { evaluate } from "../src/tensor/graph/evaluate.ts"
import * as G from "../src/tensor/graph/ops.ts"
import { categoricalTarget, quantileLoss } from "../src/rl/losses/valueDistributions.ts"

const row = (values: ReadonlyArray<number>) => G.constant(values, [1, values.length])

const finite = (min: number, max: number) => fc.double({ min, max, noNaN: true }).map(Math.fround)

/** Probabilities of two or more categories, with their range and a reward and discount. */
const cases = fc.record({
  weights: fc.array(finite(0.01, 1), { minLength: 2, maxLength: 12 }),
  min: finite(-20, 5),
  width: finite(0.5, 40),
  reward: finite(-60, 60),
  discount: finite(0, 1),
})

const project = ({ weights, min, width, reward, discount }: typeof cases extends fc.Arbitrary<infer A> ? A : never) => {
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  const probabilities = weights.map((weight) => weight / total)
  const categories = { count: weights.length, min, max: min + width }
  const inputs = { r_t: G.constant([reward]), discount_t: G.constant([discount]), probabilities_t: row(probabilities) }
  const [projected] = evaluate([categoricalTarget({ ...inputs, categories })])
  const returns = weights.map((_, index) => min + (index * width) / (weights.length - 1))
  const mean = (of: ArrayLike<number>) => returns.reduce((sum, value, index) => sum + value * of[index], 0)
  return { projected: Array.from(projected), mean, probabilities, returns }
}

describe("the projection of a target on categories", () => {
  it("gives probabilities, which add up to one", () => {
    fc.assert(
      fc.property(cases, (input) => {
        const { projected } = project(input)
        for (const probability of projected) assert.isAtLeast(probability, -1e-6)
        assert.closeTo(
          projected.reduce((sum, probability) => sum + probability, 0),
          1,
          1e-4,
        )
      }),
    )
  })

  it("keeps the mean if no return leaves the range", () => {
    const inside = cases.map((input) => {
      // The returns move to discount · z + reward; this reward puts their range anywhere inside.
      const { min, width, reward, discount } = input
      const share = (reward + 60) / 120
      return { ...input, reward: min - discount * min + share * (1 - discount) * width }
    })
    fc.assert(
      fc.property(inside, (input) => {
        const { projected, mean, probabilities } = project(input)
        assert.closeTo(mean(projected), input.reward + input.discount * mean(probabilities), 1e-3 * (1 + input.width))
      }),
    )
  })

  it("puts all probability on the last category if every return is beyond it", () => {
    fc.assert(
      fc.property(cases, (input) => {
        const { projected } = project({ ...input, reward: 1000, discount: 1 })
        assert.closeTo(projected[projected.length - 1], 1, 1e-4)
      }),
    )
  })
})

describe("quantile regression", () => {
  it("is least, for one quantile and a target of one number, where both are equal", () => {
    fc.assert(
      fc.property(finite(-10, 10), finite(-10, 10), (quantile, target) => {
        const [[loss]] = evaluate([quantileLoss({ quantiles_tm1: row([quantile]), target: row([target]) })])
        assert.isAtLeast(loss, 0)
        if (quantile === target) assert.strictEqual(loss, 0)
        // The quantile for the probability ½ is the median, whose loss is half of Huber's.
        const error = Math.abs(quantile - target)
        assert.closeTo(loss, (error <= 1 ? error ** 2 / 2 : error - 0.5) / 2, 1e-4)
      }),
    )
  })
})
