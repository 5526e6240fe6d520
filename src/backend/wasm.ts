import { Effect, Layer } from "effect"
import { messageOf } from "../config/text.ts"
import { GraphError } from "../graph/GraphError.ts"
import type { ProgramSpec } from "../graph/Program.ts"
import { simplify } from "../graph/simplify.ts"
import { validate } from "../graph/validate.ts"
import { compile, type Place } from "../graph/wasm/compile.ts"
import { Backend, BackendError, BackendUnavailable, type Program, type TensorData } from "./Backend.ts"

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
export const layer: Layer.Layer<Backend> = Layer.succeed(Backend, {
  name: "wasm",
  compile: (spec) =>
    Effect.suspend(() => {
      try {
        return Effect.succeed(load(spec))
      } catch (error) {
        const expected = error instanceof GraphError || error instanceof BackendUnavailable
        return expected ? Effect.fail(error) : Effect.die(error)
      }
    }),
})

/** As much of the engine's interface as is used: TypeScript declares it only together with the browser's. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array<ArrayBuffer>) => object
  readonly Instance: new (module: object, imports: object) => { readonly exports: unknown }
  readonly validate: (bytes: Uint8Array<ArrayBuffer>) => boolean
}

/** What `compile` exports: see there. */
interface Exports {
  readonly memory: { readonly buffer: ArrayBuffer }
  readonly prepare: () => void
  readonly run: () => number
}

const isExports = (value: unknown): value is Exports =>
  typeof value === "object" && value !== null && "memory" in value && "prepare" in value && "run" in value

const instantiate = (bytes: Uint8Array<ArrayBuffer>): Exports => {
  if (typeof WebAssembly === "undefined" || !WebAssembly.validate(bytes)) {
    throw new BackendUnavailable({
      backend: "wasm",
      missing:
        typeof WebAssembly === "undefined" ? "this engine has no WebAssembly" : "this engine has no WebAssembly SIMD",
      remedy: "Every current browser and Node since 16.4 has both; or choose another backend.",
    })
  }
  const { exports } = new WebAssembly.Instance(compiled(bytes), {})
  if (!isExports(exports)) throw new Error("the module lacks its exports")
  return exports
}

/** Some engines only run modules that were deployed with the program: edge workers, and pages by their policy. */
const compiled = (bytes: Uint8Array<ArrayBuffer>): object => {
  try {
    return new WebAssembly.Module(bytes)
  } catch (error) {
    throw new BackendUnavailable({
      backend: "wasm",
      missing: `this engine compiles no WebAssembly at run time (${messageOf(error)})`,
      remedy:
        "In an edge worker, provide Reference.layer, which needs none and is slower; " +
        "in a page, allow 'wasm-unsafe-eval' in its Content-Security-Policy.",
    })
  }
}

const load = (spec: ProgramSpec): Program => {
  validate(spec)
  const compiled = compile(simplify(spec))
  const { memory, prepare, run } = instantiate(compiled.bytes)
  const view = ({ dtype, address, length }: Place): TensorData =>
    dtype === "f32"
      ? new Float32Array(memory.buffer, address, length)
      : dtype === "i32"
        ? new Int32Array(memory.buffer, address, length)
        : new Uint8Array(memory.buffer, address, length)
  const views = (places: Readonly<Record<string, Place>>): Readonly<Record<string, TensorData>> =>
    Object.fromEntries(Object.entries(places).map(([name, place]) => [name, view(place)]))
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
