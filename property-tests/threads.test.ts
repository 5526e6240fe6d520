import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { Effect, Layer } from "effect"
import { Backend } from "../src/tensor/backend/Backend.ts"
import * as Wasm from "../src/tensor/backend/wasm.ts"
import { plainModules } from "../src/tensor/backend/wasmModules.ts"
import { canWiden, widened } from "../src/tensor/backend/wide-node.ts"
import * as G from "../src/tensor/graph/ops.ts"
import type { ProgramSpec } from "../src/tensor/graph/Program.ts"
import { compileWith, firstDifference, identical } from "./support/agreement.ts"
import { checkEveryOp } from "./support/everyOp.ts"
import { choices, grow } from "./support/randomGraph.ts"
import { tries } from "../test/house/tries.ts"

const wide = { module: widened, lanes: () => 8 as const, warnings: () => [] }

/**
 * A backend that divides all that can be divided, among this many threads. No helper comes, so this thread computes all
 * slices, one after another.
 */
const dividing = (count: number, modules = plainModules) =>
  Layer.succeed(Backend, Wasm.make(modules, { count, start: () => Effect.void, worth: { slice: 1e-6, run: 0 } }))

const backends = [dividing(2), dividing(4), ...(canWiden() ? [dividing(2, wide)] : [])]

const assertSameBits = (spec: ProgramSpec): void => {
  const one = compileWith(Wasm.layer, spec)
  for (const several of backends) assert.isUndefined(firstDifference(compileWith(several, spec), one, spec, identical))
}

describe("a program whose groups are divided computes the bits of one that is not", () => {
  it("for any graph, its results, gradients and states, in every run", () => {
    fc.assert(
      fc.property(choices, (picked) => assertSameBits(grow(picked, { bytes: true }))),
      { numRuns: tries(30) },
    )
  })

  it("for every op and its gradients, in any size", { tags: "slow" }, () => {
    checkEveryOp([70, 70], 2, assertSameBits)
  })

  it("for products of any shape, along any axis, with long sums in parts and in blocks", { tags: "slow" }, () => {
    const size = fc.oneof(fc.integer({ min: 1, max: 90 }), fc.constantFrom(128, 144, 288))
    const inner = fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 120, max: 400 }))
    fc.assert(
      fc.property(size, inner, size, fc.boolean(), fc.boolean(), (m, k, n, transposeA, transposeB) => {
        const a = G.input("a", transposeA ? [k, m] : [m, k])
        const b = G.input("b", transposeB ? [n, k] : [k, n])
        const y = G.tanh(G.matmul(a, b, { transposeA, transposeB }))
        assertSameBits({ name: "product", inputs: { a, b }, state: {}, outputs: { y } })
      }),
      { numRuns: tries(40) },
    )
  })
})
