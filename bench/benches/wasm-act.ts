/**
 * Measures the forward pass of actor and critic on the wasm backend, for several batch sizes. Both networks have 4 inputs
 * and two hidden layers of 64 units with tanh; the actor has 2 outputs, and the critic 1.
 */
import { Effect } from "effect"
import { Backend, type Program } from "../../src/tensor/backend/Backend.ts"
import { mlp } from "../../src/tensor/graph/layers.ts"
import { input, state } from "../../src/tensor/graph/ops.ts"
import { layout } from "../../src/tensor/graph/Parameters.ts"
import { stream } from "../../src/base/rng/Rng.ts"
import { backend } from "../../src/node.ts"
import { defineBench } from "../Bench.ts"

const actor = mlp("actor", { sizes: [4, 64, 64, 2], activation: "tanh" })
const critic = mlp("critic", { sizes: [4, 64, 64, 1], activation: "tanh" })
const parameters = layout({ ...actor.parameters, ...critic.parameters })
const multiplyAddsARow = 2 * (4 * 64 + 64 * 64) + 64 * 3

const compile = (batch: number): Effect.Effect<Program> =>
  Effect.gen(function* () {
    const theta = state("theta", [parameters.size])
    const weights = parameters.tensorsOf(theta)
    const x = input("x", [batch, 4])
    const backend = yield* Backend
    const program = yield* backend.compile({
      name: `act ${batch}`,
      inputs: { x },
      state: { theta: { tensor: theta } },
      outputs: { logits: actor.apply(weights, x), values: critic.apply(weights, x) },
    })
    yield* program.write("theta", parameters.initialise(stream(1, "bench", "wasm-act")))
    program.feeds.x.forEach((_, i, feed) => (feed[i] = Math.sin(i)))
    return program
  }).pipe(Effect.scoped, Effect.provide(backend("wasm")), Effect.orDie)

export default defineBench({
  name: "wasm-act",
  unit: "µs",
  higherIsBetter: false,
  about: "Actor and critic 4-64-64-{2,1} forward at batch 4, compiled to WebAssembly",
  run: async ({ time }) => {
    const microseconds = async (batch: number): Promise<number> => {
      const program = await Effect.runPromise(compile(batch))
      return time(() => program.runSync?.()).seconds * 1e6
    }
    const [four, sixtyFour, thousand] = [await microseconds(4), await microseconds(64), await microseconds(1024)]
    return {
      value: four,
      details: {
        "batch 64, µs": sixtyFour,
        "batch 1024, µs": thousand,
        "billion multiply-adds/s at 1024": (multiplyAddsARow * 1024) / thousand / 1000,
      },
    }
  },
})
