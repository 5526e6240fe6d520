/** The functions that a page runs on WebGPU. `webgpuInBrowser.slow.test.ts` bundles this file. */
import { Effect, type Layer, Record } from "effect"
import { Backend, type BackendUnavailable, compileOne, type Program } from "../../../src/tensor/backend/Backend.ts"
import * as OnnxWeb from "../../../src/tensor/backend/onnx-web.ts"
import * as Reference from "../../../src/tensor/backend/reference.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import * as Train from "../../../src/rl/train/Train.ts"
import * as Web from "../../../src/web.ts"
import { type Differences, shadowing } from "./shadow.ts"

/** The parts of `onnxruntime-web/webgpu` that the page uses. */
interface Ort extends OnnxWeb.WebRuntime {
  readonly env: OnnxWeb.WebRuntime["env"] & { readonly webgpu: { readonly device: PromiseLike<{ destroy(): void }> } }
}

/** Returns the functions that the test calls in the page. */
export const functionsOf = (ort: Ort) => {
  const webgpu = OnnxWeb.layer(ort, { provider: "webgpu" })
  const run = <A, E>(effect: Effect.Effect<A, E>): Promise<A | string> =>
    Effect.runPromise(Effect.catch(effect, (error) => Effect.succeed(String(error))))
  const train = (config: unknown, backend: Backend["Service"]) =>
    Train.fromConfig(config).pipe(Effect.provideService(Backend, backend), Effect.provide(Web.layer))

  return {
    /** Trains, and returns the number of steps and the digest. */
    train: (config: unknown) =>
      run(
        Effect.gen(function* () {
          const { digest, steps } = yield* train(config, yield* service(webgpu))
          return { digest, steps }
        }),
      ),
    /** Trains, and returns by how much each run of each program differs from the reference. */
    compare: (config: unknown) =>
      run(
        Effect.gen(function* () {
          const differences: Differences = {}
          const backend = shadowing(yield* service(webgpu), yield* service(Reference.layer), differences)
          const { steps } = yield* train(config, backend)
          return { steps, differences }
        }),
      ),
    /** Trains, and loses the device before the run of a program with this number. Returns the error. */
    lose: (config: unknown, at: number) =>
      run(
        Effect.gen(function* () {
          const backend = yield* service(webgpu)
          let runs = 0
          const loseDevice = Effect.promise(async () => (await ort.env.webgpu.device).destroy())
          const losing = (program: Program): Program => ({
            ...program,
            run: Effect.suspend(() => (++runs === at ? loseDevice : Effect.void)).pipe(Effect.andThen(program.run)),
          })
          const compileAll: Backend["Service"]["compileAll"] = (specs, options) =>
            Effect.map(backend.compileAll(specs, options), Record.map(losing))
          return yield* train(config, { name: backend.name, compile: compileOne(compileAll), compileAll })
        }),
      ),
    /** Runs a program with a matrix of n × n numbers, which is too large for the device. Returns the error. */
    fill: (n: number) =>
      run(
        Effect.gen(function* () {
          const x = G.input("x", [n, 1])
          const matrix = G.add(x, G.reshape(x, [1, n]))
          const y = G.sum(G.mul(G.tanh(matrix), G.cos(matrix)))
          const { compile } = yield* service(webgpu)
          const program = yield* compile({ name: "large", inputs: { x }, state: {}, outputs: { y } })
          yield* program.run
          return program.results.y[0]
        }).pipe(Effect.scoped),
      ),
  }
}

const service = (
  layer: Layer.Layer<Backend, BackendUnavailable>,
): Effect.Effect<Backend["Service"], BackendUnavailable> =>
  Effect.provide(
    Effect.gen(function* () {
      return yield* Backend
    }),
    layer,
  )
