import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import * as OnnxNode from "../src/tensor/backend/onnx-node.ts"
import * as Reference from "../src/tensor/backend/reference.ts"
import * as Wasm from "../src/tensor/backend/wasm.ts"
import { evaluate } from "../src/tensor/graph/evaluate.ts"
import { gradients } from "../src/tensor/graph/gradients.ts"
import * as G from "../src/tensor/graph/ops.ts"
import { sizeOf, type Tensor } from "../src/tensor/graph/Tensor.ts"
import { agree, compileWith } from "./support/agreement.ts"
import { type OpCase, opCases } from "./support/opCases.ts"
import { choices, grow } from "./support/randomGraph.ts"
import { tries } from "../test/house/tries.ts"

interface Built {
  readonly spec: Parameters<typeof compileWith>[1]
  readonly inputs: ReadonlyArray<Tensor>
}

/** The op's value, and the slope of a weighted sum of it, as outputs. */
const build = ({ shapes, build: apply, noSlope = false }: OpCase, m: number, n: number): Built => {
  const inputs = shapes(m, n).map((shape, index) => G.input(`x${index}`, shape))
  const value = apply(...inputs)
  const weights = G.constant(
    Float32Array.from({ length: sizeOf(value.shape) }, (_, i) => ((i * 5) % 7) / 4 - 0.75),
    value.shape,
  )
  const loss = G.sum(G.mul(value, weights))
  const slopes = noSlope ? [] : gradients(loss, inputs)
  return {
    inputs,
    spec: {
      name: "case",
      inputs: Object.fromEntries(inputs.map((x, index) => [`x${index}`, x])),
      state: {},
      outputs: { value, loss, ...Object.fromEntries(slopes.map((slope, index) => [`slope${index}`, slope])) },
    },
  }
}

const sizes = fc.record({ m: fc.integer({ min: 1, max: 5 }), n: fc.integer({ min: 1, max: 5 }), seed: fc.nat(1000) })

const valuesFor = ({ low = -2, high = 2 }: OpCase, length: number, seed: number): Float32Array =>
  Float32Array.from({ length }, (_, i) => {
    const steps = (high - low) * 16 - 1
    return low + (1 + ((i * 37 + seed * 101 + ((i * i) % 11)) % steps)) / 16
  })

/** Central differences of fourth order, in doubles: they are right to about 1e-10 of the values' size. */
const difference = (lossAt: (offset: number) => number): number => {
  const h = 1e-3
  return (8 * (lossAt(h) - lossAt(-h)) - (lossAt(2 * h) - lossAt(-2 * h))) / (12 * h)
}

/** The first element whose slope isn't that of its differences. */
const wrongSlope = (
  loss: Tensor,
  inputs: ReadonlyArray<Tensor>,
  leaves: ReadonlyMap<Tensor, Float64Array>,
): string | undefined => {
  const slopes = evaluate(gradients(loss, inputs), leaves)
  for (const [index, x] of inputs.entries()) {
    const values = leaves.get(x) ?? new Float64Array(0)
    for (let at = 0; at < values.length; at++) {
      const moved = (offset: number): number => {
        const nearby = Float64Array.from(values)
        nearby[at] += offset
        return evaluate([loss], new Map([...leaves, [x, nearby]]))[0][0]
      }
      const [found, expected] = [slopes[index][at], difference(moved)]
      if (!(Math.abs(found - expected) <= 1e-7 * Math.max(1, Math.abs(expected), Math.abs(moved(0)))))
        return `input ${index}, element ${at}: ${found}, differences say ${expected}`
    }
  }
  return undefined
}

const ownCases: Readonly<Record<string, OpCase>> = {
  huber: { shapes: (m, n) => [[m, n]], build: (x) => G.huber(x, 0.72) },
  "pow, by a scalar": { shapes: (m, n) => [[m, n], []], build: (x, y) => G.pow(x, y), low: 0.5, high: 2 },
  "where, all stretched": {
    shapes: (m, n) => [[m, 1], [n]],
    build: (a, b) => G.where(G.constant(Uint8Array.of(1, 0), [2, 1, 1]), a, b),
  },
  "matmul, leading axes stretched on both sides": {
    shapes: (m, n) => [
      [2, 1, m, 3],
      [2, 3, n],
    ],
    build: (a, b) => G.matmul(a, b),
  },
  "matmul, transposed and stretched": {
    shapes: (m, n) => [
      [3, m],
      [2, 2, n, 3],
    ],
    build: (a, b) => G.matmul(a, b, { transposeA: true, transposeB: true }),
  },
  "mean over two axes, kept": { shapes: (m, n) => [[m, 2, n]], build: (x) => G.mean(x, [0, 2], { keepDims: true }) },
  "min over the first axis, kept": {
    shapes: (m, n) => [[m, n]],
    build: (x) => G.min(G.mul(x, G.constant(-40)), 0, { keepDims: true }),
  },
  "slices that overlap": {
    shapes: (_, n) => [[n + 2]],
    build: (x) => G.mul(G.slice(x, [0], [x.shape[0] - 1]), G.slice(x, [1], [x.shape[0] - 1])),
  },
  "slices that leave a gap": {
    shapes: (m, n) => [[m, n + 3]],
    build: (x) =>
      G.concat(
        [G.tanh(G.slice(x, [0, 1], [x.shape[0], 1])), G.sin(G.slice(x, [0, x.shape[1] - 1], [x.shape[0], 1]))],
        1,
      ),
  },
  "slices of two axes": {
    shapes: (m, n) => [[m + 1, n + 1]],
    build: (x) => G.mul(G.slice(x, [1, 0], [1, 1]), G.slice(x, [0, 1], [1, 1])),
  },
  "gather, twice the same row": {
    shapes: (_, n) => [[n, 2]],
    build: (x) => G.tanh(G.gather(x, G.constant(Int32Array.of(0, 0, x.shape[0] - 1, 0), [2, 2]))),
  },
  "a convolution's slope for its input": {
    shapes: (m, n) => [
      [1, 2, m + 2, n + 2],
      [2, 2, 2, 3],
    ],
    build: (x, w) => gradients(G.sum(G.tanh(G.conv2d(x, w, { strides: [2, 1], padding: 1 }))), [x])[0],
  },
  "a convolution's slope for its kernel": {
    shapes: (m, n) => [
      [2, 1, m + 2, n + 2],
      [2, 1, 2, 2],
    ],
    build: (x, w) => gradients(G.sum(G.tanh(G.conv2d(x, w, { strides: 2, padding: [0, 1, 1, 0] }))), [w])[0],
  },
}

describe("the gradient of every op agrees with finite differences", () => {
  const cases = { ...opCases, ...ownCases }
  for (const [name, opCase] of Object.entries(cases).filter(
    ([key, { noSlope }]) => key in ownCases || noSlope !== true,
  )) {
    it(name, () => {
      fc.assert(
        fc.property(sizes, ({ m, n, seed }) => {
          const { spec, inputs } = build(opCase, m, n)
          const leaves = new Map(
            inputs.map((x, index) => [x, Float64Array.from(valuesFor(opCase, sizeOf(x.shape), seed + index))]),
          )
          assert.isUndefined(wrongSlope(spec.outputs.loss, inputs, leaves))
        }),
        { numRuns: tries(12) },
      )
    })
  }
})

/** A graph whose condition changes sides within a millionth of the point that the seed 877 gives. */
const atAJump: Array<[number, number, number]> = [
  [0, 0, 0],
  [907, 9, 11],
  [0, 0, 0],
]

describe("the gradients of any graph", () => {
  it("agree with finite differences, along a line through all its inputs", () => {
    fc.assert(
      fc.property(choices, fc.nat(1000), (picked, seed) => {
        const { inputs, state, outputs } = grow(picked)
        const starts = [...Object.values(inputs), ...Object.values(state).map(({ tensor }) => tensor)]
        const values = (x: Tensor, of: number) =>
          Float64Array.from({ length: sizeOf(x.shape) }, (_, i) => Math.sin(of + i * 1.7))
        const slopes = evaluate(
          gradients(outputs.loss, starts),
          new Map(starts.map((x, index) => [x, values(x, seed + index)])),
        )
        const along = starts.reduce(
          (total, x, index) => values(x, index * 3).reduce((sum, step, i) => sum + step * slopes[index][i], total),
          0,
        )
        const lossAt = (offset: number): number => {
          const at = starts.map((x, index) => {
            const step = values(x, index * 3)
            return [x, values(x, seed + index).map((value, i) => value + offset * step[i])] as const
          })
          return evaluate([outputs.loss], new Map(at))[0][0]
        }
        // A kink or a jump can lie on one side of the point; the slope is then that of the other side.
        const h = 1e-6
        const oneSided = (step: number) => (4 * lossAt(step) - lossAt(2 * step) - 3 * lossAt(0)) / (2 * step)
        const wrong = [(lossAt(h) - lossAt(-h)) / (2 * h), oneSided(h), oneSided(-h)].map(
          (expected) => Math.abs(along - expected) / Math.max(1, Math.abs(expected)),
        )
        assert.isBelow(Math.min(...wrong), 1e-5)
      }),
      { numRuns: tries(200), examples: [[atAJump, 877]] },
    )
  })
})

const targets = { wasm: Wasm.layer, "onnx-node on the CPU": OnnxNode.layerCpu() }

for (const [backend, layer] of Object.entries(targets)) {
  describe(`every op and its gradient on ${backend} agrees with the reference`, () => {
    for (const [name, opCase] of Object.entries(opCases)) {
      it(name, () => {
        fc.assert(
          fc.property(sizes, ({ m, n, seed }) => {
            const { spec, inputs } = build(opCase, m, n)
            const [program, reference] = [compileWith(layer, spec), compileWith(Reference.layer, spec)]
            for (const one of [program, reference]) {
              inputs.forEach((x, index) => one.feeds[`x${index}`].set(valuesFor(opCase, sizeOf(x.shape), seed + index)))
              one.runSync?.()
            }
            for (const output of Object.keys(spec.outputs)) {
              const wrong = agree(program.results[output], reference.results[output])
              assert.isUndefined(wrong, `${output}: ${wrong}`)
            }
          }),
          { numRuns: tries(15) },
        )
      })
    }
  })
}

describe("gradients", () => {
  it("of tensors that the loss does not depend on are zero", () => {
    const [x, y] = [G.input("x", [2]), G.input("y", [3])]
    const [, slope] = gradients(G.sum(x), [x, y])
    assert.deepStrictEqual(slope.shape, [3])
    assert.strictEqual(slope.op.kind, "constant")
  })

  it("do not pass stopGradient", () => {
    const x = G.input("x", [1])
    const [slope] = gradients(G.sum(G.mul(x, G.stopGradient(x))), [x])
    const program = compileWith(Reference.layer, { name: "stop", inputs: { x }, state: {}, outputs: { slope } })
    program.feeds.x[0] = 3
    Effect.runSync(program.run)
    assert.strictEqual(program.results.slope[0], 3)
  })

  it("need a scalar loss", () => {
    const x = G.input("x", [2])
    assert.throws(() => gradients(x, [x]), /gradients: the loss must be a scalar \(given \[2\]\)/)
  })
})
