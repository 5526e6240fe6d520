import { assert, describe, it } from "@effect/vitest"
import { GraphError } from "../../../src/tensor/graph/GraphError.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import {
  categoricalDivergence,
  categoricalTarget,
  distributionOfAction,
  distributionOfBest,
  quantileLoss,
  quantileTarget,
} from "../../../src/rl/losses/valueDistributions.ts"
import { stream } from "../../../src/base/rng/Rng.ts"
import { evaluated, gradientOf } from "./evaluated.ts"

type Rows = ReadonlyArray<ReadonlyArray<number>>
const rows = (numbers: Rows) => G.constant(numbers.flat(), [numbers.length, numbers[0].length])

const close = (actual: ReadonlyArray<number>, expected: ReadonlyArray<number>, tolerance = 1e-5) => {
  assert.strictEqual(actual.length, expected.length)
  for (const [at, value] of expected.entries()) assert.closeTo(actual[at], value, tolerance)
}

const drawn = (seed: number, height: number, width: number, scale: number): Rows => {
  const random = stream(seed)
  return Array.from({ length: height }, () =>
    Array.from({ length: width }, () => Math.fround(scale * random.between(-1, 1))),
  )
}

/** The loss of quantile regression as the paper writes it: ρ(u) = |τ − 1{u < 0}| huber(u), summed over i, averaged over j. */
const quantileRegression = (quantiles: ReadonlyArray<number>, target: ReadonlyArray<number>): number => {
  let loss = 0
  for (const [i, quantile] of quantiles.entries()) {
    const probability = (2 * i + 1) / (2 * quantiles.length)
    for (const y of target) {
      const u = y - quantile
      const huber = Math.abs(u) <= 1 ? 0.5 * u * u : Math.abs(u) - 0.5
      loss += (Math.abs(probability - (u < 0 ? 1 : 0)) * huber) / target.length
    }
  }
  return loss
}

/** Algorithm 1 of Bellemare et al. as it is printed, with its neighbours l and u. */
const projected = (
  probabilities: ReadonlyArray<number>,
  reward: number,
  discount: number,
  min: number,
  max: number,
) => {
  const count = probabilities.length
  const width = (max - min) / (count - 1)
  const m = new Array<number>(count).fill(0)
  for (const [j, p] of probabilities.entries()) {
    const moved = Math.min(Math.max(reward + discount * (min + j * width), min), max)
    const b = (moved - min) / width
    const [l, u] = [Math.floor(b), Math.ceil(b)]
    // The printed algorithm loses the probability where b is whole; there it belongs to the category alone.
    if (l === u) m[l] += p
    else {
      m[l] += p * (u - b)
      m[u] += p * (b - l)
    }
  }
  return m
}

describe("losses of value distributions", () => {
  it("select the distribution of an action, or of the best action", () => {
    const all = G.constant([1, 2, 3, 4, 5, 6, 7, 8], [2, 2, 2])
    assert.deepStrictEqual(evaluated(distributionOfAction(all, G.constant(Int32Array.of(1, 0)))), [3, 4, 5, 6])
    const values = rows([
      [2, 1],
      [0, 1],
    ])
    assert.deepStrictEqual(evaluated(distributionOfBest(all, values)), [1, 2, 7, 8])
  })

  it("move the quantiles of the next return by the reward, without a gradient", () => {
    const quantiles_t = rows([
      [1, 2],
      [3, 4],
    ])
    const target = quantileTarget({ r_t: G.constant([1, 2]), discount_t: G.constant([0.5, 0]), quantiles_t })
    assert.deepStrictEqual(evaluated(target), [1.5, 2, 2, 2])
    assert.deepStrictEqual(gradientOf(G.sum(target), quantiles_t), [0, 0, 0, 0])
  })

  it("compute quantile regression and its gradient", () => {
    const [quantiles, targets] = [drawn(1, 3, 5, 2), drawn(2, 3, 4, 3)]
    const quantiles_tm1 = rows(quantiles)
    const loss = quantileLoss({ quantiles_tm1, target: rows(targets) })
    close(
      evaluated(loss),
      quantiles.map((row, at) => quantileRegression(row, targets[at])),
    )
    const step = 1e-5
    const slopes = quantiles.flatMap((row, at) =>
      row.map((_, i) => {
        const moved = (by: number) => row.map((value, index) => (index === i ? value + by : value))
        return (
          (quantileRegression(moved(step), targets[at]) - quantileRegression(moved(-step), targets[at])) / (2 * step)
        )
      }),
    )
    close(gradientOf(G.sum(loss), quantiles_tm1), slopes, 1e-4)
  })

  it("project the target on the categories, without a gradient", () => {
    const probabilities = drawn(3, 4, 7, 1).map((row) => {
      const positive = row.map(Math.abs)
      const total = positive.reduce((a, b) => a + b)
      return positive.map((value) => value / total)
    })
    // The second target lies on categories exactly, the third outside of their range, and the fourth is one return.
    const rewards = [0.3, 1, 9, -0.7]
    const discounts = [0.9, 1, 0.5, 0]
    const probabilities_t = rows(probabilities)
    const categories = { count: 7, min: -3, max: 3 }
    const target = categoricalTarget({
      r_t: G.constant(rewards),
      discount_t: G.constant(discounts),
      probabilities_t,
      categories,
    })
    close(
      evaluated(target),
      probabilities.flatMap((row, at) => projected(row, rewards[at], discounts[at], -3, 3)),
    )
    assert.isTrue(gradientOf(G.sum(target), probabilities_t).every((slope) => slope === 0))
  })

  it("compute the divergence of a target, whose gradient by the logits is p − target", () => {
    const logits = rows([
      [0.5, -1, 2],
      [0, 0, 0],
    ])
    const target = [
      [0.2, 0.8, 0],
      [1 / 3, 1 / 3, 1 / 3],
    ]
    const divergence = categoricalDivergence({ logProbabilities_tm1: G.logSoftmax(logits), target: rows(target) })
    const total = Math.exp(0.5) + Math.exp(-1) + Math.exp(2)
    const p = [Math.exp(0.5) / total, Math.exp(-1) / total, Math.exp(2) / total]
    close(evaluated(divergence), [0.2 * Math.log(0.2 / p[0]) + 0.8 * Math.log(0.8 / p[1]), 0])
    close(gradientOf(G.sum(divergence), logits), [p[0] - 0.2, p[1] - 0.8, p[2], 0, 0, 0])
  })

  it("reject shapes that would broadcast", () => {
    const vector = G.constant([1, 2])
    const matrix = rows([[1, 2]])
    assert.throws(() => distributionOfAction(matrix, vector), GraphError, /^distributionOfAction: expected \[rows, a/)
    assert.throws(
      () => quantileLoss({ quantiles_tm1: matrix, target: rows([[1], [2]]) }),
      GraphError,
      /^quantileLoss: target: expected shape \[1, 1\]/,
    )
    assert.throws(
      () => categoricalDivergence({ logProbabilities_tm1: matrix, target: vector }),
      GraphError,
      /^categoricalDivergence: target: expected shape \[1, 2\]/,
    )
  })
})
