/** Exports programs with their weights as ONNX model files that any ONNX runtime can run. */
import { Record } from "effect"
import { fail } from "../ops/core.ts"
import type { ProgramSpec } from "../Program.ts"
import { simplify } from "../simplify.ts"
import { topologicalOrder } from "../Tensor.ts"
import { validate } from "../validate.ts"
import { type Embedded, embedding, embeddedKey } from "./embedded.ts"
import { withFreeRows } from "./freeRows.ts"
import { Graph, modelEncoder } from "./model.ts"
import { emitNodes, exportAs } from "./nodes.ts"
import { counter, type Scope, type ScopeTarget } from "./scope.ts"
import { partition } from "./stateParts.ts"

/** The target is any ONNX runtime, with any number of threads. */
const standard: ScopeTarget = { runtimeOps: false, parallel: true }

interface OnnxExportOptions {
  /** The values of all states of the program, by name. The model contains them as constants. */
  readonly weightsAsInitializers: Readonly<Record<string, Float32Array>>
  /**
   * A text and more programs with the same weights, for the model's metadata; `readEmbedded` reads them. `main` is the
   * exported program itself (for one row, if the model allows any number), unless `programs` has another `main`.
   */
  readonly embedded?: Embedded | undefined
}

/**
 * Returns the bytes of an ONNX model file with a program and its weights; the caller writes the file. Inputs and
 * outputs keep their names. It is standard ONNX (opset 18), so every ONNX runtime runs it. The model does not update
 * its state: export a policy, not an update.
 *
 * If `spec` is a function that returns the program for a number of rows, the model allows any number of rows, and the
 * first axis of its inputs and outputs has the name `batch`. Throws a `GraphError` if the program computes with the
 * number of rows itself, or has an input without rows.
 *
 * @example
 * ```ts
 * const [x, w] = [Graph.input("x", [1, 2]), Graph.state("w", [2, 1])]
 * const policy = { name: "policy", inputs: { x }, state: { w: { tensor: w } }, outputs: { y: Graph.matmul(x, w) } }
 * const bytes = toOnnx(policy, { weightsAsInitializers: { w: Float32Array.of(1, 2) } })
 * ```
 */
export const toOnnx = (
  spec: ProgramSpec | ((rows: number) => ProgramSpec),
  { weightsAsInitializers, embedded }: OnnxExportOptions,
): Uint8Array => {
  const main = (): ProgramSpec => (typeof spec === "function" ? spec(1) : spec)
  const programs = embedded && { main: embedded.programs.main ?? main(), ...embedded.programs }
  return onnxTemplate(spec, programs)(weightsAsInitializers, embedded?.about)
}

/** Returns the bytes of a model with these values of its states, and with a text in the metadata. */
export type OnnxTemplate = (weights: OnnxExportOptions["weightsAsInitializers"], about?: string) => Uint8Array

/**
 * Does the work of `toOnnx` that does not depend on the values of the states, which is nearly all of it. A training keeps the
 * template, and fills in its weights at each checkpoint. `programs` are for the metadata.
 */
export const onnxTemplate = (
  spec: ProgramSpec | ((rows: number) => ProgramSpec),
  programs: Embedded["programs"] = {},
): OnnxTemplate => {
  const { inParts, filled } = partition()
  const simplified = (program: ProgramSpec): ProgramSpec => simplify(inParts(exportable(program)))
  const graph =
    typeof spec === "function"
      ? withFreeRows((rows) => graphOf(simplified(spec(rows))), standard)
      : graphOf(simplified(spec))
  const read = new Set(graph.nodes.flatMap(({ inputs }) => inputs))
  const embeddedIn = embedding(Record.map(programs, simplified), graph.initializers)
  const encoded = modelEncoder(graph)
  return (weights, about) => {
    const all = filled(weights)
    const initializers = all.filter(({ name }) => read.has(name))
    return encoded(initializers, about === undefined ? {} : { [embeddedKey]: embeddedIn(about, all, read) })
  }
}

/** Returns the program. Throws a `GraphError` if it cannot be exported. */
const exportable = (spec: ProgramSpec): ProgramSpec => {
  validate(spec)
  if (spec.minibatches !== undefined)
    fail("export", `${spec.name} has minibatches; expected a program that acts, not one that learns`)
  const shared = Object.keys(spec.outputs).find((name) => name in spec.inputs)
  if (shared !== undefined)
    fail("export", `"${shared}" is both an input and an output of ${spec.name}; use different names`)
  return spec
}

/** Emits a program. Its states keep their names; the graph has no values for them. */
const graphOf = ({ name, inputs, outputs }: ProgramSpec): Graph => {
  const graph = new Graph(name)
  const names = [...Object.keys(inputs), ...Object.keys(outputs)]
  const scope: Scope = { graph, constants: graph, names: new Map(), fresh: counter(new Set(names)), ...standard }
  for (const tensor of topologicalOrder(Object.values(outputs)))
    if (tensor.op.kind === "state") scope.names.set(tensor, tensor.op.name)
  for (const [name, tensor] of Object.entries(inputs)) {
    graph.inputs.push({ name, shape: tensor.shape, dtype: tensor.dtype })
    scope.names.set(tensor, name)
  }
  emitNodes(scope, Object.values(outputs))
  for (const [name, tensor] of Object.entries(outputs)) exportAs(scope, tensor, name)
  return graph
}
