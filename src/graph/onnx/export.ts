import { Record } from "effect"
import { constant } from "../ops.ts"
import { fail, make } from "../ops/core.ts"
import type { ProgramSpec } from "../Program.ts"
import { simplify } from "../simplify.ts"
import { sizeOf, type Tensor, topologicalOrder } from "../Tensor.ts"
import { validate } from "../validate.ts"
import { type Embedded, embed, embeddedKey } from "./embedded.ts"
import { Graph, modelBytes } from "./model.ts"
import { emitNodes, exportAs } from "./nodes.ts"
import { counter, type Scope, type Target } from "./scope.ts"

/** Any ONNX runtime, with any number of threads. */
const standard: Target = { runtimeOps: false, parallel: true }

export interface ExportOptions {
  /** The values of all states of the program, by name. The model contains them as constants. */
  readonly weightsAsInitializers: Readonly<Record<string, Float32Array>>
  /**
   * A text, and more programs of the same weights, for the model's metadata. `readEmbedded` reads them, with the program
   * itself as `main`.
   */
  readonly embedded?: Embedded
}

/**
 * Returns the bytes of an ONNX model file with a program and its weights; the caller writes the file. Inputs and
 * outputs keep their names. It is standard ONNX (opset 18), so every ONNX runtime runs it. The model does not update
 * its state: export a policy, not an update.
 *
 * @example
 * ```ts
 * const policy = { name: "policy", inputs: { x }, state: { w: { tensor: w } }, outputs: { y: matmul(x, w) } }
 * const bytes = toOnnx(policy, { weightsAsInitializers: { w: Float32Array.of(1, 2) } })
 * ```
 */
export const toOnnx = (spec: ProgramSpec, { weightsAsInitializers: weights, embedded }: ExportOptions): Uint8Array => {
  validate(spec)
  if (spec.minibatches !== undefined)
    fail("export", `${spec.name} has minibatches; expected a program that acts, not one that learns`)
  const shared = Object.keys(spec.outputs).find((name) => name in spec.inputs)
  if (shared !== undefined)
    fail("export", `"${shared}" is both an input and an output of ${spec.name}; use different names`)
  const main = simplify(withWeights(spec, weights))
  const { inputs, outputs } = main

  const graph = new Graph(spec.name)
  const names = [...Object.keys(inputs), ...Object.keys(outputs)]
  const scope: Scope = { graph, constants: graph, names: new Map(), fresh: counter(new Set(names)), ...standard }
  for (const [name, tensor] of Object.entries(inputs)) {
    graph.inputs.push({ name, shape: tensor.shape, dtype: tensor.dtype })
    scope.names.set(tensor, name)
  }
  emitNodes(scope, Object.values(outputs))
  for (const [name, tensor] of Object.entries(outputs)) exportAs(scope, tensor, name)
  if (embedded === undefined) return modelBytes(graph)
  const { about, programs } = embedded
  const others = Record.map(programs, (program) => simplify(withWeights(program, weights)))
  return modelBytes(graph, { [embeddedKey]: embed({ about, programs: { main, ...others } }, graph.initializers) })
}

/** Replaces states by constants, so that simplification can compute with them. */
const withWeights = (spec: ProgramSpec, weights: ExportOptions["weightsAsInitializers"]): ProgramSpec => {
  const replacements = new Map<Tensor, Tensor>()
  const replacementOf = (tensor: Tensor): Tensor => replacements.get(tensor) ?? tensor
  for (const tensor of topologicalOrder(Object.values(spec.outputs))) {
    const { op, inputs, shape, dtype } = tensor
    if (op.kind === "state") {
      const data = weights[op.name]
      if (data === undefined) return fail("export", `the weights for state "${op.name}" are missing`, tensor)
      if (data.length !== sizeOf(shape))
        return fail("export", `state "${op.name}": found ${data.length} weights`, tensor)
      replacements.set(tensor, constant(data, shape))
    } else if (inputs.some((input) => replacementOf(input) !== input))
      replacements.set(tensor, make(op, inputs.map(replacementOf), shape, dtype))
  }
  return { name: spec.name, inputs: spec.inputs, state: {}, outputs: Record.map(spec.outputs, replacementOf) }
}
