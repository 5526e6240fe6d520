import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { Layer } from "effect"
import { Backend } from "../src/tensor/backend/Backend.ts"
import * as Wasm from "../src/tensor/backend/wasm.ts"
import { canWiden, widened } from "../src/tensor/backend/wide-node.ts"
import { gradients } from "../src/tensor/graph/gradients.ts"
import * as G from "../src/tensor/graph/ops.ts"
import type { ProgramSpec } from "../src/tensor/graph/Program.ts"
import type { Tensor } from "../src/tensor/graph/Tensor.ts"
import { compileWith, firstDifference, identical } from "./support/agreement.ts"
import { checkEveryOp } from "./support/everyOp.ts"
import { choices, grow } from "./support/randomGraph.ts"
import { tries } from "../test/house/tries.ts"

const wide = Layer.succeed(Backend, Wasm.make({ module: widened, lanes: () => 8 as const, warnings: () => [] }))

const assertSameBits = (spec: ProgramSpec): void =>
  assert.isUndefined(firstDifference(compileWith(wide, spec), compileWith(Wasm.layer, spec), spec, identical))

const size = fc.integer({ min: 1, max: 70 })

describe.skipIf(!canWiden())("kernels widened to 256 bits compute the same bits", () => {
  it("of any graph, for results, gradients and states, in every run", () => {
    fc.assert(
      fc.property(choices, (picked) => assertSameBits(grow(picked, { bytes: true }))),
      { numRuns: tries(50) },
    )
  })

  it("of every op and its gradients, in any size", () => {
    checkEveryOp([35, 35], 3, assertSameBits)
  })

  it("of a layer forward and backward, of any widths and batch", () => {
    const activations: Readonly<Record<string, (x: Tensor) => Tensor>> = { relu: G.relu, tanh: G.tanh, silu: G.silu }
    fc.assert(
      fc.property(size, size, size, fc.constantFrom("relu", "tanh", "silu"), (batch, from, to, activation) => {
        const x = G.input("x", [batch, from])
        const w = G.state("w", [from, to])
        const b = G.state("b", [to])
        const y = activations[activation](G.add(G.matmul(x, w), b))
        const [slopeX, slopeW, slopeB] = gradients(G.sum(G.logSoftmax(y)), [x, w, b])
        const state = {
          w: { tensor: w, next: G.sub(w, G.mul(slopeW, 0.01)) },
          b: { tensor: b, next: G.sub(b, G.mul(slopeB, 0.01)) },
        }
        const outputs = { y, slopeX, largest: G.max(y, 0), sum: G.sum(y, 1) }
        assertSameBits({ name: "layer", inputs: { x }, state, outputs })
      }),
      { numRuns: tries(30) },
    )
  })
})
