/**
 * Measures a run of a small session in ONNX Runtime through its synchronous binding: the forward pass of actor and
 * critic (4 inputs, two hidden layers of 64 units with tanh, 2 and 1 outputs), with the weights in one flat state.
 */
import { Effect } from "effect"
import { Backend } from "../../src/tensor/backend/Backend.ts"
import * as OnnxNode from "../../src/tensor/backend/onnx-node.ts"
import { mlp } from "../../src/tensor/graph/layers.ts"
import { input, state } from "../../src/tensor/graph/ops.ts"
import { layout } from "../../src/tensor/graph/Parameters.ts"
import { stream } from "../../src/base/rng/Rng.ts"
import { defineBench } from "../Bench.ts"

const actor = mlp("actor", { sizes: [4, 64, 64, 2], activation: "tanh", outputGain: 0.01 })
const critic = mlp("critic", { sizes: [4, 64, 64, 1], activation: "tanh" })
const parameters = layout({ ...actor.parameters, ...critic.parameters })

const forward = (batch: number) =>
  Effect.gen(function* () {
    const theta = state("theta", [parameters.size])
    const weights = parameters.tensorsOf(theta)
    const observations = input("observations", [batch, 4])
    const program = yield* (yield* Backend).compile({
      name: `forward ${batch}`,
      inputs: { observations },
      state: { theta: { tensor: theta } },
      outputs: { logits: actor.apply(weights, observations), values: critic.apply(weights, observations) },
    })
    yield* program.write("theta", parameters.initialise(stream(1, "weights")))
    program.feeds.observations.forEach((_, index, feed) => (feed[index] = Math.sin(index)))
    return program
  })

export default defineBench({
  name: "ort-act",
  unit: "µs",
  higherIsBetter: false,
  about: "An actor's and critic's forward pass at batch 4, in ONNX Runtime; batches of 64 and 1,024 beside it",
  run: ({ time }) =>
    Effect.gen(function* () {
      const microseconds = (batch: number) =>
        Effect.map(forward(batch), (program) => time(() => program.runSync?.()).seconds * 1e6)
      return {
        value: yield* microseconds(4),
        details: { "batch 64 µs": yield* microseconds(64), "batch 1024 µs": yield* microseconds(1024) },
      }
    }).pipe(Effect.provide(OnnxNode.layerCpu()), Effect.scoped, Effect.runPromise),
})
