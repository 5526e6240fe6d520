import { Effect, Layer } from "effect"
import { GraphError } from "../graph/GraphError.ts"
import type { ProgramSpec } from "../graph/Program.ts"
import { simplify } from "../graph/simplify.ts"
import { validate } from "../graph/validate.ts"
import { compile, type Place } from "../graph/wasm/compile.ts"
import { Backend, BackendError, BackendUnavailable, type Program, type TensorData } from "./Backend.ts"
import { instantiate, type ModuleCompiler, plainModules, viewOf } from "./wasmModules.ts"

/**
 * The backend that turns a graph into one WebAssembly SIMD module, wherever there is a WebAssembly engine: Node,
 * browsers, edge workers. Its arithmetic is strict, so a program gives the same bits on every machine. Feeds and
 * results are views of the module's own memory: nothing is copied on the way in or out, and a run costs one call.
 *
 * It is at its best where a session's cost per run or per node outweighs the arithmetic: acting with small batches,
 * and whole updates of small networks.
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

/** The same backend with another way to compile modules: Node's Layers widen them. */
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
  const found = (name: string): Effect.Effect<Float32Array, BackendError> => {
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
    read: (name) => Effect.map(found(name), (data) => data.slice()),
    write: (name, data) =>
      Effect.flatMap(found(name), (target) => {
        if (target.length !== data.length) {
          return Effect.fail(failure(`state "${name}" has ${target.length} elements, not ${data.length}`))
        }
        return Effect.sync(() => {
          target.set(data)
          stale = true
        })
      }),
  }
}
