/** Implements the backend `wasm`. `node.ts`, `web.ts` and users provide it; `auto.ts` chooses it for small graphs. */
import { Effect, Layer, Record } from "effect"
import { attempt } from "../config/attempt.ts"
import { GraphError } from "../graph/GraphError.ts"
import type { ProgramSpec } from "../graph/Program.ts"
import { simplify } from "../graph/simplify.ts"
import { validate } from "../graph/validate.ts"
import { compile, type Place } from "../graph/wasm/compile.ts"
import { Backend, BackendUnavailable, type Program, programOf, type TensorData } from "./Backend.ts"
import { instantiate, type ModuleCompiler, plainModules, viewOf } from "./wasmModules.ts"

/**
 * Provides the backend: it compiles a graph to one WebAssembly module, for Node, browsers and edge workers. The
 * order of its operations and their rounding are fixed, so a program gives the same bits on every machine. Feeds and
 * results are views of the module's memory: nothing is copied, and a run is one call.
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

/** Makes the backend from a compiler of modules. `node.ts` passes that of `wide-node.ts`, which uses wider vectors. */
export const make = (modules: ModuleCompiler = plainModules): Backend["Service"] => ({
  name: "wasm",
  compile: (spec) => attempt(() => load(spec, modules), GraphError, BackendUnavailable),
  warnings: Effect.sync(modules.warnings),
})

const load = (spec: ProgramSpec, modules: ModuleCompiler): Program => {
  validate(spec)
  const compiled = compile(simplify(spec))
  const { memory, prepare, run } = instantiate(modules.module(compiled.bytes))
  const view = (place: Place): TensorData => viewOf(memory.buffer, place)
  const states = Record.map(compiled.state, ({ address, length }) => new Float32Array(memory.buffer, address, length))

  let iterations = 1
  /** Whether a state was written after the last `prepare`, which computes the values that depend only on states. */
  let stale = true
  const runSync = (): void => {
    if (stale) {
      prepare()
      stale = false
    }
    iterations = run()
  }

  return programOf(spec, {
    device: "wasm",
    feeds: Record.map(compiled.feeds, view),
    results: Record.map(compiled.results, view),
    iterations: () => iterations,
    runSync,
    read: (name) => states[name].slice(),
    write: (name, data) => {
      states[name].set(data)
      stale = true
    },
  })
}
