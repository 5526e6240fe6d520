import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { Effect, Layer } from "effect"
import { Backend } from "../src/tensor/backend/Backend.ts"
import * as Wasm from "../src/tensor/backend/wasm.ts"
import { plainModules } from "../src/tensor/backend/wasmModules.ts"
import { canWiden, widened } from "../src/tensor/backend/wide-node.ts"
import { gradients } from "../src/tensor/graph/gradients.ts"
import * as G from "../src/tensor/graph/ops.ts"
import type { ProgramSpec } from "../src/tensor/graph/Program.ts"
import { simplify } from "../src/tensor/graph/simplify.ts"
import type { Tensor } from "../src/tensor/graph/Tensor.ts"
import { stagesOf } from "../src/tensor/graph/wasm/bands.ts"
import { fuse } from "../src/tensor/graph/wasm/fuse.ts"
import { lower } from "../src/tensor/graph/wasm/lower.ts"
import { tries } from "../test/house/tries.ts"
import { compileWith, firstDifference, identical } from "./support/agreement.ts"
import { checkEveryOp } from "./support/everyOp.ts"
import { growRows } from "./support/rowGraph.ts"

const wide = { module: widened, lanes: () => 8 as const, warnings: () => [] }

/** A backend that computes all that can be computed in bands of 16 rows so, and all else as usual. */
const banded = (count: number, modules = plainModules) => {
  const threads = { count, start: () => Effect.void, worth: { slice: 1e-6, run: 0 } }
  return Layer.succeed(
    Backend,
    Wasm.make(modules, count > 1 ? threads : undefined, { worth: 0, band: 1, rows: 16, weights: Infinity }),
  )
}

const smallest = { worth: 0, band: 1, rows: 16, weights: Infinity }

const runsInBands = (spec: ProgramSpec): boolean => {
  const nodes = lower(simplify(spec))
  const groups = fuse(nodes).filter(({ phase }) => phase === 2)
  const gathered = (spec.minibatches?.gathered ?? []).flatMap((name) => nodes.inputs.get(name) ?? [])
  return stagesOf(nodes, groups, new Set(gathered), smallest).some(({ bands }) => bands !== undefined)
}

const backends = [banded(1), banded(3), ...(canWiden() ? [banded(1, wide), banded(2, wide)] : [])]

const assertSameBits = (spec: ProgramSpec): void => {
  const whole = compileWith(Wasm.layer, spec)
  for (const bands of backends) assert.isUndefined(firstDifference(compileWith(bands, spec), whole, spec, identical))
}

describe("a program that runs in bands of rows computes the bits of one that does not", () => {
  it("for any graph over rows, its results, gradients and states, in every run", () => {
    let all = 0
    let inBands = 0
    const width = fc.oneof(fc.integer({ min: 1, max: 20 }), fc.constantFrom(2, 4, 48, 64))
    const property = fc.property(
      fc.array(fc.tuple(fc.nat(1000), fc.nat(9), fc.nat(9)), { minLength: 10, maxLength: 30 }),
      fc.constantFrom(32, 33, 48, 49, 64, 97),
      fc.tuple(width, width),
      fc.boolean(),
      (picked, rows, sizes, minibatches) => {
        const spec = growRows(picked, rows, sizes, minibatches)
        all++
        if (runsInBands(spec)) inBands++
        assertSameBits(spec)
      },
    )
    fc.assert(property, { numRuns: tries(90) })
    assert.isAbove(inBands, all / 3)
  })

  it("for every op and its gradients, in any size", { tags: "slow" }, () => {
    checkEveryOp([120, 40], 2, assertSameBits)
  })

  const activations: Readonly<Record<string, (x: Tensor) => Tensor>> = { relu: G.relu, tanh: G.tanh, silu: G.silu }
  const size = fc.integer({ min: 1, max: 70 })

  it("for updates of two networks by minibatches of any size, with and without a limit of the gradients", () => {
    const property = fc.property(
      // Some batches leave a band of one row.
      fc.oneof(fc.integer({ min: 32, max: 333 }), fc.constantFrom(33, 49, 129)),
      size,
      size,
      fc.constantFrom("relu", "tanh", "silu"),
      fc.boolean(),
      (batch, from, hidden, activation, limited) => {
        const x = G.input("x", [batch, from])
        const label = G.input("label", [batch])
        const weight = G.input("weight", [batch])
        const sizes = { w1: [from, hidden], b1: [hidden], w2: [hidden, 5], v1: [from, hidden], v2: [hidden, 1] }
        const states = Object.entries(sizes).map(([name, shape]) => [name, G.state(name, shape)] as const)
        const [w1, b1, w2, v1, v2] = states.map(([, tensor]) => tensor)
        const act = activations[activation]
        const logits = G.logSoftmax(G.matmul(act(G.add(G.matmul(x, w1), b1)), w2))
        const chosen = G.sum(G.mul(logits, G.oneHot(G.cast(label, "i32"), 5)), 1)
        // Depends on all rows before the networks run in bands.
        const relative = G.sub(weight, G.mean(weight))
        const value = G.reshape(G.matmul(act(G.matmul(x, v1)), v2), [batch])
        const loss = G.add(G.neg(G.mean(G.mul(chosen, relative))), G.mean(G.square(G.sub(value, weight))))
        const slopes = gradients(
          loss,
          states.map(([, tensor]) => tensor),
        )
        const norm = G.sqrt(slopes.map((slope) => G.sum(G.square(slope))).reduce((a, b) => G.add(a, b)))
        const scale = limited ? G.div(0.01, G.add(norm, 1)) : G.constant(0.01)
        const state = Object.fromEntries(
          states.map(([name, tensor], i) => [name, { tensor, next: G.sub(tensor, G.mul(slopes[i], scale)) }]),
        )
        const gathered = ["x", "label", "weight"]
        const minibatches = { rows: 2 * batch, batch, count: 3, gathered }
        assertSameBits({ name: "updates", inputs: { x, label, weight }, state, outputs: { loss, norm }, minibatches })
      },
    )
    fc.assert(property, { numRuns: tries(15) })
  })

  it("if a minibatch is read as more or fewer rows than it has", () => {
    for (const [batch, width, rows] of [
      [64, 6, 128],
      [128, 3, 64],
      [64, 8, 256],
    ]) {
      const x = G.input("x", [batch, width])
      const inner = (batch * width) / rows
      const w = G.state("w", [inner, 50])
      const y = G.tanh(G.matmul(G.reshape(x, [rows, inner]), w))
      const outputs = { z: G.sum(G.exp(G.sum(y, 1))) }
      const minibatches = { rows: 2 * batch, batch, count: 2, gathered: ["x"] }
      const state = { w: { tensor: w, next: G.mul(w, 0.5) } }
      assertSameBits({ name: "reshaped", inputs: { x }, state, outputs, minibatches })
    }
  })
})
