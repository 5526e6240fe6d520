/** Run by `webgpu.slow.test.ts` in a process of its own: trains on WebGPU and on the CPU, and prints what each gave. */
import { Effect, Layer } from "effect"
import * as Ppo from "../../../src/rl/algorithms/rollouts/Ppo.ts"
import { Backend } from "../../../src/tensor/backend/Backend.ts"
import * as OnnxNode from "../../../src/tensor/backend/onnx-node.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import { Recorder } from "../../../src/run/record/Recorder.ts"
import { RunStore } from "../../../src/run/store/RunStore.ts"
import * as Train from "../../../src/rl/train/Train.ts"

/** Two programs that share a state, which one replaces and both read. */
const shared = Effect.gen(function* () {
  const [x, s] = [G.input("x", [3]), G.state("s", [3])]
  const { compileAll } = yield* Backend
  const { count, look } = yield* compileAll({
    count: { name: "count", inputs: { x }, state: { s: { tensor: s, next: G.add(s, x) } }, outputs: {} },
    look: { name: "look", inputs: {}, state: { s: { tensor: s } }, outputs: { doubled: G.mul(s, 2) } },
  })
  count.feeds.x.set([1, 2, 3])
  yield* look.write("s", Float32Array.of(10, 20, 30))
  for (let run = 0; run < 3; run++) yield* count.run
  yield* look.run
  const values = { read: [...(yield* count.read("s"))], doubled: [...look.results.doubled] }
  yield* count.write("s", new Float32Array(3))
  yield* count.run
  return { ...values, again: [...(yield* look.read("s"))] }
}).pipe(Effect.scoped)

const algorithm = Ppo.make({ rollouts: "graph", hidden: [4, 4], nsteps: 8, epochs: 1, minibatches: 2 })
const trained = Effect.gen(function* () {
  const store = RunStore.memory()
  const layers = Layer.mergeAll(store.layer, Recorder.layerSilent)
  const { episodes, meanReturn, steps } = yield* Train.run({
    env: CartPole.env,
    numEnvs: 8,
    algorithm,
    totalSteps: 128,
  }).pipe(Effect.provide(layers))
  return { episodes, meanReturn, steps }
})

const on = (layer: ReturnType<typeof OnnxNode.layerCpu>) => Effect.all({ shared, trained }).pipe(Effect.provide(layer))

const { cpu, webgpu } = await Effect.runPromise(
  Effect.all({ cpu: on(OnnxNode.layerCpu()), webgpu: on(OnnxNode.layerWebGpu()) }),
)
console.log(JSON.stringify({ cpu, webgpu }))
