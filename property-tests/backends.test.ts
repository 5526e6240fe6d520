import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as OnnxNode from "../src/tensor/backend/onnx-node.ts"
import * as Reference from "../src/tensor/backend/reference.ts"
import * as Wasm from "../src/tensor/backend/wasm.ts"
import { compileWith, firstDifference } from "./support/agreement.ts"
import { choices, grow } from "./support/randomGraph.ts"
import { tries } from "../test/house/tries.ts"

const targets = {
  wasm: { layer: Wasm.layer, bytes: true },
  "onnx-node on the CPU": { layer: OnnxNode.layerCpu(), bytes: false },
}

describe("any graph has the results, gradients and states of the reference on any backend, in every run", () => {
  for (const [name, { layer, bytes }] of Object.entries(targets)) {
    it(name, () => {
      fc.assert(
        fc.property(choices, (picked) => {
          const spec = grow(picked, { bytes })
          assert.isUndefined(firstDifference(compileWith(layer, spec), compileWith(Reference.layer, spec), spec))
        }),
        { numRuns: tries(200) },
      )
    })
  }
})
