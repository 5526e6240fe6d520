import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as OnnxNode from "../src/backend/onnx-node.ts"
import * as Reference from "../src/backend/reference.ts"
import * as Wasm from "../src/backend/wasm.ts"
import { countOps, simplify } from "../src/graph/simplify.ts"
import { compileWith, firstDifference } from "./support/agreement.ts"
import { choices, grow } from "./support/randomGraph.ts"

const targets = { reference: Reference.layer, wasm: Wasm.layer, "onnx-node on the CPU": OnnxNode.layerCpu() }

describe("a simplified graph gives what the graph gives, on any backend", () => {
  for (const [name, layer] of Object.entries(targets)) {
    it(name, () => {
      fc.assert(
        fc.property(choices, (picked) => {
          const spec = grow(picked)
          const simple = compileWith(layer, simplify(spec))
          assert.isUndefined(firstDifference(simple, compileWith(Reference.layer, spec), spec))
        }),
        { numRuns: 150 },
      )
    })
  }
})

describe("simplifying", () => {
  it("never makes more ops of a graph", () => {
    fc.assert(
      fc.property(choices, (picked) => {
        const spec = grow(picked)
        assert.isAtMost(countOps(simplify(spec)), countOps(spec))
      }),
    )
  })

  it("changes nothing of what is simplified already", () => {
    fc.assert(
      fc.property(choices, (picked) => {
        const simple = simplify(grow(picked))
        assert.strictEqual(countOps(simplify(simple)), countOps(simple))
      }),
    )
  })

  it("gives the same for the same graph, built again", () => {
    fc.assert(
      fc.property(choices, (picked) => {
        const [one, other] = [simplify(grow(picked)), simplify(grow(picked))]
        assert.strictEqual(textOf(one), textOf(other))
      }),
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
