import { assert, describe, it } from "vitest"
import { stream } from "../../../src/base/rng/Rng.ts"
import { draw, logDensity, mixtureOf, weightsOf } from "../../../src/command/tune/parzen.ts"
import type { Parameter } from "../../../src/command/tune/Space.ts"

const x: Parameter = { _tag: "Number", path: "x", low: 0, high: 1, isLog: false, step: null, when: [] }
const rate: Parameter = { _tag: "Number", path: "rate", low: 1e-4, high: 1, isLog: true, step: null, when: [] }
const count: Parameter = { _tag: "Number", path: "count", low: 1, high: 5, isLog: false, step: 1, when: [] }
const kind: Parameter = { _tag: "Choice", path: "kind", values: ["a", "b", "c"], when: [] }
const alone = { priorWeight: 1, width: "neighbours" } as const

const normal = (x: number, mean: number, width: number): number =>
  Math.exp(-((x - mean) ** 2) / (2 * width ** 2)) / (width * Math.sqrt(2 * Math.PI))

/** Integrates by Simpson's rule. */
const integral = (f: (x: number) => number, low: number, high: number): number => {
  const steps = 2000
  const h = (high - low) / steps
  let sum = f(low) + f(high)
  for (let at = 1; at < steps; at++) sum += (at % 2 === 1 ? 4 : 2) * f(low + at * h)
  return (sum * h) / 3
}

/** The density of a mixture of normal distributions that are cut off at the bounds, by its formula. */
const plain = (at: number, low: number, high: number, components: ReadonlyArray<readonly [number, number]>): number =>
  components.reduce((sum, [mean, width]) => {
    const inside = integral((one) => normal(one, mean, width), low, high)
    return sum + normal(at, mean, width) / inside / components.length
  }, 0)

describe("the density of a number", () => {
  // The prior's mean is 0.5. The distances to the neighbours are 0.2, 0.2 and 0.3, and the least width is 1/5.
  const trials = [{ x: 0.8 }, { x: 0.1 }, { x: 0.3 }]
  const components = [[0.8, 0.3], [0.1, 0.2], [0.3, 0.2], [0.5, 1]] as const // prettier-ignore

  it("is that of the formula", () => {
    const mixture = mixtureOf([x], trials, alone)
    for (const at of [0, 0.05, 0.2, 0.5, 0.77, 1]) {
      assert.closeTo(Math.exp(logDensity(mixture, [at])), plain(at, 0, 1, components), 1e-9)
    }
  })

  it("is computed from logarithms where these are spread evenly", () => {
    const [low, high] = [Math.log(1e-4), 0]
    const mixture = mixtureOf([rate], [{ rate: 1e-3 }, { rate: 1e-1 }], alone)
    const means = [Math.log(1e-3), Math.log(1e-1), (low + high) / 2]
    // The prior lies between the two trials, half of the distance from each.
    const gap = (means[1] - means[0]) / 2
    const widths = [Math.max(gap, (high - low) / 4), Math.max(gap, (high - low) / 4), high - low]
    for (const at of [low, -5, -1]) {
      const expected = plain(at, low, high, means.map((mean, index) => [mean, widths[index]] as const)) // prettier-ignore
      assert.closeTo(Math.exp(logDensity(mixture, [at])), expected, 1e-9)
    }
  })

  it("is a probability for whole numbers, which add up to 1", () => {
    const mixture = mixtureOf([count], [{ count: 2 }], alone)
    const probabilities = [1, 2, 3, 4, 5].map((at) => Math.exp(logDensity(mixture, [at])))
    const total = probabilities.reduce((sum, one) => sum + one, 0)
    assert.closeTo(total, 1, 1e-9)
    // The trial at 2 has its neighbour, the prior, at 3; the least width is 5/3.
    const share = (mean: number, width: number): number =>
      integral((at) => normal(at, mean, width), 1.5, 2.5) / integral((at) => normal(at, mean, width), 0.5, 5.5)
    assert.closeTo(probabilities[1], (share(2, 5 / 3) + share(3, 5)) / 2, 1e-9)
  })

  it("has Scott's width for several parameters", () => {
    const mixture = mixtureOf([x, kind], [{ x: 0.25, kind: "b" }], { priorWeight: 1, width: "dimensions" })
    const width = Math.max(0.2, 1 / 3)
    const byTrial = plain(0.4, 0, 1, [[0.25, width]]) * (1.5 / 2.5)
    const byPrior = plain(0.4, 0, 1, [[0.5, 1]]) / 3
    assert.closeTo(Math.exp(logDensity(mixture, [0.4, 1])), (byTrial + byPrior) / 2, 1e-9)
  })
})

describe("the probabilities of choices", () => {
  it("count the trials, with a little for the others", () => {
    const mixture = mixtureOf([kind], [{ kind: "a" }, { kind: "a" }, { kind: "c" }], alone)
    // Each trial gives 1 to its choice and 1/4 to all; the prior gives 1/3.
    const ofA = (2 * (1.25 / 1.75) + 0.25 / 1.75 + 1 / 3) / 4
    assert.closeTo(Math.exp(logDensity(mixture, [0])), ofA, 1e-12)
    const total = [0, 1, 2].reduce((sum, at) => sum + Math.exp(logDensity(mixture, [at])), 0)
    assert.closeTo(total, 1, 1e-12)
  })
})

describe("the weights of trials", () => {
  it("are equal for 25 and fewer, and rise over the older ones", () => {
    assert.deepStrictEqual(new Set(weightsOf(25)), new Set([1]))
    const weights = weightsOf(30)
    assert.strictEqual(weights[0], 1 / 30)
    assert.strictEqual(weights[4], 1)
    assert.closeTo(weights[2], (1 / 30 + 1) / 2, 1e-12)
    assert.deepStrictEqual(weights.slice(5), weightsOf(25))
  })
})

describe("a draw", () => {
  it("has the distribution of the density", () => {
    const mixture = mixtureOf([x], [{ x: 0.1 }, { x: 0.15 }], alone)
    const random = stream(3, "draws")
    const draws = Array.from({ length: 20_000 }, () => draw(mixture, random)[0])
    const share = draws.filter((one) => one < 0.3).length / draws.length
    assert.closeTo(share, integral((at) => Math.exp(logDensity(mixture, [at])), 0, 0.3), 0.01) // prettier-ignore
  })
})
