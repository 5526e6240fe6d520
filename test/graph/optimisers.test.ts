import { assert, describe, it } from "@effect/vitest"
import { evaluate } from "../../src/graph/evaluate.ts"
import * as G from "../../src/graph/ops.ts"
import { adam, clipGlobalNorm, type Optimiser, rmsprop, sgd } from "../../src/graph/optimisers.ts"
import type { Tensor } from "../../src/graph/Tensor.ts"

/** Parameters after each step down given gradients, in doubles, from moments that are zero at first. */
const descend = (
  optimiser: Optimiser,
  start: ReadonlyArray<number>,
  slopes: ReadonlyArray<ReadonlyArray<number>>,
): ReadonlyArray<ReadonlyArray<number>> => {
  const theta = G.state("theta", [start.length])
  const gradient = G.input("gradient", [start.length])
  const { next, moments } = optimiser.update(theta, gradient)
  const kept = Object.values(moments)
  let values = new Map<Tensor, ArrayLike<number>>([
    [theta, start],
    ...kept.map(({ tensor }) => [tensor, new Float64Array(tensor.shape[0] ?? 1)] as const),
  ])
  return slopes.map((slope) => {
    values.set(gradient, slope)
    const [newTheta, ...rest] = evaluate([next, ...kept.map((moment) => moment.next)], values)
    values = new Map<Tensor, ArrayLike<number>>([
      [theta, newTheta],
      ...kept.map(({ tensor }, index) => [tensor, rest[index]] as const),
    ])
    return [...newTheta]
  })
}

const close = (found: ReadonlyArray<ReadonlyArray<number>>, expected: ReadonlyArray<ReadonlyArray<number>>): void => {
  assert.strictEqual(found.length, expected.length)
  found.forEach((row, step) =>
    row.forEach((value, at) => assert.closeTo(value, expected[step][at], 1e-6, `step ${step + 1}`)),
  )
}

const slopes = [
  [1, -2],
  [0.5, 4],
  [-3, 0],
  [1, 1],
]

describe("adam", () => {
  it("first moves by the learning rate against the gradient's sign, whatever its size", () => {
    const [first] = descend(adam({ size: 2, learningRate: 0.1 }), [1, 1], [[1e-3, -1e5]])
    // A gradient of a thousandth feels ε, and 0.999 is no float32.
    assert.closeTo(first[0], 0.9, 1e-5)
    assert.closeTo(first[1], 1.1, 1e-5)
  })

  it("equals the published algorithm, step by step", () => {
    const [m, v] = [
      [0, 0],
      [0, 0],
    ]
    let theta = [1, -1]
    const expected = slopes.map((g, t) => {
      theta = theta.map((value, i) => {
        m[i] = 0.9 * m[i] + 0.1 * g[i]
        v[i] = 0.999 * v[i] + 0.001 * g[i] ** 2
        const mHat = m[i] / (1 - 0.9 ** (t + 1))
        const vHat = v[i] / (1 - 0.999 ** (t + 1))
        return value - (0.01 * mHat) / (Math.sqrt(vHat) + 1e-5)
      })
      return theta
    })
    close(descend(adam({ size: 2, learningRate: 0.01, epsilon: 1e-5 }), [1, -1], slopes), expected)
  })

  it("with weight decay, shrinks the weights themselves first (AdamW)", () => {
    const options = { size: 2, learningRate: 0.01 }
    const plain = descend(adam(options), [1, -1], slopes.slice(0, 1))
    const decayed = descend(adam({ ...options, weightDecay: 0.5 }), [1, -1], slopes.slice(0, 1))
    close(decayed, [plain[0].map((value, at) => value - 0.01 * 0.5 * [1, -1][at])])
  })

  it("takes the learning rate from the graph", () => {
    const byTensor = descend(adam({ size: 2, learningRate: G.constant(0.25) }), [1, -1], slopes)
    assert.deepStrictEqual(byTensor, descend(adam({ size: 2, learningRate: 0.25 }), [1, -1], slopes))
  })

  it("keeps two moments and a count of steps", () => {
    const { moments } = adam({ size: 2, learningRate: 1 }).update(G.state("theta", [2]), G.input("g", [2]))
    assert.deepStrictEqual(
      Object.entries(moments).map(([name, { tensor }]) => [name, [...tensor.shape]]),
      [
        ["adam.first", [2]],
        ["adam.second", [2]],
        ["adam.steps", []],
      ],
    )
  })
})

describe("sgd", () => {
  it("moves against the gradient", () => {
    close(descend(sgd({ size: 2, learningRate: 0.1 }), [1, 1], slopes.slice(0, 2)), [
      [0.9, 1.2],
      [0.85, 0.8],
    ])
  })

  it("keeps its momentum", () => {
    // Velocities: 1, −2; then 0.5 · 1 + 0.5, 0.5 · −2 + 4.
    close(descend(sgd({ size: 2, learningRate: 0.1, momentum: 0.5 }), [1, 1], slopes.slice(0, 2)), [
      [0.9, 1.2],
      [0.8, 0.9],
    ])
  })

  it("has no state without momentum", () => {
    const { moments } = sgd({ size: 2, learningRate: 1 }).update(G.state("theta", [2]), G.input("g", [2]))
    assert.deepStrictEqual(moments, {})
  })
})

describe("rmsprop", () => {
  it("divides by the root of a running mean of squares", () => {
    let [theta, square] = [1, 0]
    const expected = [3, -1, 2].map((g) => {
      square = 0.9 * square + 0.1 * g * g
      theta -= (0.01 * g) / (Math.sqrt(square) + 1e-4)
      return [theta]
    })
    const optimiser = rmsprop({ size: 1, learningRate: 0.01, decay: 0.9, epsilon: 1e-4 })
    close(descend(optimiser, [1], [[3], [-1], [2]]), expected)
  })
})

describe("clipGlobalNorm", () => {
  const clipped = (values: ReadonlyArray<number>, largest: number) => [
    ...evaluate([clipGlobalNorm(G.constant(values), largest)])[0],
  ]

  it("scales a long gradient down to the norm", () => {
    close([clipped([3, 4], 1)], [[0.6, 0.8]])
  })

  it("leaves a short gradient unchanged", () => {
    assert.deepStrictEqual(
      clipped([0.3, -0.4], 1),
      evaluate([G.constant([0.3, -0.4])]).flatMap((values) => [...values]),
    )
    assert.deepStrictEqual(clipped([0, 0], 1), [0, 0])
  })
})
