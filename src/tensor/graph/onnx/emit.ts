/**
 * Translates a program to the bytes of an ONNX model, for `tensor/backend/onnx-node.ts`. Each state is an input and an output
 * of the model: the outputs of a run are the inputs of the next run. Minibatches are a loop inside of the model, so
 * that one call does a whole update: a `Scan`, or a `Loop` if the program can end it early.
 */
import { programError } from "../GraphError.ts"
import { changing, indicesFeed, type Minibatches, type ProgramSpec } from "../Program.ts"
import type { Tensor } from "../Tensor.ts"
import { feedShapes, rootsOf } from "../validate.ts"
import { Graph, modelBytes, type OnnxValue } from "./model.ts"
import { emitNodes, exportAs } from "./nodes.ts"
import { counter, nameOf, type Scope, type ScopeTarget } from "./scope.ts"
import { type Stages, stagesOf } from "./stages.ts"
import { forWebGpu } from "./webgpu.ts"

export interface Emitted {
  readonly bytes: Uint8Array
  readonly inputs: ReadonlyArray<string>
  readonly outputs: ReadonlyArray<string>
  /** The number of nodes in the loop's body, which run for each minibatch. */
  readonly nodeCount: number
}

/** Returns the model's name for a feed. Names of inputs and outputs have prefixes that no other name in the model has. */
export const feedInput = (name: string): string => `feed:${name}`
export const stateInput = (name: string): string => `state:${name}`
export const stateOutput = (name: string): string => `next:${name}`
export const resultOutput = (name: string): string => `result:${name}`
/** The name of an output with one element for each minibatch that ran. Only programs that can end early have it. */
export const iterationsOutput = "iterations"

interface EmitOptions {
  /** States that become constants of the model with these numbers, instead of inputs. */
  readonly frozen?: Readonly<Record<string, Float32Array>>
  /** Whether the model is for the WebGPU provider, which has no kernels for loops and some ops. Default: false. */
  readonly webgpu?: boolean
  /** Whether the model may have ops that only ONNX Runtime has, besides those of the standard. Default: false. */
  readonly runtimeOps?: boolean
  /** Whether several threads of the processor compute an op. Default: false. */
  readonly parallel?: boolean
}

/** Translates a program. */
export const emit = (
  spec: ProgramSpec,
  { frozen = {}, webgpu = false, runtimeOps = false, parallel = false }: EmitOptions = {},
): Emitted => {
  const graph = new Graph(spec.name)
  const target = { runtimeOps, parallel }
  for (const [name, { shape, dtype }] of Object.entries(feedShapes(spec)))
    graph.inputs.push({ name: feedInput(name), shape, dtype })
  for (const [state, { tensor, stacked }] of Object.entries(spec.state)) {
    if (tensor.dtype === "i8")
      throw programError(
        spec.name,
        `state "${state}": ONNX Runtime takes no states of int8; use the backend wasm or native`,
      )
    if (stacked === true) continue
    const [name, data] = [stateInput(state), frozen[state]]
    if (data === undefined) graph.inputs.push({ name, shape: tensor.shape, dtype: "f32" })
    else graph.initializers.push({ name, shape: tensor.shape, dtype: "f32", data })
  }
  const nodeCount =
    spec.minibatches === undefined
      ? emitOnce(graph, spec, target)
      : emitMinibatches(graph, spec, spec.minibatches, target)
  const names = (values: ReadonlyArray<OnnxValue>) => values.map(({ name }) => name)
  const model = webgpu ? forWebGpu(graph, spec.minibatches?.count ?? 1) : graph
  return { bytes: modelBytes(model), inputs: names(graph.inputs), outputs: names(graph.outputs), nodeCount }
}

const emitOnce = (graph: Graph, spec: ProgramSpec, target: ScopeTarget): number => {
  const scope: Scope = { graph, constants: graph, names: new Map(), fresh: counter(), ...target }
  for (const [name, tensor] of Object.entries(spec.inputs)) scope.names.set(tensor, feedInput(name))
  for (const [name, { tensor }] of Object.entries(spec.state)) scope.names.set(tensor, stateInput(name))
  emitNodes(scope, rootsOf(spec))
  for (const [name, { next }] of changing(spec)) exportAs(scope, next, stateOutput(name))
  for (const [name, tensor] of Object.entries(spec.outputs)) exportAs(scope, tensor, resultOutput(name))
  return graph.nodes.length
}

const emitMinibatches = (graph: Graph, spec: ProgramSpec, minibatches: Minibatches, target: ScopeTarget): number => {
  const stages = stagesOf(spec, minibatches)
  const outer: Scope = { graph, constants: graph, names: new Map(), fresh: counter(), ...target }
  for (const [name, tensor] of stages.feeds) outer.names.set(tensor, feedInput(name))
  for (const [name, { tensor }] of Object.entries(spec.state)) outer.names.set(tensor, stateInput(name))

  // Before the loop, compute the tensors that its body reads, either whole or one slice per iteration.
  const { continueWhile } = minibatches
  const read = new Set([...stages.body.flatMap(({ inputs }) => inputs), ...stages.bodyOutputs])
  const fixed = stages.fixed.filter((tensor) => read.has(tensor))
  const sliced = [...stages.series].filter(([tensor]) => read.has(tensor))
  emitNodes(outer, [...fixed, ...sliced.map(([, whole]) => whole)])

  const body: Scope = { ...outer, graph: new Graph("minibatch"), names: new Map() }
  for (const tensor of fixed) body.names.set(tensor, nameOf(outer, tensor))
  for (const { name, tensor } of stages.carried) body.names.set(tensor, `${stateInput(name)}:carried`)
  const nodeCount = emitLoop(outer, body, stages, sliced, minibatches)

  const finals = [...stages.counters, ...stages.stacked]
  emitNodes(outer, [...Object.values(stages.results), ...finals.map(([, final]) => final)])
  for (const [name, final] of finals) exportAs(outer, final, stateOutput(name))
  for (const [name, tensor] of Object.entries(stages.results)) exportAs(outer, tensor, resultOutput(name))
  if (continueWhile !== undefined) {
    // The loop can end early, so the first axis of a result (the iterations) has no fixed size: leave out its shape.
    graph.outputs.forEach(({ name, dtype }, index) => {
      if (name.startsWith(resultOutput(""))) graph.outputs[index] = { name, dtype }
    })
    graph.outputs.push({ name: iterationsOutput, dtype: "i64" })
  }
  return nodeCount
}

const gather = (from: string, rows: string, to: string) =>
  ({ op: "Gather", inputs: [from, rows], outputs: [to], attributes: { axis: 0 } }) as const

/**
 * Emits the loop, and returns the number of nodes in its body. `sliced` has pairs of tensors: the body reads the first,
 * and the second, which is computed before the loop, has its values for all iterations. Without `continueWhile` the
 * loop is a `Scan`, which slices its inputs and stacks its outputs by itself. Otherwise it is a `Loop`, which can end
 * early but needs a node for each slice.
 */
const emitLoop = (
  outer: Scope,
  body: Scope,
  { carried, collected, gatheredInside }: Stages,
  sliced: ReadonlyArray<readonly [Tensor, Tensor]>,
  { batch, count, continueWhile }: Minibatches,
): number => {
  if (continueWhile === undefined && carried.length === 0 && collected.size === 0) return 0
  const { nodes, inputs, outputs } = body.graph
  const scanned: Array<string> = []
  const slice = (whole: string, value: OnnxValue): void => {
    if (continueWhile !== undefined) return void nodes.push(gather(whole, "iteration", value.name))
    scanned.push(whole)
    inputs.push(value)
  }
  if (continueWhile !== undefined)
    inputs.push({ name: "iteration", dtype: "i64", shape: [] }, { name: "goesOn", dtype: "bool", shape: [] })
  for (const { tensor } of carried) inputs.push({ name: nameOf(body, tensor), dtype: "f32", shape: tensor.shape })
  for (const [tensor, whole] of sliced) {
    const name = body.fresh("slice")
    body.names.set(tensor, name)
    slice(nameOf(outer, whole), { name, dtype: tensor.dtype, shape: tensor.shape })
  }
  // A Scan has one iteration for each row of its scanned inputs, so it needs at least one such input.
  if (gatheredInside.length > 0 || (continueWhile === undefined && scanned.length === 0))
    slice(feedInput(indicesFeed), { name: "rows", dtype: "i32", shape: [batch] })
  for (const [name, tensor] of gatheredInside) {
    nodes.push(gather(feedInput(name), "rows", `batch:${name}`))
    body.names.set(tensor, `batch:${name}`)
  }

  // The body's outputs are the condition if there is one, the states, then the tensors that ops after the loop read.
  const condition = continueWhile === undefined ? [] : [continueWhile]
  emitNodes(body, [...condition, ...carried.map(({ next }) => next), ...collected.keys()])
  for (const tensor of condition) exportAs(body, tensor, "goesOn:next")
  for (const { name, next } of carried) exportAs(body, next, `${stateOutput(name)}:carried`)
  for (const [index, tensor] of [...collected.keys()].entries()) exportAs(body, tensor, `collected:${index}`)

  const states = carried.map(({ name }) => stateInput(name))
  const results = carried.map(({ name, tensor }) => {
    outer.graph.outputs.push({ name: stateOutput(name), dtype: "f32", shape: tensor.shape })
    return stateOutput(name)
  })
  for (const whole of collected.values()) {
    const name = outer.fresh("collected")
    outer.names.set(whole, name)
    results.push(name)
  }
  if (continueWhile === undefined) {
    const attributes = { body: body.graph, num_scan_inputs: scanned.length }
    outer.graph.nodes.push({ op: "Scan", inputs: [...states, ...scanned], outputs: results, attributes })
  } else {
    // A Loop stacks this output, so its length is the number of iterations.
    nodes.push({ op: "Identity", inputs: ["iteration"], outputs: ["iteration:each"] })
    outputs.push({ name: "iteration:each", dtype: "i64", shape: [] })
    outer.graph.initializers.push(
      { name: "count", dtype: "i64", shape: [], data: BigInt64Array.of(BigInt(count)) },
      { name: "true", dtype: "bool", shape: [], data: Uint8Array.of(1) },
    )
    const loopOutputs = [...results, iterationsOutput]
    const attributes = { body: body.graph }
    outer.graph.nodes.push({ op: "Loop", inputs: ["count", "true", ...states], outputs: loopOutputs, attributes })
  }
  return nodes.length
}
