import { assert, describe, it } from "@effect/vitest"
import { Record } from "effect"
import { evaluate } from "../../../src/tensor/graph/evaluate.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import { zeros } from "../../../src/tensor/graph/initialisers.ts"
import {
  adam,
  clipGlobalNorm,
  muon,
  type Optimiser,
  orthogonalised,
  rmsprop,
  sgd,
} from "../../../src/tensor/graph/optimisers.ts"
import { layout } from "../../../src/tensor/graph/Parameters.ts"
import { sizeOf, type Tensor } from "../../../src/tensor/graph/Tensor.ts"

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
    ...kept.map(({ tensor }) => [tensor, new Float64Array(sizeOf(tensor.shape))] as const),
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

  it("with weight decay, shrinks the weights themselves first", () => {
    for (const momentum of [0, 0.5]) {
      const options = { size: 2, learningRate: 0.1, momentum }
      const plain = descend(sgd(options), [1, -1], slopes.slice(0, 1))
      const decayed = descend(sgd({ ...options, weightDecay: 0.5 }), [1, -1], slopes.slice(0, 1))
      close(decayed, [plain[0].map((value, at) => value - 0.1 * 0.5 * [1, -1][at])])
    }
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

describe("muon", () => {
  type Matrix = ReadonlyArray<ReadonlyArray<number>>
  const product = (a: Matrix, b: Matrix): Matrix =>
    a.map((row) => b[0].map((_, j) => row.reduce((sum, value, k) => sum + value * b[k][j], 0)))
  const transposed = (a: Matrix): Matrix => a[0].map((_, j) => a.map((row) => row[j]))
  const combined = (factors: ReadonlyArray<number>, matrices: ReadonlyArray<Matrix>): Matrix =>
    matrices[0].map((row, i) => row.map((_, j) => factors.reduce((sum, f, m) => sum + f * matrices[m][i][j], 0)))

  /** Newton and Schulz's iteration as it is published, for matrices that are not taller than wide. */
  const newtonSchulz = (matrix: Matrix): Matrix => {
    const norm = Math.hypot(...matrix.flat())
    let x = combined([1 / (norm + 1e-7)], [matrix])
    for (let step = 0; step < 5; step++) {
      const a = product(x, transposed(x))
      const b = combined([-4.775, 2.0315], [a, product(a, a)])
      x = combined([3.4445, 1], [x, product(b, x)])
    }
    return x
  }

  const parameters = layout({
    wide: { shape: [2, 3], init: zeros },
    bias: { shape: [2], init: zeros },
    tall: { shape: [3, 2], init: zeros },
  })
  const start = [1, -1, 0.5, 2, 0, 1, 0.3, -0.3, 1, 2, 3, 4, 5, 6]
  const slopes = [0, 1, 2].map((step) => start.map((_, at) => Math.sin(at * 3 + step * 2)))
  const rowsOf = (flat: ReadonlyArray<number>, at: number, columns: number): Matrix =>
    Array.from({ length: 6 / columns }, (_, row) => flat.slice(at + row * columns, at + (row + 1) * columns))

  it("equals the published algorithm, step by step, for wide and for tall matrices", () => {
    const [learningRate, weightDecay] = [0.1, 0.5]
    const published = (at: number, columns: number, nesterov: boolean): ReadonlyArray<Matrix> => {
      let theta = rowsOf(start, at, columns)
      let buffer = combined([0], [theta])
      return slopes.map((slope) => {
        const gradient = rowsOf(slope, at, columns)
        buffer = combined([0.95, 1], [buffer, gradient])
        const direction = nesterov ? combined([1, 0.95], [gradient, buffer]) : buffer
        const tall = direction.length > columns
        const step = tall ? transposed(newtonSchulz(transposed(direction))) : newtonSchulz(direction)
        theta = combined([1 - learningRate * weightDecay, -learningRate * 0.2 * Math.sqrt(3)], [theta, step])
        return theta
      })
    }
    for (const nesterov of [true, false]) {
      const steps = descend(muon({ layout: parameters, learningRate, weightDecay, nesterov }), start, slopes)
      close(
        steps.map((theta) => theta.slice(0, 6)),
        published(0, 3, nesterov).map((theta) => theta.flat()),
      )
      close(
        steps.map((theta) => theta.slice(8)),
        published(8, 2, nesterov).map((theta) => theta.flat()),
      )
    }
  })

  it("updates all that is no matrix by AdamW", () => {
    const options = { learningRate: 0.1, weightDecay: 0.5 }
    const other = { beta1: 0.8, beta2: 0.9, epsilon: 1e-3 }
    const steps = descend(muon({ layout: parameters, ...options, adam: other }), start, slopes)
    const bias = descend(
      adam({ size: 2, ...options, ...other }),
      start.slice(6, 8),
      slopes.map((slope) => slope.slice(6, 8)),
    )
    close(
      steps.map((theta) => theta.slice(6, 8)),
      bias,
    )
    // Without matrices it is AdamW.
    const none = muon({ layout: parameters, ...options, isMatrix: () => false })
    close(descend(none, start, slopes), descend(adam({ size: 14, ...options }), start, slopes))
  })

  it("treats each matrix of several with the same shape as if it were alone", () => {
    const shapes = { a: [2, 3], bias: [2], b: [2, 3], wide: [1, 4], c: [2, 3] }
    const all = layout(Record.map(shapes, (shape) => ({ shape, init: zeros })))
    const numbers = (seed: number) => Array.from({ length: all.size }, (_, at) => Math.sin(at * 2 + seed) * (at + 1))
    const [from, gradients] = [numbers(0), [numbers(1), numbers(2)]]
    const options = { learningRate: 0.1, weightDecay: 0.2 }
    const together = descend(muon({ layout: all, ...options }), from, gradients)
    let offset = 0
    for (const [name, shape] of Object.entries(shapes)) {
      const range = [offset, (offset += sizeOf(shape))] as const
      const alone = muon({ layout: layout({ [name]: { shape, init: zeros } }), ...options })
      close(
        together.map((theta) => theta.slice(...range)),
        descend(
          alone,
          from.slice(...range),
          gradients.map((gradient) => gradient.slice(...range)),
        ),
      )
    }
  })

  it("names its states", () => {
    const { moments } = muon({ layout: parameters, learningRate: 1 }).update(G.state("theta", [14]), G.input("g", [14]))
    assert.deepStrictEqual(
      Object.entries(moments).map(([name, { tensor }]) => [name, [...tensor.shape]]),
      [
        ["muon.momentum", [12]],
        ["muon.adam.first", [2]],
        ["muon.adam.second", [2]],
        ["muon.adam.steps", []],
      ],
    )
  })

  it("leaves zeros where the gradient has none: rows of an adapter that are not used", () => {
    const matrix = G.constant([1, 2, 0, 3, -1, 0, 0, 0, 0], [3, 3])
    const [found] = evaluate([orthogonalised(matrix)])
    for (const at of [2, 5, 6, 7, 8]) assert.strictEqual(found[at], 0)
  })

  it("refuses to orthogonalise what is no matrix", () => {
    const all = muon({ layout: parameters, learningRate: 1, isMatrix: () => true })
    assert.throws(
      () => all.update(G.state("theta", [14]), G.input("g", [14])),
      /^muon: parameter "bias": expected a matrix/,
    )
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
