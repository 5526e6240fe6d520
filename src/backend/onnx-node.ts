/**
 * Implements the backends `cpu`, `cuda` and `webgpu` with ONNX Runtime for Node: each program becomes a session (a
 * model that ONNX Runtime has loaded). It loads the native package `onnxruntime-node`.
 *
 * It calls the synchronous binding of ONNX Runtime instead of the package's wrapper, which does the same work in a
 * `setImmediate` callback. For a policy that acts on four observations, this takes 28 µs instead of 34 µs.
 *
 * @example
 * ```ts
 * const program = yield* compile(spec) // Backend, provided by OnnxNode.layerCpu()
 * yield* program.write("theta", weights)
 * program.feeds["x"].set(observations)
 * yield* program.run
 * ```
 */
import { createRequire } from "node:module"
import { existsSync } from "node:fs"
import { dirname, join } from "node:path"
import { Effect, Layer, Record, type Scope } from "effect"
import type { Tensor as OrtTensor } from "onnxruntime-common"
import { attempt } from "../config/attempt.ts"
import { messageOf } from "../config/text.ts"
import { GraphError, programError } from "../graph/GraphError.ts"
import {
  changing,
  emit,
  type Emitted,
  feedInput,
  iterationsOutput,
  resultOutput,
  stateInput,
  stateOutput,
} from "../graph/onnx/emit.ts"
import { input, neg } from "../graph/ops.ts"
import type { ProgramSpec } from "../graph/Program.ts"
import { simplify } from "../graph/simplify.ts"
import { sizeOf } from "../graph/Tensor.ts"
import { feedShapes, resultShapes, validate } from "../graph/validate.ts"
import {
  Backend,
  BackendError,
  BackendUnavailable,
  dataFor,
  type Program,
  programOf,
  type TensorData,
} from "./Backend.ts"

type Device = "cpu" | "cuda" | "webgpu"

export interface Options {
  /** The number of threads for one op; 1 by default. More threads help only large batches, and may change rounding. */
  readonly threads?: number
}

export const layerCpu = (options?: Options): Layer.Layer<Backend, BackendUnavailable> =>
  Layer.effect(Backend, make("cpu", options))
export const layerCuda = (options?: Options): Layer.Layer<Backend, BackendUnavailable> =>
  Layer.effect(Backend, make("cuda", options))
export const layerWebGpu = (options?: Options): Layer.Layer<Backend, BackendUnavailable> =>
  Layer.effect(Backend, make("webgpu", options))

/** Makes the `Backend` service without a Layer, for code that chooses between several backends. */
export const make = (
  device: Device,
  { threads = 1 }: Options = {},
): Effect.Effect<Backend["Service"], BackendUnavailable, Scope.Scope> =>
  Effect.gen(function* () {
    const runtime = yield* loadRuntime(device)
    if (device === "cuda") yield* requireCuda
    if (device !== "cpu") yield* checkDevice(runtime, device)
    return {
      name: device,
      compile: Effect.fnUntraced(function* (spec: ProgramSpec) {
        const model = yield* attempt(() => {
          validate(spec)
          return emit(simplify(spec))
        }, GraphError)
        const opened = Effect.try({
          try: () => openSession(runtime, device, threads, model),
          catch: (error) => programError(spec.name, `ONNX Runtime cannot load the graph: ${messageOf(error)}`),
        })
        const session = yield* Effect.acquireRelease(opened, (session) => Effect.sync(() => session.dispose()))
        return sessionProgram(runtime, device, session, model, spec)
      }),
    }
  })

/** The version of ONNX Runtime that this library is tested with. Other versions may round differently. */
const version = "1.30.0"

const remedies: Readonly<Record<Device, string>> = {
  cpu: `Add it to your project: npm install onnxruntime-node@${version}; or choose wasm, which needs no package`,
  cuda:
    "It needs Linux on x64, an NVIDIA GPU with CUDA 12 and cuDNN 9, and the provider libraries, which the package's own " +
    "script fetches: ONNXRUNTIME_NODE_INSTALL=cuda12 node node_modules/onnxruntime-node/script/install.js",
  webgpu:
    "It needs a GPU that Vulkan, Metal or Direct3D 12 can drive, its driver, and on Linux the Vulkan loader (libvulkan1)",
}

const unavailable = (device: Device, missing: string): BackendUnavailable =>
  new BackendUnavailable({ backend: device, missing: reasonOf(missing), remedy: `${remedies[device]}.` })

const notInstalled = (device: Device): BackendUnavailable =>
  new BackendUnavailable({
    backend: device,
    missing: "the package onnxruntime-node is not installed",
    // The package is needed for all devices; a GPU needs more.
    remedy: [...new Set(["cpu", device] as const)].map((needed) => `${remedies[needed]}.`).join(" "),
  })

/** Returns the first line of an error message of ONNX Runtime, without the names of source files before `Failed to`. */
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

/** Loads the native library when the first Layer is built. Programs without a session save these 40 ms. */
const loadRuntime = (device: Device): Effect.Effect<Runtime, BackendUnavailable> =>
  Effect.try({
    try: (): Runtime => {
      const native: typeof import("onnxruntime-node/dist/binding.js") = require("onnxruntime-node/dist/binding.js")
      // Load the copy of onnxruntime-common that the binding uses, because the user's project may not have it.
      const requireOfBinding = createRequire(require.resolve("onnxruntime-node/dist/binding.js"))
      const common: typeof import("onnxruntime-common") = requireOfBinding("onnxruntime-common")
      // Turn off the runtime's log: the same errors are also thrown.
      common.env.logLevel = "fatal"
      native.initOrt()
      return { Session: native.binding.InferenceSession, Tensor: common.Tensor }
    },
    catch: (error) => {
      const isMissing = error instanceof Error && "code" in error && error.code === "MODULE_NOT_FOUND"
      const problem = `ONNX Runtime does not load: ${messageOf(error)}`
      return isMissing ? notInstalled(device) : unavailable(device, problem)
    },
  })

/** Fails if a CUDA library is missing. Without this check, ONNX Runtime would also print an error on stderr. */
const requireCuda: Effect.Effect<void, BackendUnavailable> = Effect.suspend(() => {
  const { platform, arch } = process
  const folder = join(dirname(require.resolve("onnxruntime-node/package.json")), "bin/napi-v6", platform, arch)
  const missing = ["libonnxruntime_providers_shared.so", "libonnxruntime_providers_cuda.so"].filter(
    (library) => !existsSync(join(folder, library)),
  )
  return missing.length === 0
    ? Effect.void
    : Effect.fail(unavailable("cuda", `onnxruntime-node came without ${missing.join(" and ")}`))
})

/** Fails if the machine lacks the device. It opens a session with one node to find out, which takes milliseconds. */
const checkDevice = (runtime: Runtime, device: Device): Effect.Effect<void, BackendUnavailable> =>
  Effect.try({
    try: () => {
      const x = input("x", [1])
      const model = emit({ name: "probe", inputs: { x }, state: {}, outputs: { y: neg(x) } })
      openSession(runtime, device, 1, model).dispose()
    },
    catch: (error) => unavailable(device, messageOf(error)),
  })

const openSession = ({ Session }: Runtime, device: Device, threads: number, model: Emitted): Session => {
  const session = new Session()
  const bytes = new Uint8Array(model.bytes)
  session.loadModel(bytes.buffer, bytes.byteOffset, bytes.byteLength, {
    executionProviders: [device],
    graphOptimizationLevel: "all",
    executionMode: "sequential",
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    logSeverityLevel: 4,
    extra: {
      // Flushing denormals would change the arithmetic of the whole thread, including JavaScript's.
      session: { intra_op: { allow_spinning: threads > 1 ? "1" : "0" }, set_denormal_as_zero: "0" },
    },
  })
  return session
}

const sessionProgram = (
  runtime: Runtime,
  device: Device,
  session: Session,
  model: Emitted,
  spec: ProgramSpec,
): Program => {
  const tensorOver = (data: TensorData, shape: ReadonlyArray<number>): OrtTensor =>
    data instanceof Float32Array
      ? new runtime.Tensor("float32", data, shape)
      : data instanceof Int32Array
        ? new runtime.Tensor("int32", data, shape)
        : new runtime.Tensor("bool", data, shape)

  const feeds = Record.map(feedShapes(spec), dataFor)
  // The input tensors of the next run, by name: the feeds and the current states.
  const bound: Record<string, OrtTensor> = {}
  for (const [name, { shape }] of Object.entries(feedShapes(spec)))
    bound[feedInput(name)] = tensorOver(feeds[name], shape)
  // `write` fills these arrays and puts their tensors into `bound`. A run puts the tensors of its new states there.
  const written = Record.map(spec.state, ({ tensor: { shape } }) => {
    const numbers = new Float32Array(sizeOf(shape))
    return { numbers, tensor: tensorOver(numbers, shape) }
  })
  for (const [name, { tensor }] of Object.entries(written)) bound[stateInput(name)] = tensor
  const results = Record.map(resultShapes(spec), dataFor)
  const states = changing(spec).map(([name]) => ({ from: stateOutput(name), to: stateInput(name) }))
  const outputs = Object.keys(results).map((name) => ({ from: resultOutput(name), data: results[name] }))
  const endsEarly = model.outputs.includes(iterationsOutput)
  const fetches: Record<string, null> = Object.fromEntries(model.outputs.map((name) => [name, null]))
  const count = spec.minibatches?.count ?? 1
  let iterations = count

  const runSync = (): void => {
    try {
      const fetched = session.run(bound, fetches, {})
      // The output tensors become the next inputs, without a copy.
      for (const { from, to } of states) bound[to] = fetched[from]
      // This output has one element for each minibatch that ran.
      if (endsEarly) iterations = fetched[iterationsOutput].size
      for (const { from, data } of outputs) copyInto(fetched[from].data, data, (data.length / count) * iterations)
    } catch (error) {
      throw new BackendError({ backend: device, program: spec.name, message: messageOf(error) })
    }
  }

  return programOf(spec, {
    device,
    feeds,
    results,
    iterations: () => iterations,
    runSync,
    read: (name) => {
      const tensor = bound[stateInput(name)]
      const copy = new Float32Array(tensor.size)
      copyInto(tensor.data, copy, copy.length)
      return copy
    },
    write: (name, data) => {
      const { numbers, tensor } = written[name]
      numbers.set(data)
      bound[stateInput(name)] = tensor
    },
  })
}

/**
 * Copies the first `length` elements of a tensor; the elements behind them in `to` keep their values. If a program ends
 * early, `length` covers only the minibatches that ran.
 */
const copyInto = (from: OrtTensor["data"], to: TensorData, length: number): void => {
  if (from instanceof Float32Array || from instanceof Int32Array || from instanceof Uint8Array)
    to.set(from.length > length ? from.subarray(0, length) : from)
}
