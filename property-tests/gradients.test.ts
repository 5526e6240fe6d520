import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import * as OnnxNode from "../src/backend/onnx-node.ts"
import * as Reference from "../src/backend/reference.ts"
import * as Wasm from "../src/backend/wasm.ts"
import { gradients } from "../src/graph/gradients.ts"
import * as G from "../src/graph/ops.ts"
import { sizeOf, type Tensor } from "../src/graph/Tensor.ts"
import { agree, compileWith } from "./support/agreement.ts"
import { type OpCase, opCases } from "./support/opCases.ts"

/** Inputs are multiples of 1/16 and the step is a power of two, so that float32 holds both sides exactly. */
const step = 2 ** -7

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

describe("the slope of every op is that of its finite differences", () => {
  for (const [name, opCase] of Object.entries(opCases).filter(([, { noSlope }]) => noSlope !== true)) {
    it(name, () => {
      fc.assert(
        fc.property(sizes, ({ m, n, seed }) => {
          const { spec, inputs } = build(opCase, m, n)
          const program = compileWith(Reference.layer, spec)
          inputs.forEach((x, index) => program.feeds[`x${index}`].set(valuesFor(opCase, sizeOf(x.shape), seed + index)))
          program.runSync?.()
          const slopes = inputs.map((_, index) => program.results[`slope${index}`].slice())
          inputs.forEach((_, index) => {
            const feed = program.feeds[`x${index}`]
            for (let at = 0; at < feed.length; at++) {
              const kept = feed[at]
              const lossAt = (value: number): number => {
                feed[at] = value
                program.runSync?.()
                return program.results.loss[0]
              }
              const [low, high, near, far] = [kept - step, kept + step, kept - 2 * step, kept + 2 * step].map(lossAt)
              feed[at] = kept
              // Fourth order, so that curvature does not blur it.
              const difference = (8 * (high - low) - (far - near)) / (12 * step)
              const found = slopes[index][at]
              const scale = Math.max(1, Math.abs(found), Math.abs(program.results.loss[0]))
              assert.isBelow(
                Math.abs(found - difference),
                3e-3 * scale,
                `x${index}[${at}]: ${found}, differences say ${difference}`,
              )
            }
          })
        }),
        { numRuns: 12 },
      )
    })
  }
})

const targets = { wasm: Wasm.layer, "onnx-node on the CPU": OnnxNode.layerCpu() }

for (const [backend, layer] of Object.entries(targets)) {
  describe(`every op and its slope is on ${backend} what it is on the reference`, () => {
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
          { numRuns: 8 },
        )
      })
    }
  })
}

describe("gradients", () => {
  it("of what the loss does not see are zero", () => {
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

  it("want a scalar", () => {
    const x = G.input("x", [2])
    assert.throws(() => gradients(x, [x]), /gradients: the loss must be a scalar \(given \[2\]\)/)
  })
})
