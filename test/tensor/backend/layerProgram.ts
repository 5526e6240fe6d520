import { gradients } from "../../../src/tensor/graph/gradients.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import type { ProgramSpec } from "../../../src/tensor/graph/Program.ts"

/** A layer with its gradients, of `rows` samples, whose weights change in each run or minibatch. */
export const layerProgram = (rows: number, from: number, to: number): ProgramSpec => {
  const x = G.input("x", [rows, from])
  const w = G.state("w", [from, to])
  const y = G.tanh(G.matmul(x, w))
  const [slope] = gradients(G.mean(G.square(G.sub(y, G.sin(y)))), [w])
  return {
    name: "layer",
    inputs: { x },
    state: { w: { tensor: w, next: G.sub(w, G.mul(slope, 30)) } },
    outputs: { sum: G.sum(y, 0) },
  }
}
