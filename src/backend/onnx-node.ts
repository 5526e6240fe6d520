import { createRequire } from "node:module"
import { existsSync } from "node:fs"
import { dirname, join } from "node:path"
import { Effect, Layer, type Scope } from "effect"
import type { Tensor as OrtTensor } from "onnxruntime-common"
import { GraphError } from "../graph/GraphError.ts"
import { changing, emit, iterationsOutput, resultOutput, stateInput, stateOutput } from "../graph/onnx/emit.ts"
import type { ProgramSpec } from "../graph/Program.ts"
import { simplify } from "../graph/simplify.ts"
import { feedShapes, resultShapes, validate } from "../graph/validate.ts"
import { Backend, BackendError, BackendUnavailable, type Program, type TensorData } from "./Backend.ts"
import { dataFor } from "./data.ts"

/**
 * The backend over ONNX Runtime for Node: a session a program, on the CPU, CUDA or WebGPU.
 *
 * It talks to the runtime's own binding, which is synchronous, rather than to the package's wrapper, which does the
 * same work inside a `setImmediate`.
 */
export type Device = "cpu" | "cuda" | "webgpu"

export interface Options {
  /** Threads within an op. One by default: more help only large batches, and one gives the same bits every time. */
  readonly threads?: number
}

export const layerCpu = (options?: Options): Layer.Layer<Backend, BackendUnavailable> =>
  Layer.effect(Backend, make("cpu", options))
export const layerCuda = (options?: Options): Layer.Layer<Backend, BackendUnavailable> =>
  Layer.effect(Backend, make("cuda", options))
export const layerWebGpu = (options?: Options): Layer.Layer<Backend, BackendUnavailable> =>
  Layer.effect(Backend, make("webgpu", options))

/** The service itself, for who picks between several. */
export const make = (
  device: Device,
  options: Options = {},
): Effect.Effect<Backend["Service"], BackendUnavailable, Scope.Scope> =>
  Effect.gen(function* () {
    const runtime = yield* loadRuntime
    if (device === "cuda") yield* requireCuda
    const open = (spec: ProgramSpec) =>
      Effect.suspend((): Effect.Effect<Opened, GraphError | BackendUnavailable> => {
        try {
          return Effect.succeed(load(runtime, device, options, spec))
        } catch (error) {
          if (error instanceof GraphError) return Effect.fail(error)
          const message = error instanceof Error ? error.message : String(error)
          return device === "cpu"
            ? Effect.fail(
                new GraphError({
                  op: "program",
                  message: `${spec.name}: ONNX Runtime refuses it: ${message}`,
                  shapes: [],
                  where: "",
                }),
              )
            : Effect.fail(unavailable(device, message))
        }
      })
    return {
      name: device,
      compile: (spec) =>
        Effect.map(
          Effect.acquireRelease(open(spec), ({ dispose }) => Effect.sync(dispose)),
          ({ program }) => program,
        ),
    }
  })

const remedies: Readonly<Record<Device, string>> = {
  cpu: "Install it: npm install onnxruntime-node",
  cuda:
    "It needs an NVIDIA GPU with CUDA 12 and cuDNN 9, and the provider library, which the package's own script fetches: " +
    "ONNXRUNTIME_NODE_INSTALL=cuda12 node node_modules/onnxruntime-node/script/install.js",
  webgpu: "It needs a GPU that Vulkan, Metal or Direct3D 12 can drive, and its driver",
}

const unavailable = (device: Device, missing: string): BackendUnavailable =>
  new BackendUnavailable({ backend: device, missing: reasonOf(missing), remedy: `${remedies[device]}.` })

/** The last sentence of what the runtime says; before it stand its own file names. */
const reasonOf = (text: string): string =>
  (
    text
      .split("\n")[0]
      .split(/(?<=[.a-z]) (?=Failed to )/)
      .at(-1) ?? text
  ).replace(/\.$/, "")

interface Session {
  loadModel(buffer: ArrayBuffer, byteOffset: number, byteLength: number, options: object): void
  run(feeds: Record<string, OrtTensor>, fetches: Record<string, null>, options: object): Record<string, OrtTensor>
  dispose(): void
}

interface Runtime {
  readonly Session: new () => Session
  readonly Tensor: typeof OrtTensor
}

const require = createRequire(import.meta.url)

const loadRuntime: Effect.Effect<Runtime, BackendUnavailable> = Effect.try({
  try: (): Runtime => {
    const native: typeof import("onnxruntime-node/dist/binding.js") = require("onnxruntime-node/dist/binding.js")
    const common: typeof import("onnxruntime-common") = require("onnxruntime-common")
    common.env.logLevel = "error"
    native.initOrt()
    return { Session: native.binding.InferenceSession, Tensor: common.Tensor }
  },
  catch: (error) =>
    unavailable("cpu", `ONNX Runtime does not load: ${error instanceof Error ? error.message : String(error)}`),
})

/** Where the runtime would look for it; a session without it dies with less to say. */
const requireCuda: Effect.Effect<void, BackendUnavailable> = Effect.suspend(() => {
  const folder = join(
    dirname(require.resolve("onnxruntime-node/package.json")),
    "bin/napi-v6",
    process.platform,
    process.arch,
  )
  const library = process.platform === "win32" ? "onnxruntime_providers_cuda.dll" : "libonnxruntime_providers_cuda.so"
  return existsSync(join(folder, library))
    ? Effect.void
    : Effect.fail(unavailable("cuda", `the package has no ${library}`))
})

interface Opened {
  readonly program: Program
  readonly dispose: () => void
}

const load = (runtime: Runtime, device: Device, { threads = 1 }: Options, spec: ProgramSpec): Opened => {
  validate(spec)
  const bytes = new Uint8Array(emit(simplify(spec)).bytes)
  const session = new runtime.Session()
  session.loadModel(bytes.buffer, bytes.byteOffset, bytes.byteLength, {
    executionProviders: [device],
    graphOptimizationLevel: "all",
    executionMode: "sequential",
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    logSeverityLevel: 3,
    extra: { session: { intra_op: { allow_spinning: threads > 1 ? "1" : "0" }, set_denormal_as_zero: "0" } },
  })
  const tensorOver = (data: TensorData, shape: ReadonlyArray<number>): OrtTensor =>
    data instanceof Float32Array
      ? new runtime.Tensor("float32", data, shape)
      : data instanceof Int32Array
        ? new runtime.Tensor("int32", data, shape)
        : new runtime.Tensor("bool", data, shape)

  const feeds: Record<string, TensorData> = {}
  const bound: Record<string, OrtTensor> = {}
  for (const [name, entry] of Object.entries(feedShapes(spec))) {
    feeds[name] = dataFor(entry)
    bound[name] = tensorOver(feeds[name], entry.shape)
  }
  for (const [name, { tensor }] of Object.entries(spec.state))
    bound[stateInput(name)] = tensorOver(dataFor(tensor), tensor.shape)
  const results = Object.fromEntries(Object.entries(resultShapes(spec)).map(([name, entry]) => [name, dataFor(entry)]))
  const states = changing(spec).map(([name]) => ({ from: stateOutput(name), to: stateInput(name) }))
  const outputs = Object.keys(results).map((name) => ({ from: resultOutput(name), data: results[name] }))
  const loops = spec.minibatches !== undefined
  const fetches: Record<string, null> = loops ? { [iterationsOutput]: null } : {}
  for (const { from } of [...states, ...outputs]) fetches[from] = null
  let iterations = 1

  const runSync = (): void => {
    try {
      const given = session.run(bound, fetches, {})
      // What comes out is what goes in next: no copy.
      for (const { from, to } of states) bound[to] = given[from]
      for (const { from, data } of outputs) copyInto(given[from].data, data)
      if (loops) iterations = given[iterationsOutput].size
    } catch (error) {
      throw new BackendError({
        backend: device,
        program: spec.name,
        message: error instanceof Error ? error.message : String(error),
      })
    }
  }

  const stateTensor = (
    name: string,
  ): Effect.Effect<{ readonly key: string; readonly shape: ReadonlyArray<number> }, BackendError> => {
    const entry = spec.state[name]
    return entry === undefined
      ? Effect.fail(new BackendError({ backend: device, program: spec.name, message: `there is no state "${name}"` }))
      : Effect.succeed({ key: stateInput(name), shape: entry.tensor.shape })
  }

  const program: Program = {
    name: spec.name,
    device,
    feeds,
    results,
    iterations: () => iterations,
    run: Effect.try({
      try: runSync,
      catch: (error) =>
        error instanceof BackendError
          ? error
          : new BackendError({ backend: device, program: spec.name, message: String(error) }),
    }),
    runSync,
    read: (name) =>
      Effect.map(stateTensor(name), ({ key }) => {
        const { data } = bound[key]
        return data instanceof Float32Array ? data.slice() : new Float32Array(0)
      }),
    write: (name, data) =>
      Effect.map(stateTensor(name), ({ key, shape }) => {
        bound[key] = tensorOver(data.slice(), shape)
      }),
  }
  return { program, dispose: () => session.dispose() }
}

const copyInto = (from: OrtTensor["data"], to: TensorData): void => {
  if (from instanceof Float32Array || from instanceof Int32Array || from instanceof Uint8Array) to.set(from)
}
