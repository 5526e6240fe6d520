/** Implements the backend `wasm`. `node.ts`, `web.ts` and users provide it; `auto.ts` chooses it for small graphs. */
import { Effect, Layer, Record } from "effect"
import { attempt } from "../config/attempt.ts"
import { GraphError } from "../graph/GraphError.ts"
import { changing, type ProgramSpec } from "../graph/Program.ts"
import { simplify } from "../graph/simplify.ts"
import { validateAll } from "../graph/validate.ts"
import { compileAll, type Place } from "../graph/wasm/compile.ts"
import {
  Backend,
  BackendUnavailable,
  compileOne,
  type GroupOptions,
  type Program,
  programOf,
  type TensorData,
} from "./Backend.ts"
import { instantiate, type ModuleCompiler, plainModules, viewOf } from "./wasmModules.ts"

/**
 * Provides the backend: it compiles a graph, or a group of graphs, to one WebAssembly module, for Node, browsers and edge workers. The
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
export const make = (modules: ModuleCompiler = plainModules): Backend["Service"] => {
  const compileAll: Backend["Service"]["compileAll"] = (specs, options) =>
    attempt(() => load(specs, options, modules), GraphError, BackendUnavailable)
  return { name: "wasm", compile: compileOne(compileAll), compileAll, warnings: Effect.sync(modules.warnings) }
}

/** Loads programs as one module with one memory, which holds their states once. */
const load = <Name extends string>(
  specs: Readonly<Record<Name, ProgramSpec>>,
  { sharedFeeds = [] }: GroupOptions = {},
  modules: ModuleCompiler,
): Readonly<Record<Name, Program>> => {
  validateAll(specs, sharedFeeds)
  const compiled = compileAll(Record.map(specs, simplify), { sharedFeeds, wide: modules.wide() })
  const { functions, memory } = instantiate(modules.module(compiled.bytes), compiled)
  const view = (place: Place): TensorData => viewOf(memory.buffer, place)
  const states = Record.map(compiled.state, ({ address, length }) => new Float32Array(memory.buffer, address, length))
  /** For each program, whether a state changed after its last `prepare`, whose values depend only on states. */
  const prepared: Record<string, { stale: boolean }> = Record.map(specs, () => ({ stale: true }))

  return Record.map(specs, (spec, name) => {
    const { feeds, results } = compiled.programs[name]
    const { prepare, run } = functions[name]
    const own = prepared[name]
    const replaced = changing(spec).map(([state]) => state)
    const affected = Object.entries<ProgramSpec>(specs).flatMap(([other, { state }]) =>
      other !== name && replaced.some((key) => state[key] !== undefined) ? [prepared[other]] : [],
    )
    let iterations = 1
    const runSync = (): void => {
      if (own.stale) {
        prepare()
        own.stale = false
      }
      iterations = run()
      for (const other of affected) other.stale = true
    }
    return programOf(spec, {
      device: "wasm",
      feeds: Record.map(feeds, view),
      results: Record.map(results, view),
      iterations: () => iterations,
      runSync,
      read: (state) => states[state].slice(),
      write: (state, data) => {
        states[state].set(data)
        for (const each of Object.values(prepared)) each.stale = true
      },
    })
  })
}
