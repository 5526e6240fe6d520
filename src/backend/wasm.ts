import { Effect, Layer } from "effect"
import { GraphError } from "../graph/GraphError.ts"
import type { ProgramSpec } from "../graph/Program.ts"
import { simplify } from "../graph/simplify.ts"
import { validate } from "../graph/validate.ts"
import { compile, type Place } from "../graph/wasm/compile.ts"
import { Backend, BackendError, BackendUnavailable, type Program, type TensorData } from "./Backend.ts"
import { instantiate, type ModuleCompiler, plainModules, viewOf } from "./wasmModules.ts"

/**
 * The backend that compiles a graph to one WebAssembly SIMD module. It runs in Node, browsers and edge workers. Its
 * arithmetic is strict, so a program gives the same bits on every machine. Feeds and results are views of the module's
 * memory: nothing is copied, and a run is one call.
 *
 * It is the fastest backend for small graphs, where calling a session of ONNX Runtime takes longer than the arithmetic:
 * acting with small batches, and whole updates of small networks.
 *
 * @example
 * ```ts
 * const program = yield* compile(spec) // Backend, provided by Wasm.layer
 * program.feeds["x"].set(observations)
 * program.runSync?.()
 * const actions = program.results["actions"]
 * ```
 */
export const layer: Layer.Layer<Backend> = Layer.suspend(() => Layer.succeed(Backend, make()))

/** Makes the backend with a given module compiler. The Layers for Node use one that compiles to wider vectors. */
export const make = (modules: ModuleCompiler = plainModules): Backend["Service"] => ({
  name: "wasm",
  compile: (spec) =>
    Effect.suspend(() => {
      try {
        return Effect.succeed(load(spec, modules))
      } catch (error) {
        const expected = error instanceof GraphError || error instanceof BackendUnavailable
        return expected ? Effect.fail(error) : Effect.die(error)
      }
    }),
  warnings: Effect.sync(modules.warnings),
})

const load = (spec: ProgramSpec, modules: ModuleCompiler): Program => {
  validate(spec)
  const compiled = compile(simplify(spec))
  const { memory, prepare, run } = instantiate(modules.module(compiled.bytes))
  const views = (places: Readonly<Record<string, Place>>): Readonly<Record<string, TensorData>> =>
    Object.fromEntries(Object.entries(places).map(([name, place]) => [name, viewOf(memory.buffer, place)]))
  const state = new Map(
    Object.entries(compiled.state).map(([name, { address, length }]) => [
      name,
      new Float32Array(memory.buffer, address, length),
    ]),
  )

  let iterations = 1
  let stale = true
  const runSync = (): void => {
    if (stale) {
      prepare()
      stale = false
    }
    iterations = run()
  }

  const failure = (message: string) => new BackendError({ backend: "wasm", program: spec.name, message })
  const stateOf = (name: string): Effect.Effect<Float32Array, BackendError> => {
    const data = state.get(name)
    return data === undefined ? Effect.fail(failure(`there is no state "${name}"`)) : Effect.succeed(data)
  }
  return {
    name: spec.name,
    device: "wasm",
    feeds: views(compiled.feeds),
    results: views(compiled.results),
    iterations: () => iterations,
    run: Effect.sync(runSync),
    runSync,
    read: (name) => Effect.map(stateOf(name), (data) => data.slice()),
    write: (name, data) =>
      Effect.flatMap(stateOf(name), (target) => {
        if (target.length !== data.length) {
          return Effect.fail(failure(`state "${name}": expected ${target.length} numbers, found ${data.length}`))
        }
        return Effect.sync(() => {
          target.set(data)
          stale = true
        })
      }),
  }
}
