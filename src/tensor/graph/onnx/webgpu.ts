/**
 * Rewrites a model for ONNX Runtime's WebGPU provider. A node for which the provider has no kernel runs on the CPU: its
 * inputs are copied from the GPU, its results are copied back, and the GPU waits. The loop `Scan` is such a node, so
 * all its states would be copied in each iteration.
 *
 * - A `Scan` becomes its iterations, one after another, if these are not too many nodes.
 * - `LogSoftmax`, `And`, `Or` and `Sign` become nodes that have kernels.
 * - A `Split` into more parts than a kernel can have buffers, which fails when it runs, becomes slices.
 *
 * Loops that can end early (`Loop`), and the conversion of `ArgMax`'s result from int64 to int32, stay on the CPU.
 */
import { elementType, Graph, type Initializer, type OnnxNode, type OnnxValue } from "./model.ts"

/** A `Scan` with more nodes in all iterations together stays as it is, because loading the model would take too long. */
const mostUnrolled = 1 << 15

/** The number of buffers that a kernel can use on every device. A `Split` uses one for its input and one for each output. */
const mostBuffers = 8

/** Returns the rewritten graph of a model. `count` is the number of iterations of its loop. */
export const forWebGpu = (graph: Graph, count: number): Graph => {
  const constants: Array<Initializer> = [...graph.initializers]
  const result = rewritten(graph, constants, count)
  for (const constant of constants) result.initializers.push(constant)
  return result
}

/** Returns a rewritten graph. New constants are added to `constants`, which has the constants of the model. */
const rewritten = (graph: Graph, constants: Array<Initializer>, count: number): Graph => {
  const result = new Graph(graph.name)
  result.inputs.push(...graph.inputs)
  result.outputs.push(...graph.outputs)
  const scope: NodesAndConstants = { nodes: result.nodes, constants }
  for (const node of graph.nodes) {
    const body = node.attributes?.body
    if (!(body instanceof Graph)) push(scope, node)
    else if (node.op === "Scan" && count * body.nodes.length <= mostUnrolled) unroll(scope, node, body, count)
    else push(scope, { ...node, attributes: { ...node.attributes, body: rewritten(body, constants, count) } })
  }
  return result
}

/** The nodes of a graph so far, and the constants of the model. */
interface NodesAndConstants {
  readonly nodes: Array<OnnxNode>
  readonly constants: Array<Initializer>
}

/** Adds the iterations of a `Scan` as nodes. */
const unroll = (scope: NodesAndConstants, scan: OnnxNode, body: Graph, count: number): void => {
  const scanned = Number(scan.attributes?.num_scan_inputs)
  const states = body.inputs.length - scanned
  const collected: ReadonlyArray<Array<string>> = body.outputs.slice(states).map(() => [])
  let current = scan.inputs.slice(0, states)
  for (let iteration = 0; iteration < count; iteration++) {
    const names = new Map<string, string>()
    const renamed = (name: string): string => names.get(name) ?? name
    body.inputs.forEach(({ name }, index) => {
      if (index < states) return void names.set(name, current[index])
      const slice = `${name}@${iteration}`
      push(scope, {
        op: "Gather",
        inputs: [scan.inputs[index], constant(scope, "i32", [iteration], [])],
        outputs: [slice],
        attributes: { axis: 0 },
      })
      names.set(name, slice)
    })
    for (const { outputs } of body.nodes) for (const name of outputs) names.set(name, `${name}@${iteration}`)
    if (iteration === count - 1)
      body.outputs.slice(0, states).forEach(({ name }, index) => names.set(name, scan.outputs[index]))
    for (const node of body.nodes)
      push(scope, { ...node, inputs: node.inputs.map(renamed), outputs: node.outputs.map(renamed) })
    current = body.outputs.slice(0, states).map(({ name }) => renamed(name))
    body.outputs.slice(states).forEach(({ name }, index) => collected[index].push(renamed(name)))
  }
  collected.forEach((parts, index) => stack(scope, parts, scan.outputs[states + index], body.outputs[states + index]))
}

/** Adds nodes that make one tensor of the values of all iterations, along a new first axis. */
const stack = (scope: NodesAndConstants, parts: ReadonlyArray<string>, to: string, { dtype }: OnnxValue): void => {
  const axes = constant(scope, "i64", [0], [1])
  // There is no kernel that concatenates bools.
  const isBool = dtype === "bool"
  const rows = parts.map((part, index) => {
    const number = isBool ? `${to}@${index}:number` : part
    if (isBool) push(scope, { op: "Cast", inputs: [part], outputs: [number], attributes: { to: elementType.i32 } })
    const row = `${to}@${index}`
    push(scope, { op: "Unsqueeze", inputs: [number, axes], outputs: [row] })
    return row
  })
  const numbers = isBool ? `${to}:numbers` : to
  push(scope, { op: "Concat", inputs: rows, outputs: [numbers], attributes: { axis: 0 } })
  if (isBool) push(scope, { op: "Cast", inputs: [numbers], outputs: [to], attributes: { to: elementType.bool } })
}

/** Adds a node, or if it has no kernel, nodes that have kernels and compute the same. */
const push = (scope: NodesAndConstants, node: OnnxNode): void => {
  const { op, inputs, outputs } = node
  const [output] = outputs
  /** Adds a node with a new name for its output, and returns that name. */
  const step = (
    name: string,
    stepOp: string,
    stepInputs: ReadonlyArray<string>,
    attributes: OnnxNode["attributes"] = {},
  ) => {
    const ownName = `${output}:${name}`
    scope.nodes.push({ op: stepOp, inputs: stepInputs, outputs: [ownName], attributes })
    return ownName
  }
  const finish = (lastOp: string, lastInputs: ReadonlyArray<string>, attributes: OnnxNode["attributes"] = {}): void =>
    void scope.nodes.push({ op: lastOp, inputs: lastInputs, outputs: [output], attributes })
  switch (op) {
    case "LogSoftmax": {
      const axes = constant(scope, "i64", [-1], [1])
      const shifted = step("shifted", "Sub", [
        inputs[0],
        step("largest", "ReduceMax", [inputs[0], axes], { keepdims: 1 }),
      ])
      const sum = step("sum", "ReduceSum", [step("exp", "Exp", [shifted]), axes], { keepdims: 1 })
      return finish("Sub", [shifted, step("log", "Log", [sum])])
    }
    case "And":
    case "Or": {
      const numbers = inputs.map((input, index) => step(`number${index}`, "Cast", [input], { to: elementType.f32 }))
      const joined = step("joined", op === "And" ? "Mul" : "Add", numbers)
      return finish("Greater", [joined, constant(scope, "f32", [0.5], [])])
    }
    case "Sign": {
      const zero = constant(scope, "f32", [0], [])
      const side = (name: string, comparison: string) =>
        step(`${name}:number`, "Cast", [step(name, comparison, [inputs[0], zero])], { to: elementType.f32 })
      return finish("Sub", [side("above", "Greater"), side("below", "Less")])
    }
    case "Split": {
      const sizes = scope.constants.find(({ name }) => name === inputs[1])?.data ?? []
      if (outputs.length < mostBuffers) return void scope.nodes.push(node)
      let start = 0
      outputs.forEach((part, index) => {
        const end = start + Number(sizes[index])
        const bounds = [[start], [end], [Number(node.attributes?.axis)]].map((values) =>
          constant(scope, "i64", values, [1]),
        )
        scope.nodes.push({ op: "Slice", inputs: [inputs[0], ...bounds], outputs: [part] })
        start = end
      })
      return
    }
    default:
      scope.nodes.push(node)
  }
}

/**
 * Adds a constant and returns its name. If this file has already added an equal constant, returns the name of that one.
 */
const constant = (
  scope: NodesAndConstants,
  dtype: "f32" | "i32" | "i64",
  values: ReadonlyArray<number>,
  shape: ReadonlyArray<number>,
): string => {
  const name = `webgpu:${dtype}:${shape.length}:${values.join()}`
  if (!scope.constants.some((other) => other.name === name))
    scope.constants.push({
      name,
      dtype,
      shape,
      data:
        dtype === "f32"
          ? Float32Array.from(values)
          : dtype === "i32"
            ? Int32Array.from(values)
            : BigInt64Array.from(values.map(BigInt)),
    })
  return name
}
