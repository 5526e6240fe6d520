/**
 * Measures matrix products on the wasm backend, one in a program, for layers of small networks: forward (x · w), the
 * gradient of the layer's input (dy · wᵀ) and that of its weights (xᵀ · dy).
 */
import { Effect } from "effect"
import { Backend, type Program } from "../../src/tensor/backend/Backend.ts"
import * as G from "../../src/tensor/graph/ops.ts"
import type { Tensor } from "../../src/tensor/graph/Tensor.ts"
import { backend } from "../../src/node.ts"
import { chosenBackend } from "../chosenBackend.ts"
import { defineBench } from "../Bench.ts"

const program = (y: Tensor, inputs: Readonly<Record<string, Tensor>>): Effect.Effect<Program> =>
  Effect.gen(function* () {
    const compiled = yield* (yield* Backend).compile({ name: "product", inputs, state: {}, outputs: { y } })
    for (const key of Object.keys(inputs)) compiled.feeds[key].forEach((_, i, feed) => (feed[i] = Math.sin(i)))
    return compiled
  }).pipe(Effect.scoped, Effect.provide(backend(chosenBackend("wasm"))), Effect.orDie)

/** Makes the programs of one layer: `rows` samples, from `from` to `to` units. */
const programsOf = (rows: number, from: number, to: number): Readonly<Record<string, Effect.Effect<Program>>> => {
  const x = G.input("x", [rows, from])
  const w = G.input("w", [from, to])
  const dy = G.input("dy", [rows, to])
  const bias = G.input("bias", [to])
  return {
    forward: program(G.matmul(x, w), { x, w }),
    "forward with tanh": program(G.tanh(G.add(G.matmul(x, w), bias)), { x, w, bias }),
    "to the input": program(G.matmul(dy, w, { transposeB: true }), { dy, w }),
    "to the weights": program(G.matmul(x, dy, { transposeA: true }), { x, dy }),
  }
}

const shapes = [
  [128, 64, 64],
  [4, 64, 64],
  [100, 64, 64],
  [128, 4, 64],
  [128, 64, 2],
  [8192, 64, 64],
  [256, 256, 256],
] as const

export default defineBench({
  name: "wasm-products",
  unit: "GFLOP/s",
  higherIsBetter: true,
  about: "The product of a layer from 64 to 64 units with 128 samples, compiled to WebAssembly; and other products",
  run: async ({ time }) => {
    const speeds: Array<readonly [string, number]> = []
    for (const [rows, from, to] of shapes) {
      for (const [name, made] of Object.entries(programsOf(rows, from, to))) {
        const { runSync } = await Effect.runPromise(made)
        const { best } = time(() => runSync?.(), { minimumSeconds: 0.3 })
        speeds.push([`${rows}x${from}x${to} ${name}`, (2e-9 * rows * from * to) / best])
      }
    }
    const [[, value], ...others] = speeds
    return { value, details: Object.fromEntries(others) }
  },
})
