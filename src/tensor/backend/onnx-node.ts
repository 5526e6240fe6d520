/**
 * Implements the backends `cpu`, `cuda` and `webgpu` with ONNX Runtime for Node: it loads the native package
 * `onnxruntime-node`, and finds out whether the machine has the device. `sessions-node.ts` runs the programs.
 *
 * It calls the synchronous binding of ONNX Runtime instead of the package's wrapper, which does the same work in a
 * `setImmediate` callback. For a policy that acts on four observations, this takes 28 µs instead of 34 µs.
 *
 * @example
 * ```ts
 * const program = yield* (yield* Backend).compile(spec) // with the Backend of layerCpu()
 * yield* program.write("theta", Float32Array.of(1, 2))
 * program.feeds["x"].set([0, 0.1, 0, -0.1])
 * yield* program.run
 * ```
 */
import { createRequire } from "node:module"
import { existsSync } from "node:fs"
import { dirname, join } from "node:path"
import { Effect, Layer, type Scope } from "effect"
import { attempt } from "../../base/config/attempt.ts"
import { messageOf } from "../../base/text/text.ts"
import { GraphError } from "../graph/GraphError.ts"
import { emit } from "../graph/onnx/emit.ts"
import { input, neg } from "../graph/ops.ts"
import type { ProgramSpec } from "../graph/Program.ts"
import { validateAll } from "../graph/validate.ts"
import { Backend, BackendUnavailable, type GroupOptions } from "./Backend.ts"
import { remedyOf } from "./gpuRemedies.ts"
import { type Device, makePrograms, type SessionOpening, openSession, type NodeRuntime } from "./sessions-node.ts"

interface OnnxNodeOptions {
  /** The number of threads for one op; 1 by default. More threads help only large batches, and may change rounding. */
  readonly threads?: number
}

export const layerCpu = (options?: OnnxNodeOptions): Layer.Layer<Backend, BackendUnavailable> =>
  Layer.effect(Backend, make("cpu", options))
export const layerCuda = (options?: OnnxNodeOptions): Layer.Layer<Backend, BackendUnavailable> =>
  Layer.effect(Backend, make("cuda", options))
export const layerWebGpu = (options?: OnnxNodeOptions): Layer.Layer<Backend, BackendUnavailable> =>
  Layer.effect(Backend, make("webgpu", options))

/** Makes the `Backend` service without a Layer, for code that chooses between several backends. */
export const make = (
  device: Device,
  { threads = 1 }: OnnxNodeOptions = {},
): Effect.Effect<Backend["Service"], BackendUnavailable, Scope.Scope> =>
  Effect.gen(function* () {
    const runtime = yield* loadRuntime(device)
    if (device === "cuda") yield* requireCuda
    if (device === "webgpu" && process.platform === "linux") yield* requireVulkan
    if (device !== "cpu") yield* checkDevice(runtime, device)
    const compileGroup = <Name extends string>(
      specs: Readonly<Record<Name, ProgramSpec>>,
      { sharedFeeds }: GroupOptions = {},
    ) =>
      Effect.acquireRelease(
        attempt(() => {
          validateAll(specs, sharedFeeds)
          return makePrograms({ runtime, device, threads }, specs, sharedFeeds)
        }, GraphError),
        ({ sessions }) => Effect.sync(() => Object.values<SessionOpening>(sessions).forEach(({ close }) => close())),
      )
    return {
      name: device,
      compile: (spec) =>
        Effect.gen(function* () {
          const { sessions, programs } = yield* compileGroup({ program: spec })
          // If a state is frozen, wait: it is not written yet, and after the first write the model would have to be
          // loaded again.
          const isFrozen = Object.values(spec.state).some(({ frozen }) => frozen === true)
          if (!isFrozen) yield* attempt(sessions.program.open, GraphError)
          return programs.program
        }),
      compileAll: (specs, groupOptions) => Effect.map(compileGroup(specs, groupOptions), ({ programs }) => programs),
    }
  })

const unavailable = (device: Device, missing: string): BackendUnavailable =>
  new BackendUnavailable({ backend: device, missing: reasonOf(missing), remedy: `${remedyOf(device, missing)}.` })

const notInstalled = (device: Device): BackendUnavailable =>
  new BackendUnavailable({
    backend: device,
    missing: "the package onnxruntime-node is not installed",
    // Every device needs the package; a GPU needs more.
    remedy: [...new Set(["cpu", device] as const)].map((needed) => `${remedyOf(needed)}.`).join(" "),
  })

/** Returns the first line of an error message of ONNX Runtime, without the names of source files before `Failed to`. */
const reasonOf = (text: string): string =>
  (
    text
      .split("\n")[0]
      .split(/(?<=[.a-z]) (?=Failed to )/)
      .at(-1) ?? text
  ).replace(/\.$/, "")

const require = createRequire(import.meta.url)

/** Loads the native library when the first Layer is built. Programs without a session save these 40 ms. */
const loadRuntime = (device: Device): Effect.Effect<NodeRuntime, BackendUnavailable> =>
  Effect.try({
    try: (): NodeRuntime => {
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

/**
 * Fails if Linux lacks the Vulkan loader. Without this check, the library that implements WebGPU would also print a warning
 * with a stack trace on stderr.
 */
const requireVulkan: Effect.Effect<void, BackendUnavailable> = Effect.suspend(() => {
  try {
    process.dlopen({ exports: {} }, "libvulkan.so.1")
  } catch (error) {
    // `dlopen` also fails for a library that exists, since it is not a Node module; only this message means that it is
    // missing.
    const problem = messageOf(error)
    if (problem.includes("cannot open shared object file")) return Effect.fail(unavailable("webgpu", problem))
  }
  return Effect.void
})

/** Fails if the machine lacks the device. It opens a session with one node to find out, which takes milliseconds. */
const checkDevice = (runtime: NodeRuntime, device: Device): Effect.Effect<void, BackendUnavailable> =>
  Effect.try({
    try: () => {
      const x = input("x", [1])
      const model = emit({ name: "probe", inputs: { x }, state: {}, outputs: { y: neg(x) } })
      openSession({ runtime, device, threads: 1 }, model).dispose()
    },
    catch: (error) => unavailable(device, messageOf(error)),
  })
