/**
 * Makes programs that run in sessions of ONNX Runtime (a session is a model that ONNX Runtime has loaded), for
 * `onnx-node.ts`. Each program of a group has its own session, but all bind the same tensors as their states.
 */
import { Record } from "effect"
import type { Tensor as OrtTensor } from "onnxruntime-common"
import { messageOf } from "../../base/text/text.ts"
import { programError } from "../graph/GraphError.ts"
import {
  emit,
  type Emitted,
  feedInput,
  iterationsOutput,
  resultOutput,
  stateInput,
  stateOutput,
} from "../graph/onnx/emit.ts"
import { input } from "../graph/ops.ts"
import { changing, type ProgramSpec, type StateSpec } from "../graph/Program.ts"
import { simplify } from "../graph/simplify.ts"
import { type Shape, sizeOf } from "../graph/Tensor.ts"
import { feedShapes, resultShapes } from "../graph/validate.ts"
import { failureOf } from "./gpuRemedies.ts"
import {
  BackendError,
  copyInto,
  dataFor,
  feedsOf,
  type Program,
  programOf,
  sharedArrays,
  type TensorData,
} from "./Backend.ts"

export type Device = "cpu" | "cuda" | "webgpu"

interface NodeSession {
  loadModel(buffer: ArrayBuffer, byteOffset: number, byteLength: number, options: object): void
  run(feeds: Record<string, OrtTensor>, fetches: Record<string, null>, options: object): Record<string, OrtTensor>
  dispose(): void
}

/** The parts of `onnxruntime-node` that run a session. */
export interface NodeRuntime {
  readonly Session: new () => NodeSession
  readonly Tensor: typeof OrtTensor
}

/** Says where and how sessions run. */
interface SessionHost {
  readonly runtime: NodeRuntime
  readonly device: Device
  readonly threads: number
}

/** The location of a tensor whose numbers are in a buffer of the GPU. */
const onGpu = "gpu-buffer"

/**
 * Loads a model. On WebGPU, the outputs named in `onDevice` stay in buffers of the GPU, which can be inputs of any session.
 * The binding of `onnxruntime-node` has no such buffers for CUDA, where every output is copied to memory and back.
 */
export const openSession = (
  { runtime, device, threads }: SessionHost,
  model: Pick<Emitted, "bytes">,
  onDevice: ReadonlyArray<string> = [],
): NodeSession => {
  const session = new runtime.Session()
  const bytes = new Uint8Array(model.bytes)
  session.loadModel(bytes.buffer, bytes.byteOffset, bytes.byteLength, {
    executionProviders: [device],
    graphOptimizationLevel: "all",
    executionMode: "sequential",
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    logSeverityLevel: 4,
    ...(device === "webgpu" && onDevice.length > 0
      ? { preferredOutputLocation: Object.fromEntries(onDevice.map((name) => [name, onGpu])) }
      : {}),
    extra: {
      // Flushing denormals would change the arithmetic of the whole thread, including JavaScript's.
      session: { intra_op: { allow_spinning: threads > 1 ? "1" : "0" }, set_denormal_as_zero: "0" },
    },
  })
  return session
}

/** The session of one program, which is loaded when it is needed. */
export interface SessionOpening {
  /** Returns the session; the first call loads the model. Throws a `GraphError` if ONNX Runtime cannot load it. */
  readonly open: () => LoadedSession
  readonly close: () => void
}

interface LoadedSession {
  readonly session: NodeSession
  /** The names of the model's outputs, as ONNX Runtime expects them. */
  readonly fetches: Readonly<Record<string, null>>
  readonly endsEarly: boolean
}

/** Makes the programs of a group. A program's session is opened at its first run, because loading a large model is slow. */
export const makePrograms = <Name extends string>(
  host: SessionHost,
  specs: Readonly<Record<Name, ProgramSpec>>,
  sharedFeeds: ReadonlyArray<string> = [],
) => {
  const tensorOver = tensorsOf(host.runtime)
  const download = downloadFrom(host)
  const states = new States(tensorOver, download.read)
  const feeds = sharedArrays(specs, sharedFeeds)
  const sessions = Record.map(specs, (spec) => {
    const opening = openingOf(host, spec, states)
    const close = (): void => {
      opening.close()
      download.close()
    }
    return { ...opening, close }
  })
  const programs = Record.map(specs, (spec, name) =>
    sessionProgram(host.device, spec, sessions[name], states, feedsOf(spec, feeds), tensorOver),
  )
  return { sessions, programs }
}

const isFrozen = ({ frozen }: StateSpec): boolean => frozen === true

const openingOf = (host: SessionHost, spec: ProgramSpec, states: States): SessionOpening => {
  const frozen = Object.keys(spec.state).filter((name) => isFrozen(spec.state[name]))
  let loaded: LoadedSession | undefined
  let closed = false
  /** How many times the frozen states had been changed when the model was loaded. */
  let changes = 0
  const close = (): void => {
    loaded?.session.dispose()
    loaded = undefined
  }
  const load = (): LoadedSession => {
    if (closed) throw programError(spec.name, "the scope in which it was compiled is closed")
    changes = states.changesOf(frozen)
    const model = emit(simplify(spec), {
      frozen: Object.fromEntries(frozen.map((name) => [name, states.read(name)])),
      // Only the CPU has kernels for all of ONNX Runtime's own ops.
      runtimeOps: host.device === "cpu",
      parallel: host.device === "cpu" && host.threads > 1,
      webgpu: host.device === "webgpu",
    })
    try {
      return {
        session: openSession(
          host,
          model,
          changing(spec).map(([name]) => stateOutput(name)),
        ),
        fetches: Object.fromEntries(model.outputs.map((name) => [name, null])),
        endsEarly: model.outputs.includes(iterationsOutput),
      }
    } catch (error) {
      throw programError(spec.name, `ONNX Runtime cannot load the graph: ${messageOf(error)}`)
    }
  }
  return {
    open: () => {
      if (frozen.length > 0 && loaded !== undefined && states.changesOf(frozen) !== changes) close()
      return (loaded ??= load())
    },
    close: () => {
      closed = true
      close()
    },
  }
}

type TensorOver = (data: TensorData, shape: Shape) => OrtTensor

/** Makes tensors that use an array without copying it. */
const tensorsOf =
  ({ Tensor }: NodeRuntime): TensorOver =>
  (data, shape) =>
    data instanceof Float32Array
      ? new Tensor("float32", data, shape)
      : data instanceof Int32Array
        ? new Tensor("int32", data, shape)
        : new Tensor("bool", data, shape)

/** Reads tensors that are in buffers of the GPU. */
const downloadFrom = (host: SessionHost) => {
  /** For each shape, a session that returns its input. (The binding's own `getData` ends the process.) */
  const sessions = new Map<string, NodeSession>()
  const sessionFor = (shape: Shape): NodeSession => {
    const existing = sessions.get(shape.join())
    if (existing !== undefined) return existing
    const x = input("x", shape)
    const session = openSession(host, emit({ name: "download", inputs: { x }, state: {}, outputs: { x } }))
    sessions.set(shape.join(), session)
    return session
  }
  return {
    read: (tensor: OrtTensor): OrtTensor => {
      const result = resultOutput("x")
      return sessionFor(tensor.dims).run({ [feedInput("x")]: tensor }, { [result]: null }, {})[result]
    },
    close: (): void => {
      for (const session of sessions.values()) session.dispose()
      sessions.clear()
    },
  }
}

/** The input tensors of a program's next run, by the names in its model. */
type BoundInputs = Record<string, OrtTensor>

/** The states of a group of programs. Each state is one tensor, which is bound in all programs that have the state. */
class States {
  private readonly tensorOver: TensorOver
  private readonly tensors = new Map<string, OrtTensor>()
  private readonly users = new Map<string, Array<BoundInputs>>()
  /** The arrays that `write` fills. When a run replaces a state by a tensor of ONNX Runtime, it leaves this map. */
  private readonly written = new Map<string, Float32Array>()
  private readonly changes = new Map<string, number>()
  private readonly download: (tensor: OrtTensor) => OrtTensor

  constructor(tensorOver: TensorOver, download: (tensor: OrtTensor) => OrtTensor) {
    this.tensorOver = tensorOver
    this.download = download
  }

  /** Makes a state of zeros, unless another program of the group has already made it. */
  declare(name: string, shape: Shape): void {
    if (!this.tensors.has(name)) this.hold(name, new Float32Array(sizeOf(shape)), shape)
  }

  /** Binds a state in one more program. */
  bind(name: string, bound: BoundInputs): void {
    this.users.set(name, [...(this.users.get(name) ?? []), bound])
    bound[stateInput(name)] = this.tensorOf(name)
  }

  /** Returns how many times these states were changed in total. */
  changesOf(names: ReadonlyArray<string>): number {
    return names.reduce((sum, name) => sum + (this.changes.get(name) ?? 0), 0)
  }

  /** Makes this tensor the state's value in all programs. */
  replace(name: string, tensor: OrtTensor): void {
    this.written.delete(name)
    this.count(name)
    // The garbage collector does not know how large a buffer of the GPU is, so free the old one now.
    const old = this.tensors.get(name)
    if (old !== undefined && old.location === onGpu) old.dispose()
    this.tensors.set(name, tensor)
    for (const bound of this.users.get(name) ?? []) bound[stateInput(name)] = tensor
  }

  /** Returns the numbers of a state, which a later run or `write` may change. */
  read(name: string): Float32Array {
    const tensor = this.tensorOf(name)
    const { data } = tensor.location === onGpu ? this.download(tensor) : tensor
    if (data instanceof Float32Array) return data
    throw new TypeError(`state "${name}": expected numbers of 32 bits`)
  }

  write(name: string, data: Float32Array): void {
    const numbers = this.written.get(name)
    // Copy the numbers of a tensor that a run returned: it may also be an output, so it must not be overwritten.
    if (numbers === undefined) this.hold(name, data.slice(), this.tensorOf(name).dims)
    else {
      numbers.set(data)
      this.count(name)
    }
  }

  private count(name: string): void {
    this.changes.set(name, (this.changes.get(name) ?? 0) + 1)
  }

  private hold(name: string, numbers: Float32Array, shape: Shape): void {
    this.replace(name, this.tensorOver(numbers, shape))
    this.written.set(name, numbers)
  }

  private tensorOf(name: string): OrtTensor {
    const tensor = this.tensors.get(name)
    if (tensor === undefined) throw new Error(`sessions: state "${name}" is not bound`)
    return tensor
  }
}

const sessionProgram = (
  device: Device,
  spec: ProgramSpec,
  opening: SessionOpening,
  states: States,
  feeds: Readonly<Record<string, TensorData>>,
  tensorOver: TensorOver,
): Program => {
  const bound: BoundInputs = {}
  for (const [name, { shape }] of Object.entries(feedShapes(spec)))
    bound[feedInput(name)] = tensorOver(feeds[name], shape)
  for (const [name, state] of Object.entries(spec.state)) {
    states.declare(name, state.tensor.shape)
    if (!isFrozen(state) && state.stacked !== true) states.bind(name, bound)
  }
  const results = Record.map(resultShapes(spec), dataFor)
  const nexts = changing(spec).map(([name]) => ({ name, from: stateOutput(name) }))
  const outputs = Object.keys(results).map((name) => ({ from: resultOutput(name), data: results[name] }))
  const count = spec.minibatches?.count ?? 1
  let iterations = count

  const runSync = (): void => {
    try {
      const { session, fetches, endsEarly } = opening.open()
      const fetched = session.run(bound, fetches, {})
      // The output tensors become the inputs of the next run, without a copy.
      for (const { name, from } of nexts) states.replace(name, fetched[from])
      // This output has one element for each minibatch that ran.
      if (endsEarly) iterations = fetched[iterationsOutput].size
      for (const { from, data } of outputs) copyInto(fetched[from].data, data, (data.length / count) * iterations)
    } catch (error) {
      const message = messageOf(error)
      throw new BackendError({
        backend: device,
        program: spec.name,
        message: device === "cpu" ? message : failureOf(message),
      })
    }
  }

  return programOf(spec, {
    device,
    feeds,
    results,
    iterations: () => iterations,
    runSync,
    read: (name) => states.read(name),
    write: (name, data) => states.write(name, data),
  })
}
