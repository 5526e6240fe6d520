import { Effect } from "effect"
import { Backend, CartPole, Ppo } from "effect-rl"
import { backend, type BackendName } from "effect-rl/node"
import type { ProgramSpec } from "../../src/tensor/graph/Program.ts"
import { defineBench } from "../Bench.ts"
import { learnerOf } from "../../src/rl/learner/learnerOf.ts"

/** Compiles PPO's update with CleanRL's settings for CartPole, and fills its inputs with random numbers. */
const compiled = (name: BackendName) =>
  Effect.gen(function* () {
    const inner = yield* Backend
    const specs: Array<ProgramSpec> = []
    const remembering = { ...inner, compile: (spec: ProgramSpec) => (specs.push(spec), inner.compile(spec)) }
    const algorithm = yield* Ppo.make().configure({}, { source: "bench" })
    const task = { ...CartPole.env, numEnvs: 4, totalSteps: 1_000_000, seed: 1 }
    yield* learnerOf(algorithm, task).pipe(Effect.provideService(Backend, remembering))
    const spec = specs.find((one) => one.name === "ppo.update")
    if (spec === undefined) return yield* Effect.die("PPO compiles no update")
    const program = yield* inner.compile(spec)
    for (const feed of Object.values(program.feeds)) {
      if (feed instanceof Float32Array) for (let at = 0; at < feed.length; at++) feed[at] = Math.sin(at)
      else for (let at = 0; at < feed.length; at++) feed[at] = feed.length > 512 ? at % 512 : at % 2
    }
    return { program, count: spec.minibatches?.count ?? 1 }
  }).pipe(Effect.provide(backend(name)))

export default defineBench({
  name: "ppo-update-128",
  unit: "µs",
  higherIsBetter: false,
  about:
    "One PPO minibatch of 128: forward, loss, backward, clipping and Adam, 4-64-64 actor and critic, as compiled WebAssembly",
  run: ({ ratio }) =>
    Effect.gen(function* () {
      const [wasm, session] = [yield* compiled("wasm"), yield* compiled("cpu")]
      const measured = ratio(
        () => wasm.program.runSync?.(),
        () => session.program.runSync?.(),
        { minimumSeconds: 3 },
      )
      return {
        value: (measured.a.seconds / wasm.count) * 1e6,
        details: {
          "ONNX Runtime µs": (measured.b.seconds / session.count) * 1e6,
          "times ONNX Runtime": measured.ratio,
        },
      }
    }).pipe(Effect.scoped, Effect.runPromise),
})
