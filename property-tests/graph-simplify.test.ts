import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as OnnxNode from "../src/tensor/backend/onnx-node.ts"
import * as Reference from "../src/tensor/backend/reference.ts"
import * as Wasm from "../src/tensor/backend/wasm.ts"
import { evaluate } from "../src/tensor/graph/evaluate.ts"
import * as G from "../src/tensor/graph/ops.ts"
import { countOps, simplify } from "../src/tensor/graph/simplify.ts"
import type { Tensor } from "../src/tensor/graph/Tensor.ts"
import { compileWith, firstDifference } from "./support/agreement.ts"
import { choices, grow } from "./support/randomGraph.ts"
import { tries } from "../test/house/tries.ts"

const targets = { reference: Reference.layer, wasm: Wasm.layer, "onnx-node on the CPU": OnnxNode.layerCpu() }

describe("a simplified graph has the same results on any backend", () => {
  for (const [name, layer] of Object.entries(targets)) {
    it(name, () => {
      fc.assert(
        fc.property(choices, (picked) => {
          const spec = grow(picked)
          const simple = compileWith(layer, simplify(spec))
          assert.isUndefined(firstDifference(simple, compileWith(Reference.layer, spec), spec))
        }),
        { numRuns: tries(150) },
      )
    })
  }
})

describe("simplifying", () => {
  it("never increases the number of ops", () => {
    fc.assert(
      fc.property(choices, (picked) => {
        const spec = grow(picked)
        assert.isAtMost(countOps(simplify(spec)), countOps(spec))
      }),
    )
  })

  it("does not change a graph that is already simplified", () => {
    fc.assert(
      fc.property(choices, (picked) => {
        const simple = simplify(grow(picked))
        assert.strictEqual(countOps(simplify(simple)), countOps(simple))
      }),
    )
  })

  it("gives the same result for the same graph built again", () => {
    fc.assert(
      fc.property(choices, (picked) => {
        const [one, other] = [simplify(grow(picked)), simplify(grow(picked))]
        assert.strictEqual(textOf(one), textOf(other))
      }),
    )
  })
})

const leaf = G.input("x", [2, 3])
const flags = G.greater(leaf, 0.5)

/** Ways to write what could be written shorter, each from a tensor of six numbers, another one and a choice. */
const detours: ReadonlyArray<(x: Tensor, y: Tensor, n: number) => Tensor> = [
  (x, _, n) => G.add(x, n % 3),
  (x, _, n) => G.add(n % 2, x),
  (x, _, n) => G.mul(x, [0, 1, -1, 2, 0.5][n % 5]),
  (x, _, n) => G.div(x, [1, -1, 2, 4][n % 4]),
  (x) => G.neg(x),
  (x) => G.abs(x),
  (x) => G.relu(x),
  (x) => G.pow(x, 2),
  (x, y) => G.sub(x, y),
  (x, y) => G.add(y, G.neg(x)),
  (x, y) => G.mul(G.tanh(x), G.tanh(y)),
  (x, y) => G.maximum(x, y),
  (x, _, n) => G.clip(x, -(n % 5), 3),
  (x, y, n) => G.where(n % 2 === 0 ? flags : G.not(flags), x, y),
  (x, y) => G.mul(x, G.cast(G.not(G.equal(x, y)), "f32")),
  (x) => G.transpose(G.transpose(x)),
  (x) => G.reshape(G.transpose(G.reshape(x, [1, 6])), [2, 3]),
  (x) => G.reshape(G.reshape(x, [3, 2]), [2, 3]),
  (x, y) => G.matmul(G.transpose(x), y),
  (x, _, n) => G.broadcastTo(G.sum(x, n % 2, { keepDims: true }), x.shape),
  (x, _, n) => G.mul(x, G.broadcastTo(G.mean(x, n % 2, { keepDims: true }), x.shape)),
  (x) => G.sub(x, G.broadcastTo(G.max(x), x.shape)),
  (x) => G.broadcastTo(G.sum(G.broadcastTo(G.sum(x, 0), [2, 3])), [2, 3]),
  (x) => G.broadcastTo(G.sum(G.sum(x, 0)), [2, 3]),
  (x, y) => G.slice(G.concat([x, y]), [0, 0], x.shape),
  (x, y) => G.slice(G.concat([x, y], 1), [0, 3], y.shape),
  (x) => G.slice(G.pad(x, [1, 0], [0, 1]), [1, 0], x.shape),
  (x) => G.slice(G.pad(x, [1, 0], [0, 1]), [0, 1], x.shape),
  (x) => G.concat(G.split(x, [1, 1, 1], 1), 1),
  (x) => G.concat(G.split(x, [1, 2], 1).toReversed(), 1),
  (x) => G.stopGradient(G.cumSum(x, 1)),
  (x) => G.add(G.broadcastTo(G.reshape(G.slice(x, [0, 0], [1, 3]), [3]), [2, 3]), G.constant(1, [2, 3])),
]

const detour = (steps: ReadonlyArray<readonly [number, number, number]>): Tensor => {
  const pool: Array<Tensor> = [leaf]
  for (const [op, other, n] of steps) {
    const x = pool[pool.length - 1 - (other % Math.min(2, pool.length))]
    const y = pool[other % pool.length]
    const made = detours[op % detours.length](x, y, n)
    pool.push(made.shape.join() === "2,3" ? made : G.slice(made, [0, 0], [2, 3]))
  }
  return pool[pool.length - 1]
}

describe("a graph written in a roundabout way", () => {
  const steps = fc.array(fc.tuple(fc.nat(1000), fc.nat(20), fc.nat(20)), { minLength: 1, maxLength: 12 })
  const numbers = fc.array(fc.constantFrom(-2, -0.75, 0.25, 0.5, 1, 3, Infinity, -Infinity, NaN), {
    minLength: 6,
    maxLength: 6,
  })

  it("becomes shorter with the same results, infinities and NaNs included", () => {
    fc.assert(
      fc.property(steps, numbers, (picked, values) => {
        const y = detour(picked)
        const spec = { name: "detour", inputs: { x: leaf }, state: {}, outputs: { y } }
        const lean = simplify(spec)
        assert.isAtMost(countOps(lean), countOps(spec))
        const [before, after] = evaluate([y, lean.outputs.y], new Map([[leaf, values]]))
        before.forEach((value, at) => {
          const same = Object.is(value, after[at]) || value === after[at]
          const near =
            Math.abs(value - after[at]) <=
            1e-6 * Math.max(1, ...before.map((one) => (Number.isFinite(one) ? Math.abs(one) : 0)))
          assert.isTrue(same || near, `element ${at} was ${value}, is ${after[at]}`)
        })
      }),
      { numRuns: tries(3000) },
    )
  })
})

/** A graph without its ids, which count on from graph to graph. */
function textOf(spec: ReturnType<typeof grow>): string {
  const names = new Map<unknown, number>()
  return JSON.stringify(spec, (key, value) => {
    if (key === "id") return undefined
    if (typeof value === "object" && value !== null && "op" in value) {
      const known = names.get(value)
      if (known !== undefined) return `#${known}`
      names.set(value, names.size)
    }
    return value
  })
}
