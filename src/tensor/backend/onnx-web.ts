/**
 * Implements the backend `onnx-web` with ONNX Runtime for the web, in browsers and in Node: on WebAssembly, or on a GPU by
 * WebGPU. The user's program imports the package `onnxruntime-web` and passes it, so that nobody else has to bundle it.
 *
 * The backend `wasm` is faster for small networks, where a call of ONNX Runtime takes longer than the arithmetic. This one
 * is for large networks, and for GPUs. Its programs are asynchronous: a rollout waits for each step.
 *
 * @example
 * ```ts
 * // import * as ort from "onnxruntime-web"
 * import * as Web from "effect-rl/web"
 *
 * const result = yield* training.pipe(Effect.provide(OnnxWeb.layer(ort)), Effect.provide(Web.layer))
 * ```
 */
import { Effect, Layer, Record, type Scope, Semaphore } from "effect"
import { attempt } from "../../base/config/attempt.ts"
import { messageOf } from "../../base/text/text.ts"
import { GraphError, programError } from "../graph/GraphError.ts"
import { emit, feedInput, iterationsOutput, resultOutput, stateInput, stateOutput } from "../graph/onnx/emit.ts"
import { input, neg } from "../graph/ops.ts"
import { changing, type ProgramSpec } from "../graph/Program.ts"
import { simplify } from "../graph/simplify.ts"
import { type Shape, sizeOf } from "../graph/Tensor.ts"
import { feedShapes, resultShapes, validateAll } from "../graph/validate.ts"
import {
  Backend,
  BackendError,
  BackendUnavailable,
  copyInto,
  dataFor,
  feedsOf,
  type GroupOptions,
  type Program,
  programOf,
  sharedArrays,
  type TensorData,
} from "./Backend.ts"
import { failureOf } from "./gpuRemedies.ts"

interface WebTensor {
  /** Throws if the numbers are on a GPU. */
  readonly data: unknown
  readonly size: number
  readonly location: string
  /** Returns the numbers, from a GPU too. If `release` is true, the tensor no longer needs its memory on the GPU. */
  getData(release?: boolean): PromiseLike<unknown>
  dispose(): void
}

interface WebSession {
  run(feeds: Readonly<Record<string, WebTensor>>): PromiseLike<Readonly<Record<string, WebTensor>>>
  release(): PromiseLike<void>
}

/** The parts of the package `onnxruntime-web` that the backend uses. */
export interface WebRuntime {
  readonly InferenceSession: { create(model: Uint8Array, options: object): PromiseLike<WebSession> }
  readonly Tensor: {
    new (type: "float32", data: Float32Array, shape: Shape): WebTensor
    new (type: "int32", data: Int32Array, shape: Shape): WebTensor
    new (type: "bool", data: Uint8Array, shape: Shape): WebTensor
  }
  readonly env: { readonly wasm: { numThreads?: number } }
}

export interface OnnxWebOptions {
  /** Where the programs run: `webgpu` needs a browser with a GPU, and the package's `onnxruntime-web/webgpu`. Default: `wasm`. */
  readonly provider?: "wasm" | "webgpu"
  /**
   * The number of threads of `wasm`. More than one needs a page that is isolated from other origins, and may change
   * rounding. Default: 1.
   */
  readonly threads?: number
}

/** Provides the backend. Fails if no session with one node can be opened on the device. */
export const layer = (runtime: WebRuntime, options?: OnnxWebOptions): Layer.Layer<Backend, BackendUnavailable> =>
  Layer.effect(Backend, make(runtime, options))

/** The parts of a backend that all of its programs use. */
interface WebHost {
  readonly runtime: WebRuntime
  readonly provider: "wasm" | "webgpu"
  readonly threads: number
  /** ONNX Runtime for the web runs one session at a time. */
  readonly turn: Semaphore.Semaphore
}

const make = Effect.fnUntraced(function* (
  runtime: WebRuntime,
  { provider = "wasm", threads = 1 }: OnnxWebOptions = {},
): Effect.fn.Return<Backend["Service"], BackendUnavailable> {
  // ONNX Runtime reads this when it opens the first session of the process.
  runtime.env.wasm.numThreads = threads
  const host: WebHost = { runtime, provider, threads, turn: Semaphore.makeUnsafe(1) }
  const x = input("x", [1])
  yield* openSession(host, { name: "probe", inputs: { x }, state: {}, outputs: { y: neg(x) } }, {}).pipe(
    Effect.flatMap((session) => Effect.promise(() => session.release())),
    Effect.mapError(({ message }) => unavailable(provider, message)),
  )
  const compileGroup = <Name extends string>(
    specs: Readonly<Record<Name, ProgramSpec>>,
    { sharedFeeds = [] }: GroupOptions = {},
  ): Effect.Effect<Readonly<Record<Name, OpenedProgram>>, GraphError, Scope.Scope> =>
    Effect.acquireRelease(
      attempt(() => {
        validateAll(specs, sharedFeeds)
        const states = new Map<string, SharedState>()
        const feeds = sharedArrays(specs, sharedFeeds)
        return Record.map(specs, (spec) => sessionProgram(host, spec, states, feedsOf(spec, feeds)))
      }, GraphError),
      (group) => Effect.forEach(Object.values<OpenedProgram>(group), ({ close }) => close, { discard: true }),
    )
  return {
    name: "onnx-web",
    compile: Effect.fnUntraced(function* (spec) {
      const { program, open } = (yield* compileGroup({ program: spec })).program
      // If a state is frozen, wait: it is not written yet, and after the first write the model would have to be loaded
      // again.
      if (!Object.values(spec.state).some(({ frozen }) => frozen === true)) yield* open
      return program
    }),
    compileAll: (specs, options) =>
      Effect.map(
        compileGroup(specs, options),
        Record.map(({ program }) => program),
      ),
  }
})

const unavailable = (provider: string, missing: string): BackendUnavailable =>
  new BackendUnavailable({
    backend: `onnx-web on ${provider}`,
    missing: missing.replace(/\.$/, ""),
    remedy:
      provider === "webgpu"
        ? "It needs a browser with WebGPU and the import onnxruntime-web/webgpu; wasm needs neither."
        : "Let the page load the package's .wasm and .mjs files: env.wasm.wasmPaths says where they are.",
  })

/**
 * Returns the session's option by which the next values of states stay in GPU buffers, from which later runs read them.
 */
const statesOnGpu = (spec: ProgramSpec) =>
  Object.fromEntries(changing(spec).map(([name]) => [stateOutput(name), onGpu] as const))

/** Opens a session for a program. The states in `frozen` become constants of the model. */
const openSession = (
  { runtime, provider, threads }: WebHost,
  spec: ProgramSpec,
  frozen: Readonly<Record<string, Float32Array>>,
): Effect.Effect<WebSession, GraphError> =>
  Effect.flatMap(
    attempt(
      () =>
        emit(simplify(spec), { frozen, webgpu: provider === "webgpu", parallel: provider === "wasm" && threads > 1 })
          .bytes,
      GraphError,
    ),
    (bytes) =>
      Effect.tryPromise({
        try: () =>
          Promise.resolve(
            runtime.InferenceSession.create(bytes, {
              executionProviders: [provider],
              ...(provider === "webgpu" ? { preferredOutputLocation: statesOnGpu(spec) } : {}),
              graphOptimizationLevel: "all",
              logSeverityLevel: 4,
            }),
          ),
        catch: (error) => programError(spec.name, `ONNX Runtime cannot load the graph: ${messageOf(error)}`),
      }),
  )

/** The location of a tensor whose numbers are in a buffer of the GPU. */
const onGpu = "gpu-buffer"

/** A state, which all programs of a group share. */
class SharedState {
  private readonly data: Float32Array
  private readonly shape: Shape
  /** The tensor that holds the numbers in a GPU buffer; if it is undefined, `data` holds them. */
  private buffer: WebTensor | undefined
  /** How many times the state was changed. */
  changes = 0

  constructor(shape: Shape) {
    this.data = new Float32Array(sizeOf(shape))
    this.shape = shape
  }

  /** Returns the state as an input of a run. */
  input(runtime: WebRuntime): WebTensor {
    return this.buffer ?? tensorOver(runtime, this.data, this.shape)
  }

  /** Makes an output of a run the state's next value. */
  replace(output: WebTensor): void {
    this.release()
    if (output.location === onGpu) this.buffer = output
    else copyInto(output.data, this.data, this.data.length)
    this.changes++
  }

  /** Moves the numbers from the GPU to memory, where `read` finds them. */
  readonly download: Effect.Effect<void, unknown> = Effect.suspend(() => {
    const { buffer } = this
    if (buffer === undefined) return Effect.void
    return Effect.map(
      Effect.tryPromise({ try: () => Promise.resolve(buffer.getData(true)), catch: (error) => error }),
      (numbers) => {
        copyInto(numbers, this.data, this.data.length)
        this.buffer = undefined
      },
    )
  })

  /** Returns the numbers, which a later run or `write` may change. */
  read(): Float32Array {
    return this.data
  }

  write(data: Float32Array): void {
    this.release()
    this.data.set(data)
    this.changes++
  }

  /** Frees the buffer on the GPU, because the garbage collector does not know how large it is. */
  release(): void {
    this.buffer?.dispose()
    this.buffer = undefined
  }
}

/** A program, with the functions that open and close its session. */
interface OpenedProgram {
  readonly program: Program
  readonly open: Effect.Effect<WebSession, GraphError>
  readonly close: Effect.Effect<void>
}

const backendError = (program: string, provider: WebHost["provider"], error: unknown): BackendError => {
  const message = messageOf(error)
  return new BackendError({ backend: "onnx-web", program, message: provider === "wasm" ? message : failureOf(message) })
}

// oxlint-disable-next-line max-lines-per-function -- a session's opening, runs and end, which one permit guards
const sessionProgram = (
  host: WebHost,
  spec: ProgramSpec,
  states: Map<string, SharedState>,
  feeds: Readonly<Record<string, TensorData>>,
): OpenedProgram => {
  const { runtime, provider, turn } = host
  for (const [name, { tensor }] of Object.entries(spec.state)) {
    if (!states.has(name)) states.set(name, new SharedState(tensor.shape))
  }
  const stateOf = (name: string): SharedState => {
    const state = states.get(name)
    if (state === undefined) throw new Error(`onnx-web: there is no state "${name}"`)
    return state
  }
  const frozen = Object.keys(spec.state).filter((name) => spec.state[name].frozen === true)
  const bound = Object.entries(spec.state).filter(([, { frozen, stacked }]) => frozen !== true && stacked !== true)
  const changesOfFrozen = (): number => frozen.reduce((sum, name) => sum + stateOf(name).changes, 0)
  const results = Record.map(resultShapes(spec), dataFor)
  const shapes = feedShapes(spec)
  const count = spec.minibatches?.count ?? 1
  let iterations = count
  let session: WebSession | undefined
  let loadedAt = 0
  let isClosed = false

  const close = Effect.suspend(() => {
    const closing = session
    session = undefined
    return closing === undefined ? Effect.void : Effect.promise(() => Promise.resolve(closing.release()))
  })
  const open = Effect.gen(function* () {
    if (isClosed) return yield* programError(spec.name, "the scope in which it was compiled is closed")
    if (session !== undefined && changesOfFrozen() !== loadedAt) yield* close
    if (session !== undefined) return session
    loadedAt = changesOfFrozen()
    for (const name of frozen) yield* Effect.mapError(stateOf(name).download, loadError)
    const numbers = Object.fromEntries(frozen.map((name) => [name, stateOf(name).read()]))
    return (session = yield* openSession(host, spec, numbers))
  })

  const loadError = (error: unknown) => programError(spec.name, messageOf(error))
  const failure = (error: unknown) => backendError(spec.name, provider, error)
  const run = Effect.gen(function* () {
    const opened = yield* Effect.mapError(open, failure)
    const inputs: Record<string, WebTensor> = {}
    for (const [name, { shape }] of Object.entries(shapes))
      inputs[feedInput(name)] = tensorOver(runtime, feeds[name], shape)
    for (const [name] of bound) inputs[stateInput(name)] = stateOf(name).input(runtime)
    const fetched = yield* Effect.tryPromise({ try: () => Promise.resolve(opened.run(inputs)), catch: failure })
    const ran = fetched[iterationsOutput]?.size ?? count
    for (const [name] of changing(spec)) stateOf(name).replace(fetched[stateOutput(name)])
    // If a program ended early, its results cover only the minibatches that ran.
    for (const [name, data] of Object.entries(results)) {
      copyInto(fetched[resultOutput(name)].data, data, (data.length / count) * ran)
    }
    iterations = ran
  }).pipe(Effect.uninterruptible, turn.withPermits(1))

  const { runSync: _, ...program } = programOf(spec, {
    device: `onnx-web on ${provider}`,
    feeds,
    results,
    iterations: () => iterations,
    runSync: () => {},
    read: (name) => stateOf(name).read(),
    write: (name, data) => stateOf(name).write(data),
  })
  const read: Program["read"] = (name, into) =>
    (states.get(name)?.download ?? Effect.void).pipe(Effect.mapError(failure), Effect.andThen(program.read(name, into)))
  const end = Effect.andThen(
    Effect.sync(() => {
      isClosed = true
      for (const name of Object.keys(spec.state)) stateOf(name).release()
    }),
    close,
  )
  return {
    program: {
      ...program,
      run,
      read: (name, into) => turn.withPermits(1)(Effect.uninterruptible(read(name, into))),
      write: (name, data) => turn.withPermits(1)(program.write(name, data)),
    },
    open: turn.withPermits(1)(open),
    close: turn.withPermits(1)(end),
  }
}

/** Makes a tensor that uses an array without copying it. */
const tensorOver = ({ Tensor }: WebRuntime, data: TensorData, shape: Shape): WebTensor =>
  data instanceof Float32Array
    ? new Tensor("float32", data, shape)
    : data instanceof Int32Array
      ? new Tensor("int32", data, shape)
      : new Tensor("bool", data instanceof Uint8Array ? data : new Uint8Array(data), shape)
