import { indicesFeed, type ProgramSpec } from "../Program.ts"
import { type Tensor, topologicalOrder } from "../Tensor.ts"
import { feedShapes, rootsOf } from "../validate.ts"
import { emitNodes, type Scope } from "./nodes.ts"
import { Graph, modelBytes } from "./model.ts"

/**
 * A program as an ONNX model. State comes in as inputs and goes out as outputs, so that what one run gives is what the
 * next is fed. Minibatches are one `Loop`, whose body gathers its rows by the index matrix: a whole update in one call.
 */
export interface Emitted {
  readonly bytes: Uint8Array
  /** Nodes of the graph that runs once a minibatch, or once. */
  readonly nodeCount: number
}

/** The model's name for a state tensor on its way in and out. */
export const stateInput = (name: string): string => `state:${name}`
export const stateOutput = (name: string): string => `next:${name}`
export const resultOutput = (name: string): string => `result:${name}`
/** How many minibatches were done. */
export const iterationsOutput = "iterations"

export const emit = (spec: ProgramSpec): Emitted =>
  spec.minibatches === undefined ? emitOnce(spec) : emitLoop(spec, spec.minibatches)

/** State that a run replaces. */
export const changing = (
  spec: ProgramSpec,
): ReadonlyArray<readonly [string, { readonly tensor: Tensor; readonly next: Tensor }]> =>
  Object.entries(spec.state).flatMap(([name, { tensor, next }]) =>
    next === undefined ? [] : [[name, { tensor, next }] as const],
  )

const declareInputs = (graph: Graph, spec: ProgramSpec): void => {
  for (const [name, { shape, dtype }] of Object.entries(feedShapes(spec))) graph.inputs.push({ name, shape, dtype })
  for (const [name, { tensor }] of Object.entries(spec.state))
    graph.inputs.push({ name: stateInput(name), shape: tensor.shape, dtype: "f32" })
}

const emitOnce = (spec: ProgramSpec): Emitted => {
  const graph = new Graph(spec.name)
  declareInputs(graph, spec)
  const scope: Scope = { graph, constants: graph, names: new Map(), fresh: counter() }
  for (const [name, tensor] of Object.entries(spec.inputs)) scope.names.set(tensor, name)
  for (const [name, { tensor }] of Object.entries(spec.state)) scope.names.set(tensor, stateInput(name))
  emitNodes(scope, topologicalOrder(rootsOf(spec)), rootsOf(spec))
  for (const [name, { next }] of changing(spec)) exportAs(scope, next, stateOutput(name))
  for (const [name, tensor] of Object.entries(spec.outputs)) exportAs(scope, tensor, resultOutput(name))
  return { bytes: modelBytes(graph), nodeCount: graph.nodes.length }
}

const emitLoop = (spec: ProgramSpec, minibatches: NonNullable<ProgramSpec["minibatches"]>): Emitted => {
  const graph = new Graph(spec.name)
  declareInputs(graph, spec)
  const body = new Graph("minibatch")
  const fresh = counter()
  const scope: Scope = { graph: body, constants: graph, names: new Map(), fresh }
  body.inputs.push({ name: "iteration", dtype: "i64", shape: [] }, { name: "goesOn", dtype: "bool", shape: [] })
  body.nodes.push({ op: "Gather", inputs: [indicesFeed, "iteration"], outputs: ["rows"], attributes: { axis: 0 } })
  for (const [name, tensor] of Object.entries(spec.inputs)) {
    const gathered = minibatches.gathered.includes(name)
    const local = gathered ? `${name}:batch` : name
    if (gathered) body.nodes.push({ op: "Gather", inputs: [name, "rows"], outputs: [local], attributes: { axis: 0 } })
    scope.names.set(tensor, local)
  }
  const carried = changing(spec)
  const fixed = new Set(carried.map(([name]) => name))
  for (const [name, { tensor }] of Object.entries(spec.state)) {
    // State that no run changes is read from outside the loop.
    const local = fixed.has(name) ? `${stateInput(name)}:carried` : stateInput(name)
    if (fixed.has(name)) body.inputs.push({ name: local, dtype: "f32", shape: tensor.shape })
    scope.names.set(tensor, local)
  }
  emitNodes(scope, topologicalOrder(rootsOf(spec)), rootsOf(spec))
  if (minibatches.continueWhile === undefined) {
    body.nodes.push({ op: "Identity", inputs: ["goesOn"], outputs: ["goesOn:next"] })
    body.outputs.push({ name: "goesOn:next", dtype: "bool", shape: [] })
  } else exportAs(scope, minibatches.continueWhile, "goesOn:next")
  for (const [name, { next }] of carried) exportAs(scope, next, `${stateOutput(name)}:carried`)
  for (const [name, tensor] of Object.entries(spec.outputs)) exportAs(scope, tensor, `${resultOutput(name)}:each`)
  // Says how many iterations there were: its rows are counted.
  body.nodes.push({ op: "Identity", inputs: ["iteration"], outputs: ["iteration:each"] })
  body.outputs.push({ name: "iteration:each", dtype: "i64", shape: [] })

  graph.initializers.push(
    { name: "count", dtype: "i64", shape: [], data: BigInt64Array.of(BigInt(minibatches.count)) },
    { name: "true", dtype: "bool", shape: [], data: Uint8Array.of(1) },
  )
  const outputs = [
    ...carried.map(([name]) => stateOutput(name)),
    ...Object.keys(spec.outputs).map(resultOutput),
    iterationsOutput,
  ]
  graph.nodes.push({
    op: "Loop",
    inputs: ["count", "true", ...carried.map(([name]) => stateInput(name))],
    outputs,
    attributes: { body },
  })
  for (const [name, { tensor }] of carried)
    graph.outputs.push({ name: stateOutput(name), dtype: "f32", shape: tensor.shape })
  for (const [name, { dtype }] of Object.entries(spec.outputs)) graph.outputs.push({ name: resultOutput(name), dtype })
  graph.outputs.push({ name: iterationsOutput, dtype: "i64" })
  return { bytes: modelBytes(graph), nodeCount: body.nodes.length }
}

/** Gives a tensor a name as an output, which a tensor may have only one of. */
const exportAs = ({ graph, names }: Scope, tensor: Tensor, name: string): void => {
  graph.nodes.push({ op: "Identity", inputs: [names.get(tensor) ?? ""], outputs: [name] })
  graph.outputs.push({ name, dtype: tensor.dtype, shape: tensor.shape })
}

const counter = (): ((prefix: string) => string) => {
  let next = 0
  return (prefix) => `${prefix}${next++}`
}
