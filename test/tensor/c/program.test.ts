import { assert, describe, it } from "vitest"
import { programInC } from "../../../src/tensor/c/program.ts"
import * as G from "../../../src/tensor/graph/ops.ts"

const names = { prefix: "p_", inputs: { x: "x" }, outputs: { y: "y" } }

describe("a program in C", () => {
  it("is refused if its inputs or its memory are too large, or if it has states", () => {
    const x = G.input("x", [2 ** 20 + 1])
    const large = { name: "large", inputs: { x }, state: {}, outputs: { y: G.max(x) } }
    assert.throws(() => programInC(large, names), "expected at most 1048576 numbers in inputs, found 1048577")
    const column = G.input("x", [2 ** 12, 1])
    const table = G.mul(column, G.constant(new Float32Array(2 ** 11).fill(2), [2 ** 11]))
    const wide = { name: "wide", inputs: { x: column }, state: {}, outputs: { y: table } }
    assert.throws(() => programInC(wide, names), "expected at most 4194304 numbers in memory, found 8388608")
    const w = G.state("w", [4])
    const state = { w: { tensor: w } }
    const trained = { name: "trained", inputs: {}, state, outputs: { y: G.exp(w) } }
    assert.throws(() => programInC(trained, names), "trained has states; expected a program without")
  })
})
