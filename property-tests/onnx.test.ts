import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as OnnxNode from "../src/tensor/backend/onnx-node.ts"
import * as Reference from "../src/tensor/backend/reference.ts"
import { gradients } from "../src/tensor/graph/gradients.ts"
import * as G from "../src/tensor/graph/ops.ts"
import { indicesFeed, type ProgramSpec } from "../src/tensor/graph/Program.ts"
import { sizeOf, type Tensor } from "../src/tensor/graph/Tensor.ts"
import { compileWith, firstDifference } from "./support/agreement.ts"
import { opCases } from "./support/opCases.ts"
import { choices, grow } from "./support/randomGraph.ts"
import { tries } from "../test/house/tries.ts"

/** Describes the first difference between ONNX Runtime and the reference on the rows of these indices, if any. */
const difference = (spec: ProgramSpec, indices: ReadonlyArray<number>): string | undefined => {
  const programs = [compileWith(OnnxNode.layerCpu(), spec), compileWith(Reference.layer, spec)]
  for (const { feeds } of programs) feeds[indicesFeed].set(indices)
  const [one, reference] = programs
  return (
    firstDifference(one, reference, spec) ??
    (one.iterations() === reference.iterations() ? undefined : `${one.iterations()} iterations`)
  )
}

const batch = 6
const rows = 9
const shuffle = (count: number) => fc.array(fc.nat(rows - 1), { minLength: count * batch, maxLength: count * batch })

describe("minibatches in one model are the same program run once for each", () => {
  it("for any graph", () => {
    fc.assert(
      fc.property(
        choices,
        fc.integer({ min: 1, max: 4 }).chain((count) => fc.tuple(fc.constant(count), shuffle(count))),
        (picked, [count, indices]) => {
          const spec = grow(picked)
          const minibatches = { rows, batch, count, gathered: ["a", "c"] }
          assert.isUndefined(difference({ ...spec, minibatches }, indices))
        },
      ),
      { numRuns: tries(150) },
    )
  })

  it("for any graph, ended at any iteration", () => {
    const steps = G.state("steps", [])
    const next = G.add(steps, 1)
    fc.assert(
      fc.property(choices, shuffle(4), fc.integer({ min: 1, max: 6 }), (picked, indices, last) => {
        const spec = grow(picked)
        const minibatches = { rows, batch, count: 4, gathered: ["a", "c"], continueWhile: G.less(next, last) }
        const state = { ...spec.state, steps: { tensor: steps, next } }
        assert.isUndefined(difference({ ...spec, state, minibatches }, indices))
      }),
      { numRuns: tries(80) },
    )
  })
})

describe("an op has the same result before, in and after the loop", () => {
  for (const [name, { shapes, build, low = -2, high = 2 }] of Object.entries(opCases)) {
    it(name, () => {
      fc.assert(
        fc.property(fc.integer({ min: 2, max: 4 }), fc.integer({ min: 1, max: 4 }), fc.nat(97), (m, n, seed) => {
          const wanted = shapes(m, n)
          // Feeds and states lie between −1 and 1; the op takes them where it has neither kink nor pole.
          const placed = (x: Tensor) => G.add(G.mul(x, (high - low) / 2.2), (high + low) / 2)
          const stacked = wanted.map((shape, i) => G.input(`x${i}`, [1, ...shape]))
          const rowsOf = stacked.map((x, i) => placed(G.reshape(x, wanted[i])))
          const weights = wanted.map((shape, i) => G.state(`w${i}`, shape))
          const early = build(...rowsOf)
          const within = build(...weights.map(placed))
          const [slope] = gradients(G.sum(G.mul(within, 0.5)), [weights[0]])
          const spec: ProgramSpec = {
            name,
            inputs: Object.fromEntries(stacked.map((x, i) => [`x${i}`, x])),
            state: Object.fromEntries(
              weights.map((tensor, i) => [
                `w${i}`,
                { tensor, next: i === 0 ? G.tanh(G.add(G.mul(tensor, 0.9), G.mul(slope, 0.01))) : G.mul(tensor, 0.9) },
              ]),
            ),
            outputs: { early, within, mixed: G.sum(G.mul(G.tanh(early), within)) },
            minibatches: { rows: 3, batch: 1, count: 3, gathered: stacked.map((_, i) => `x${i}`) },
          }
          assert.isAbove(sizeOf(early.shape), 0)
          assert.isUndefined(difference(spec, [seed % 3, (seed + 1) % 3, (seed * 7) % 3]))
        }),
        { numRuns: tries(10) },
      )
    })
  }
})
