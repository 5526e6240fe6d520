import { indicesFeed, type Minibatches, type ProgramSpec } from "../Program.ts"
import type { Tensor } from "../Tensor.ts"
import { feedShapes, rootsOf } from "../validate.ts"
import { Graph, modelBytes, type Value } from "./model.ts"
import { counter, emitNodes, exportAs, nameOf, type Scope } from "./nodes.ts"
import { type Stages, stagesOf } from "./stages.ts"

/**
 * Translates a program to an ONNX model. State is both input and output: the outputs of a run are the inputs of the next.
 * Minibatches are a loop inside of the model, so that one call does a whole update: a `Scan`, or a `Loop` if the program
 * can end it early.
 */
export interface Emitted {
  readonly bytes: Uint8Array
  readonly inputs: ReadonlyArray<string>
  readonly outputs: ReadonlyArray<string>
  /** The number of nodes that run for each minibatch, without the nodes before and after the loop. */
  readonly nodeCount: number
}

/** Returns the model's name for a feed. Names of inputs and outputs have prefixes that no other name in the model has. */
export const feedInput = (name: string): string => `feed:${name}`
export const stateInput = (name: string): string => `state:${name}`
export const stateOutput = (name: string): string => `next:${name}`
export const resultOutput = (name: string): string => `result:${name}`
/** The name of an output with one element for each minibatch that ran. Only programs that can end early have it. */
export const iterationsOutput = "iterations"

export const emit = (spec: ProgramSpec): Emitted => {
  const graph = new Graph(spec.name)
  for (const [name, { shape, dtype }] of Object.entries(feedShapes(spec)))
    graph.inputs.push({ name: feedInput(name), shape, dtype })
  for (const [name, { tensor }] of Object.entries(spec.state))
    graph.inputs.push({ name: stateInput(name), shape: tensor.shape, dtype: "f32" })
  const nodeCount =
    spec.minibatches === undefined ? emitOnce(graph, spec) : emitMinibatches(graph, spec, spec.minibatches)
  const names = (values: ReadonlyArray<Value>) => values.map(({ name }) => name)
  return { bytes: modelBytes(graph), inputs: names(graph.inputs), outputs: names(graph.outputs), nodeCount }
}

/** Lists the states that a run replaces by their next values. */
export const changing = (
  spec: ProgramSpec,
): ReadonlyArray<readonly [string, { readonly tensor: Tensor; readonly next: Tensor }]> =>
  Object.entries(spec.state).flatMap(([name, { tensor, next }]) =>
    next === undefined ? [] : [[name, { tensor, next }] as const],
  )

const emitOnce = (graph: Graph, spec: ProgramSpec): number => {
  const scope: Scope = { graph, constants: graph, names: new Map(), fresh: counter() }
  for (const [name, tensor] of Object.entries(spec.inputs)) scope.names.set(tensor, feedInput(name))
  for (const [name, { tensor }] of Object.entries(spec.state)) scope.names.set(tensor, stateInput(name))
  emitNodes(scope, rootsOf(spec))
  for (const [name, { next }] of changing(spec)) exportAs(scope, next, stateOutput(name))
  for (const [name, tensor] of Object.entries(spec.outputs)) exportAs(scope, tensor, resultOutput(name))
  return graph.nodes.length
}

const emitMinibatches = (graph: Graph, spec: ProgramSpec, minibatches: Minibatches): number => {
  const stages = stagesOf(spec, minibatches)
  const outer: Scope = { graph, constants: graph, names: new Map(), fresh: counter() }
  for (const [name, tensor] of stages.feeds) outer.names.set(tensor, feedInput(name))
  for (const [name, { tensor }] of Object.entries(spec.state)) outer.names.set(tensor, stateInput(name))

  // Compute before the loop the tensors that its body reads, and those that are sliced for each iteration.
  const { continueWhile } = minibatches
  const handedOn = [...stages.carried.map(({ next }) => next), ...(continueWhile === undefined ? [] : [continueWhile])]
  const read = new Set([...stages.body.flatMap(({ inputs }) => inputs), ...handedOn])
  const fixed = stages.fixed.filter((tensor) => read.has(tensor))
  const sliced = [...stages.series].filter(([tensor]) => read.has(tensor))
  emitNodes(outer, [...fixed, ...sliced.map(([, whole]) => whole)])

  const body: Scope = { graph: new Graph("minibatch"), constants: graph, names: new Map(), fresh: outer.fresh }
  for (const tensor of fixed) body.names.set(tensor, nameOf(outer, tensor))
  const loop: LoopParts = { outer, body, stages, sliced, minibatches }
  const nodeCount = continueWhile === undefined ? emitScan(loop) : emitLoop(loop, continueWhile)

  emitNodes(outer, [...Object.values(stages.results), ...stages.counters.map(([, final]) => final)])
  for (const [name, final] of stages.counters) exportAs(outer, final, stateOutput(name))
  for (const [name, tensor] of Object.entries(stages.results)) exportAs(outer, tensor, resultOutput(name))
  if (continueWhile !== undefined) {
    // The number of rows is unknown, so the outputs have no shape.
    graph.outputs.forEach(({ name, dtype }, index) => {
      if (name.startsWith(resultOutput(""))) graph.outputs[index] = { name, dtype }
    })
    graph.outputs.push({ name: iterationsOutput, dtype: "i64" })
  }
  return nodeCount
}

interface LoopParts {
  readonly outer: Scope
  readonly body: Scope
  readonly stages: Stages
  /** Tensors of the body that are slices of tensors computed before the loop. */
  readonly sliced: ReadonlyArray<readonly [Tensor, Tensor]>
  readonly minibatches: Minibatches
}

/** Emits the loop as a `Scan`, which slices its inputs and stacks its outputs without nodes for it. */
const emitScan = ({ outer, body, stages, sliced, minibatches }: LoopParts): number => {
  const { carried, collected, gatheredInside } = stages
  if (carried.length === 0 && collected.size === 0) return 0
  const slices: Array<string> = []
  const declareSlice = (whole: string, value: Value): void => {
    slices.push(whole)
    body.graph.inputs.push(value)
  }
  declareCarried(body, stages)
  for (const [tensor, whole] of sliced) {
    const name = body.fresh("slice")
    body.names.set(tensor, name)
    declareSlice(nameOf(outer, whole), { name, dtype: tensor.dtype, shape: tensor.shape })
  }
  // A scanned input also determines the number of iterations.
  if (gatheredInside.length > 0 || slices.length === 0)
    declareSlice(feedInput(indicesFeed), { name: "rows", dtype: "i32", shape: [minibatches.batch] })
  emitBody(body, stages)
  outer.graph.nodes.push({
    op: "Scan",
    inputs: [...carried.map(({ name }) => stateInput(name)), ...slices],
    outputs: declareResults(outer, stages),
    attributes: { body: body.graph, num_scan_inputs: slices.length },
  })
  return body.graph.nodes.length
}

/** Emits the loop as a `Loop`, which has a condition, and whose iterations slice their inputs with nodes. */
const emitLoop = ({ outer, body, stages, sliced, minibatches }: LoopParts, continueWhile: Tensor): number => {
  const { graph } = body
  const pick = (from: string, index: string, to: string): void => {
    graph.nodes.push({ op: "Gather", inputs: [from, index], outputs: [to], attributes: { axis: 0 } })
  }
  graph.inputs.push({ name: "iteration", dtype: "i64", shape: [] }, { name: "goesOn", dtype: "bool", shape: [] })
  declareCarried(body, stages)
  for (const [tensor, whole] of sliced) {
    const name = body.fresh("slice")
    body.names.set(tensor, name)
    pick(nameOf(outer, whole), "iteration", name)
  }
  if (stages.gatheredInside.length > 0) pick(feedInput(indicesFeed), "iteration", "rows")
  const condition = () => exportAs(body, continueWhile, "goesOn:next")
  emitBody(body, stages, condition, [continueWhile])
  // The rows of this output tell the number of iterations.
  graph.nodes.push({ op: "Identity", inputs: ["iteration"], outputs: ["iteration:each"] })
  graph.outputs.push({ name: "iteration:each", dtype: "i64", shape: [] })
  outer.graph.initializers.push(
    { name: "count", dtype: "i64", shape: [], data: BigInt64Array.of(BigInt(minibatches.count)) },
    { name: "true", dtype: "bool", shape: [], data: Uint8Array.of(1) },
  )
  outer.graph.nodes.push({
    op: "Loop",
    inputs: ["count", "true", ...stages.carried.map(({ name }) => stateInput(name))],
    outputs: [...declareResults(outer, stages), iterationsOutput],
    attributes: { body: graph },
  })
  return graph.nodes.length
}

const declareCarried = (body: Scope, { carried }: Stages): void => {
  for (const { name, tensor } of carried) {
    const local = `${stateInput(name)}:carried`
    body.graph.inputs.push({ name: local, dtype: "f32", shape: tensor.shape })
    body.names.set(tensor, local)
  }
}

/** Emits the body's nodes and lists its outputs: the condition if there is one, the state, then the collected tensors. */
const emitBody = (
  body: Scope,
  { carried, collected, gatheredInside }: Stages,
  exportCondition: () => void = () => {},
  more: ReadonlyArray<Tensor> = [],
): void => {
  for (const [name, tensor] of gatheredInside) {
    const local = `batch:${name}`
    body.graph.nodes.push({
      op: "Gather",
      inputs: [feedInput(name), "rows"],
      outputs: [local],
      attributes: { axis: 0 },
    })
    body.names.set(tensor, local)
  }
  emitNodes(body, [...more, ...carried.map(({ next }) => next), ...collected.keys()])
  exportCondition()
  for (const { name, next } of carried) exportAs(body, next, `${stateOutput(name)}:carried`)
  let index = 0
  for (const tensor of collected.keys()) exportAs(body, tensor, `collected:${index++}`)
}

/** Names the loop's outputs: the state at the end, then the collected tensors. */
const declareResults = (outer: Scope, { carried, collected }: Stages): ReadonlyArray<string> => {
  for (const { name, tensor } of carried)
    outer.graph.outputs.push({ name: stateOutput(name), dtype: "f32", shape: tensor.shape })
  const names = [...collected.values()].map((whole) => {
    const name = outer.fresh("collected")
    outer.names.set(whole, name)
    return name
  })
  return [...carried.map(({ name }) => stateOutput(name)), ...names]
}
