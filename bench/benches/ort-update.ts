/**
 * Measures PPO's whole update of a minibatch in ONNX Runtime, for several minibatch sizes, with sixteen updates per
 * call, and counts the nodes of each graph.
 */
import { Effect } from "effect"
import { Backend, CartPole, Ppo } from "effect-rl"
import * as OnnxNode from "../../src/tensor/backend/onnx-node.ts"
import { emit } from "../../src/tensor/graph/onnx/emit.ts"
import { indicesFeed, type ProgramSpec } from "../../src/tensor/graph/Program.ts"
import { simplify } from "../../src/tensor/graph/simplify.ts"
import { defineBench } from "../Bench.ts"
import { learnerOf } from "../../src/rl/learner/learnerOf.ts"

/** Compiles PPO's update for minibatches of this size, and fills its inputs with random numbers. */
const update = (batch: number) =>
  Effect.gen(function* () {
    const inner = yield* Backend
    const specs: Array<ProgramSpec> = []
    const remembering = { ...inner, compile: (spec: ProgramSpec) => (specs.push(spec), inner.compile(spec)) }
    const algorithm = yield* Ppo.make().configure({}, { source: "bench" })
    const task = { ...CartPole.env, numEnvs: batch / 32, totalSteps: 1_000_000, seed: 1 }
    yield* learnerOf(algorithm, task).pipe(Effect.provideService(Backend, remembering))
    const spec = specs.find(({ name }) => name === "ppo.update")
    if (spec?.minibatches === undefined) return yield* Effect.die("PPO compiles no update of minibatches")
    const { rows, count } = spec.minibatches
    const program = yield* inner.compile(spec)
    for (const [name, feed] of Object.entries(program.feeds))
      feed.forEach(
        (_, at) => (feed[at] = name === indicesFeed ? (at * 37) % rows : name === "actions" ? at % 2 : Math.sin(at)),
      )
    return { run: () => program.runSync?.(), count, nodes: emit(simplify(spec)).nodeCount }
  })

export default defineBench({
  name: "ort-update",
  unit: "µs",
  higherIsBetter: false,
  about: "One PPO minibatch of 128 in ONNX Runtime, whole; of 64, 256 and 1,024 beside it",
  run: ({ time }) =>
    Effect.gen(function* () {
      const measured = (batch: number) =>
        Effect.map(update(batch), ({ run, count, nodes }) => ({ nodes, value: (time(run).seconds / count) * 1e6 }))
      const { value, nodes } = yield* measured(128)
      const details: Record<string, number> = { nodes }
      for (const batch of [64, 256, 1024]) details[`batch ${batch} µs`] = (yield* measured(batch)).value
      return { value, details }
    }).pipe(Effect.provide(OnnxNode.layerCpu()), Effect.scoped, Effect.runPromise),
})
