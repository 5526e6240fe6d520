/**
 * Implements the backend `reference`, which interprets a graph in plain TypeScript. Tests compare the other backends
 * with it; it is slow, and needs nothing but JavaScript.
 */
import { Layer, Record } from "effect"
import { attempt } from "../../base/config/attempt.ts"
import { GraphError } from "../graph/GraphError.ts"
import { kernelOf } from "../graph/kernels.ts"
import { changing, indicesFeed, type ProgramSpec } from "../graph/Program.ts"
import { sizeOf, type Tensor, topologicalOrder } from "../graph/Tensor.ts"
import { resultShapes, rootsOf, validateAll } from "../graph/validate.ts"
import {
  Backend,
  compileOne,
  dataFor,
  feedsOf,
  type GroupOptions,
  type Program,
  programOf,
  sharedArrays,
  type TensorData,
} from "./Backend.ts"

/** Provides the backend `reference`. Feeds, results and states are float32; intermediate results are doubles. */
export const layer: Layer.Layer<Backend> = Layer.suspend(() => {
  const compileAll: Backend["Service"]["compileAll"] = (specs, options) =>
    attempt(() => interpretAll(specs, options), GraphError)
  return Layer.succeed(Backend, { name: "reference", compile: compileOne(compileAll), compileAll })
})

const interpretAll = <Name extends string>(
  specs: Readonly<Record<Name, ProgramSpec>>,
  { sharedFeeds = [] }: GroupOptions = {},
): Readonly<Record<Name, Program>> => {
  validateAll(specs, sharedFeeds)
  const states = new Map<string, Float64Array>()
  const shared = sharedArrays(specs, sharedFeeds)
  return Record.map(specs, (spec: ProgramSpec) => {
    for (const [name, { tensor }] of Object.entries(spec.state))
      if (!states.has(name)) states.set(name, new Float64Array(sizeOf(tensor.shape)))
    return interpret(spec, states, feedsOf(spec, shared))
  })
}

/** Interprets a program whose feeds and states are these arrays. */
const interpret = (
  spec: ProgramSpec,
  states: ReadonlyMap<string, Float64Array>,
  feeds: Readonly<Record<string, TensorData>>,
): Program => {
  const results = Record.map(resultShapes(spec), dataFor)
  const order = topologicalOrder([
    ...rootsOf(spec),
    ...Object.values(spec.inputs),
    ...Object.values(spec.state).map(({ tensor }) => tensor),
  ])
  const newBuffer = ({ op, shape }: Tensor): Float64Array =>
    (op.kind === "state" ? states.get(op.name) : undefined) ?? new Float64Array(sizeOf(shape))
  const buffers = new Map<Tensor, Float64Array>(order.map((tensor) => [tensor, newBuffer(tensor)]))
  const bufferOf = (tensor: Tensor): Float64Array => buffers.get(tensor) ?? new Float64Array(0)
  const kernels = order.map((tensor) => kernelOf(tensor, tensor.inputs.map(bufferOf), bufferOf(tensor)))
  const swaps = changing(spec).flatMap(([, { tensor, next, stacked }]) =>
    stacked ? [] : [{ to: bufferOf(tensor), from: bufferOf(next) }],
  )
  const stacks = changing(spec).flatMap(([, { tensor, next, stacked }]) =>
    stacked ? [{ to: bufferOf(tensor), from: bufferOf(next) }] : [],
  )
  const spare = swaps.map(({ from }) => new Float64Array(from.length))
  const { minibatches } = spec
  let iterations = 1

  /** Copies the feeds into the graph's inputs. From `gathered` feeds, copies only the rows of this minibatch. */
  const load = (iteration: number): void => {
    for (const [name, tensor] of Object.entries(spec.inputs)) {
      const buffer = bufferOf(tensor)
      if (minibatches?.gathered.includes(name) !== true) {
        buffer.set(feeds[name])
        continue
      }
      const width = buffer.length / minibatches.batch
      for (let row = 0; row < minibatches.batch; row++) {
        const from = feeds[indicesFeed][iteration * minibatches.batch + row] * width
        for (let at = 0; at < width; at++) buffer[row * width + at] = feeds[name][from + at]
      }
    }
  }

  const runOnce = (iteration: number): void => {
    load(iteration)
    for (const kernel of kernels) kernel()
    for (const [name, tensor] of Object.entries(spec.outputs))
      results[name].set(bufferOf(tensor), iteration * sizeOf(tensor.shape))
    for (const { to, from } of stacks) to.set(Float32Array.from(from), iteration * from.length)
    // The next value of a state may be the old value of another state, so read all next values before writing any.
    swaps.forEach(({ from }, index) => spare[index].set(from))
    // Round state to float32, as it is in other backends, so that saving and restoring it changes nothing.
    swaps.forEach(({ to }, index) => spare[index].forEach((value, at) => void (to[at] = Math.fround(value))))
  }

  const runSync = (): void => {
    if (minibatches === undefined) return runOnce(0)
    const { continueWhile } = minibatches
    for (iterations = 0; iterations < minibatches.count;) {
      runOnce(iterations++)
      if (continueWhile !== undefined && bufferOf(continueWhile)[0] === 0) break
    }
  }

  return programOf(spec, {
    device: "reference",
    feeds,
    results,
    iterations: () => iterations,
    runSync,
    read: (name) => Float32Array.from(bufferOf(spec.state[name].tensor)),
    write: (name, data) => bufferOf(spec.state[name].tensor).set(data),
  })
}
