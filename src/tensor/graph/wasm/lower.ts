/**
 * Translates a program's tensors to the nodes of the wasm compiler (`ir.ts`), for `compile.ts`: movement becomes
 * strides, composed ops become maps (elementwise nodes) and reductions, and convolutions become matrix products.
 */
import { changing, type ProgramSpec, stackedStates } from "../Program.ts"
import { type DType, sizeOf, stridesOf, type Tensor, topologicalOrder } from "../Tensor.ts"
import { broadcast, Builder, insertAxis, slice, swapLast, transpose } from "./builder.ts"
import { convolution, convolutionInputGrad, convolutionWeightGrad } from "./convolution.ts"
import { isWhole, type MapFn, type Node, type Ref } from "./ir.ts"

export type Lowered = ReturnType<typeof lower>

const castFn = (from: DType, to: DType): MapFn => {
  if (from === to) return "copy"
  return to === "i32" ? "toInt" : to === "f32" ? "toFloat" : "toBool"
}

/** Computes x − max over the last axis, exp(x − max), and the sum of these exponentials. */
const exponentials = (build: Builder, x: Ref): { readonly shifted: Ref; readonly exp: Ref; readonly sum: Ref } => {
  const last = x.shape.length - 1
  const max = insertAxis(build.reduce("max", x, [last]), last)
  const shifted = build.map("sub", [x, max], x.shape, "f32")
  const exp = build.map("exp", [shifted], x.shape, "f32")
  return { shifted, exp, sum: insertAxis(build.reduce("sum", exp, [last]), last) }
}

/** Computes the smallest index at which the maximum along an axis is reached; `index` is the `iota` of the axis. */
const argMax = (build: Builder, x: Ref, axis: number, index: Ref): Ref => {
  const size = x.shape[axis]
  const max = insertAxis(build.reduce("max", x, [axis]), axis)
  const isLargest = build.map("equal", [x, max], x.shape, "bool")
  const last = build.constant(Int32Array.of(size - 1), [], "i32")
  const candidates = build.map("where", [isLargest, index, last], x.shape, "i32")
  return build.reduce("min", candidates, [axis])
}

/** Makes a constant with the numbers 0, 1, … size − 1 along one axis; its other axes have size 1. */
const iota = (build: Builder, size: number, axis: number, rank: number): Ref => {
  const data = Int32Array.from({ length: size }, (_, i) => i)
  return build.constant(data, new Array<number>(rank).fill(1).with(axis, size), "i32")
}

/** Makes a map of two inputs; for the constant exponents 1 to 3, products replace the slower power. */
const binary = (build: Builder, tensor: Tensor, fn: MapFn, inputs: ReadonlyArray<Ref>): Ref => {
  const exponent = inputs.length === 2 ? inputs[1].node.work : undefined
  if (fn === "pow" && exponent?.kind === "constant" && sizeOf(inputs[1].node.shape) === 1) {
    const [x] = inputs
    if (exponent.data[0] === 1) return build.map("copy", [x], tensor.shape, "f32")
    if (exponent.data[0] === 2) return build.map("mul", [x, x], tensor.shape, "f32")
    if (exponent.data[0] === 3) {
      return build.map("mul", [build.map("mul", [x, x], tensor.shape, "f32"), x], tensor.shape, "f32")
    }
  }
  return build.map(fn, inputs, tensor.shape, tensor.dtype)
}

/** Returns the bytes from which a matrix of floats is cast, if it is, because products read bytes, too. */
const bytesOf = (matrix: Ref): Ref => {
  const { inputs, work } = matrix.node
  const isCast = work.kind === "map" && work.fn === "toFloat" && inputs[0].node.dtype === "i8" && isWhole(inputs[0])
  return isCast && matrix.strides.slice(-2).includes(1) ? { ...matrix, node: inputs[0].node } : matrix
}

// oxlint-disable-next-line max-lines-per-function -- a table of all ops, each with its nodes
const lowerTensor = (build: Builder, tensor: Tensor, inputs: ReadonlyArray<Ref>): Ref => {
  const { op, shape, dtype } = tensor
  const [x, y] = inputs
  switch (op.kind) {
    case "constant":
      return build.constant(op.data, shape, dtype)
    case "unary":
    case "compare":
    case "logical":
      return build.map(op.fn, inputs, shape, dtype)
    case "binary":
      return binary(build, tensor, op.fn, inputs)
    case "not":
    case "where":
      return build.map(op.kind, inputs, shape, dtype)
    case "clip":
      return build.map({ clip: [op.min, op.max] }, inputs, shape, dtype)
    case "cast":
      return x.node.dtype === dtype ? x : build.map(castFn(x.node.dtype, dtype), inputs, shape, dtype)
    case "stopGradient":
      return x
    case "matmul":
      return build.matmul(op.transposeA ? swapLast(x) : x, bytesOf(op.transposeB ? swapLast(y) : y))
    case "conv2d":
      return convolution(build, op, x, y, shape)
    case "conv2dInputGrad":
      return convolutionInputGrad(build, op, x, y, shape)
    case "conv2dWeightGrad":
      return convolutionWeightGrad(build, op, x, y, shape)
    case "reduce": {
      if (op.axes.length === 0) return x
      const reduced = build.reduce(op.fn === "mean" ? "sum" : op.fn, x, op.axes)
      const count = op.axes.reduce((product, axis) => product * x.shape[axis], 1)
      const value = op.fn === "mean" ? build.map("div", [reduced, build.scalar(count)], reduced.shape, "f32") : reduced
      return build.reshape(value, shape)
    }
    case "argMax":
      return argMax(build, x, op.axis, iota(build, x.shape[op.axis], op.axis, x.shape.length))
    case "softmax": {
      const { exp, sum } = exponentials(build, x)
      return build.map("div", [exp, sum], shape, "f32")
    }
    case "logSoftmax": {
      const { shifted, sum } = exponentials(build, x)
      return build.map("sub", [shifted, build.map("log", [sum], sum.shape, "f32")], shape, "f32")
    }
    case "cumSum":
      return build.node({ ...op, kind: "scan" }, [x], shape, dtype)
    case "reshape":
      return build.reshape(x, shape)
    case "transpose":
      return transpose(x, op.permutation)
    case "broadcastTo":
      return broadcast(x, shape)
    case "slice":
      return slice(x, op.starts, shape)
    case "concat": {
      const strides = stridesOf(shape)
      let position = 0
      const pieces = inputs.map((input) => {
        const piece = { offset: position * strides[op.axis], strides }
        position += input.shape[op.axis]
        return piece
      })
      return build.node({ kind: "assemble", pieces, fill: undefined, accumulate: false }, inputs, shape, dtype)
    }
    case "pad": {
      const strides = stridesOf(shape)
      const offset = op.before.reduce((sum, before, axis) => sum + before * strides[axis], 0)
      const pieces = [{ offset, strides }]
      return build.node({ kind: "assemble", pieces, fill: op.value, accumulate: false }, inputs, shape, dtype)
    }
    case "gather": {
      const width = sizeOf(x.shape.slice(1))
      return build.node({ kind: "gather", width }, [build.contiguous(x), build.contiguous(y)], shape, dtype)
    }
    case "scatterAdd": {
      const width = sizeOf(shape.slice(1))
      return build.node({ kind: "scatterAdd", width }, [build.contiguous(x), build.contiguous(y)], shape, dtype)
    }
    case "oneHot": {
      const index = iota(build, op.depth, shape.length - 1, shape.length)
      const at = insertAxis(x, x.shape.length)
      return build.map("toFloat", [build.map("equal", [at, index], shape, "bool")], shape, "f32")
    }
    case "input":
    case "state":
      throw new Error(`lower: ${op.kind} "${op.name}" is not declared in the program`)
  }
}

/** Translates a whole program. Inputs and states that no op reads have nodes too, because callers can write them. */
export const lower = (spec: ProgramSpec) => {
  const build = new Builder()
  const refs = new Map<Tensor, Ref>()
  const inputs = new Map<string, Node>()
  const states = new Map<string, Node>()
  const minibatches = spec.minibatches

  for (const [name, tensor] of Object.entries(spec.inputs)) {
    const phase = minibatches === undefined || minibatches.gathered.includes(name) ? 2 : 1
    const ref = build.node({ kind: "leaf", source: "input", name }, [], tensor.shape, tensor.dtype, phase)
    refs.set(tensor, ref)
    inputs.set(name, ref.node)
  }
  for (const [name, { tensor, next }] of Object.entries(spec.state)) {
    const phase = next === undefined || next === tensor ? 0 : 2
    const ref = build.node({ kind: "leaf", source: "state", name }, [], tensor.shape, tensor.dtype, phase)
    refs.set(tensor, ref)
    states.set(name, ref.node)
  }

  const nexts = changing(spec).flatMap(([name, { tensor, next, stacked }]) =>
    next === tensor || stacked ? [] : [[name, next] as const],
  )
  const collected = stackedStates(spec)
  const roots = [...Object.values(spec.outputs), ...[...nexts, ...collected].map(([, next]) => next)]
  if (minibatches?.continueWhile !== undefined) roots.push(minibatches.continueWhile)
  for (const tensor of topologicalOrder(roots)) {
    if (refs.has(tensor)) continue
    const sources = tensor.inputs.map((source) => refOf(refs, source))
    refs.set(tensor, lowerTensor(build, tensor, sources))
  }

  // Two results may be the same tensor, but each needs a node of its own.
  const claimed = new Set<Node>()
  const resultNode = (tensor: Tensor): Node => {
    const ref = refOf(refs, tensor)
    const kind = ref.node.work.kind
    const own = kind !== "leaf" && kind !== "constant" && isWhole(ref) && !claimed.has(ref.node)
    const node = own ? ref.node : build.map("copy", [ref], tensor.shape, tensor.dtype).node
    claimed.add(node)
    return node
  }
  const nextNodes = new Map(nexts.map(([name, next]) => [name, resultNode(next)]))
  /** The nodes of the outputs. All are different, so each can be computed in the memory of its output. */
  const outputs = new Map(Object.entries(spec.outputs).map(([name, tensor]) => [name, resultNode(tensor)]))
  /** The nodes whose values in all minibatches are collected in states. */
  const stacked = new Map(collected.map(([name, next]) => [name, resultNode(next)]))
  const continueWhile = minibatches?.continueWhile === undefined ? undefined : resultNode(minibatches.continueWhile)
  /** The nodes whose values must be in memory at the end, since they are outputs, next states or the condition. */
  const results = new Set([...outputs.values(), ...nextNodes.values(), ...stacked.values()])
  if (continueWhile !== undefined) results.add(continueWhile)
  const nodes: ReadonlyArray<Node> = build.nodes
  /** Returns where a tensor's numbers are. Only what groups store is in memory. */
  const refOfTensor = (tensor: Tensor): Ref => refOf(refs, tensor)
  return { nodes, inputs, states, outputs, nexts: nextNodes, stacked, continueWhile, results, refOf: refOfTensor }
}

const refOf = (refs: ReadonlyMap<Tensor, Ref>, tensor: Tensor): Ref => {
  const ref = refs.get(tensor)
  if (ref === undefined) throw new Error("lower: a tensor is used before it is computed")
  return ref
}
