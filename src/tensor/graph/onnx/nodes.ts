/** Translates tensors to nodes of an ONNX graph, op by op. `emit.ts` and `export.ts` call `emitNodes`. */
import { String } from "effect"
import { arrayTypes, type Conv2dAttributes, type OpOf, sizeOf, type Tensor } from "../Tensor.ts"
import { lastTwoSwapped, sameShape } from "../ops/core.ts"
import { absorbedBy, biasedProduct, rmsNorms, rotation, siblingSlices, sumOfSquares, type Uses } from "./fusions.ts"
import { elementType, Graph } from "./model.ts"
import { isQuickerTransposed, narrowProduct, rmsNormalise, rotary, transposedProduct } from "./runtimeNodes.ts"
import { float, initializer, int64, nameOf, node, type Scope } from "./scope.ts"

/** Adds nodes that compute `roots` and all that they depend on. Tensors that already have a name get no new node. */
export const emitNodes = (scope: Scope, roots: ReadonlyArray<Tensor>): void => {
  const order = unnamed(scope, roots)
  const users = new Map<Tensor, number>()
  const use = (tensor: Tensor): void => void users.set(tensor, (users.get(tensor) ?? 0) + 1)
  for (const root of roots) use(root)
  for (const tensor of order) for (const input of tensor.inputs) use(input)
  const uses: Uses = (tensor) => (scope.names.has(tensor) ? 0 : (users.get(tensor) ?? 0))
  const norms = rmsNorms(scope.runtimeOps ? order : [], uses)
  const absorbed = new Set([
    ...order.flatMap((tensor) => absorbedBy(tensor, uses, scope.runtimeOps)),
    ...[...norms.values()].flatMap(({ parts }) => parts),
  ])
  const splits = siblingSlices(order)
  for (const tensor of order) {
    if (scope.names.has(tensor) || absorbed.has(tensor)) continue
    const [siblings, norm] = [splits.get(tensor), norms.get(tensor)]
    if (norm !== undefined) rmsNormalise(scope, norm)
    else if (siblings !== undefined) emitSplit(scope, siblings)
    else scope.names.set(tensor, emitTensor(scope, tensor, uses))
  }
}

/** Lists the tensors without a name that the roots depend on, each after its inputs. */
const unnamed = ({ names }: Scope, roots: ReadonlyArray<Tensor>): ReadonlyArray<Tensor> => {
  const needed = new Set<Tensor>()
  const stack = [...roots]
  for (let tensor = stack.pop(); tensor !== undefined; tensor = stack.pop()) {
    if (needed.has(tensor) || names.has(tensor)) continue
    needed.add(tensor)
    stack.push(...tensor.inputs)
  }
  return [...needed].sort((a, b) => a.id - b.id)
}

/** Makes a tensor an output of the graph: renames its node's output, or adds an Identity if that is not possible. */
export const exportAs = ({ graph, names }: Scope, tensor: Tensor, name: string): void => {
  const from = names.get(tensor) ?? ""
  const isMade = graph.nodes.some(({ outputs }) => outputs.includes(from))
  graph.outputs.push({ name, dtype: tensor.dtype, shape: tensor.shape })
  if (!isMade || graph.outputs.some((output) => output.name === from)) {
    graph.nodes.push({ op: "Identity", inputs: [from], outputs: [name] })
    return
  }
  names.set(tensor, name)
  rename(graph, from, name)
}

/** Renames a tensor in all nodes, including the bodies of loops, which can read it too. */
const rename = ({ nodes }: Graph, from: string, to: string): void => {
  const renamed = (list: ReadonlyArray<string>) => list.map((each) => (each === from ? to : each))
  nodes.forEach((each, index) => {
    if (each.inputs.includes(from) || each.outputs.includes(from))
      nodes[index] = { ...each, inputs: renamed(each.inputs), outputs: renamed(each.outputs) }
    for (const attribute of Object.values(each.attributes ?? {}))
      if (attribute instanceof Graph) rename(attribute, from, to)
  })
}

const emitSplit = (scope: Scope, siblings: ReadonlyArray<Tensor>): void => {
  const [source] = siblings[0].inputs
  const axis = source.shape.findIndex((size, index) => siblings[0].shape[index] !== size)
  const sizes = siblings.map(({ shape }) => shape[axis])
  const inputs = [nameOf(scope, source), int64(scope, sizes)]
  const outputs = siblings.map(() => scope.fresh("part"))
  scope.graph.nodes.push({ op: "Split", inputs, outputs, attributes: { axis } })
  siblings.forEach((sibling, index) => scope.names.set(sibling, outputs[index]))
}

/** The ONNX ops of the comparisons, of which `notEqual` needs a `Not` after it. Most other ops have our names, capitalised. */
const compareNames = {
  less: "Less",
  lessEqual: "LessOrEqual",
  greater: "Greater",
  greaterEqual: "GreaterOrEqual",
  equal: "Equal",
  notEqual: "Equal",
} as const

// oxlint-disable-next-line max-lines-per-function -- a table of all ops, each with its ONNX node
const emitTensor = (scope: Scope, tensor: Tensor, uses: Uses): string => {
  const { op, shape, dtype } = tensor
  const input = (index: number): string => nameOf(scope, tensor.inputs[index])
  const inputs = (): ReadonlyArray<string> => tensor.inputs.map((source) => nameOf(scope, source))
  const sources = tensor.inputs.map((source) => source.shape)
  switch (op.kind) {
    case "input":
    case "state":
      throw new Error(`emitNodes: ${op.kind} "${op.name}" has no name`)
    case "constant":
      return initializer(scope, { dtype, shape, data: op.data })
    case "unary":
      return node(scope, String.capitalize(op.fn), [input(0)])
    case "binary": {
      const biased = biasedProduct(tensor, uses)
      if (biased === undefined) return node(scope, String.capitalize(op.fn), inputs())
      return gemm(scope, biased.product, [nameOf(scope, biased.bias)])
    }
    case "compare": {
      const result = node(scope, compareNames[op.fn], inputs())
      return op.fn === "notEqual" ? node(scope, "Not", [result]) : result
    }
    case "logical":
      return node(scope, String.capitalize(op.fn), inputs())
    case "not":
      return node(scope, "Not", [input(0)])
    case "where":
      return dtype === "bool" ? chosenTruth(scope, inputs()) : node(scope, "Where", inputs())
    case "clip":
      return node(scope, "Clip", [input(0), float(scope, op.min), float(scope, op.max)])
    case "cast":
      return node(scope, "Cast", [input(0)], { to: elementType[dtype] })
    case "stopGradient":
      return input(0)
    case "matmul":
      return shape.length === 2 ? gemm(scope, tensor, []) : batchedProduct(scope, op, tensor.inputs)
    case "conv2d":
      return node(scope, "Conv", inputs(), { strides: op.strides, pads: op.padding })
    case "conv2dInputGrad":
      return convolutionInputGradient(scope, op, tensor)
    case "conv2dWeightGrad":
      return convolutionWeightGradient(scope, op, tensor)
    case "reduce": {
      // In ONNX, an empty list of axes means all axes.
      if (op.axes.length === 0) return input(0)
      const squares = sumOfSquares(tensor, uses)
      const axes = int64(scope, op.axes)
      const keepdims = op.keepDims ? 1 : 0
      if (squares !== undefined) return node(scope, "ReduceSumSquare", [nameOf(scope, squares.x), axes], { keepdims })
      return (
        columnSums(scope, op, tensor.inputs[0]) ??
        node(scope, `Reduce${String.capitalize(op.fn)}`, [input(0), axes], { keepdims })
      )
    }
    case "argMax": {
      const index = node(scope, "ArgMax", [input(0)], { axis: op.axis, keepdims: 0, select_last_index: 0 })
      return node(scope, "Cast", [index], { to: elementType.i32 })
    }
    case "softmax":
      return node(scope, "Softmax", [input(0)], { axis: -1 })
    case "logSoftmax":
      return node(scope, "LogSoftmax", [input(0)], { axis: -1 })
    case "cumSum":
      return node(scope, "CumSum", [input(0), int64(scope, [op.axis], [])], {
        exclusive: op.exclusive ? 1 : 0,
        reverse: op.reverse ? 1 : 0,
      })
    case "reshape":
      return node(scope, "Reshape", [input(0), int64(scope, shape)])
    case "transpose":
      return node(scope, "Transpose", [input(0)], { perm: op.permutation })
    case "broadcastTo":
      return node(scope, "Expand", [input(0), int64(scope, shape)])
    case "slice": {
      const axes = op.starts.flatMap((start, axis) => (start === 0 && shape[axis] === sources[0][axis] ? [] : [axis]))
      const starts = axes.map((axis) => op.starts[axis])
      const ends = axes.map((axis) => op.starts[axis] + shape[axis])
      return node(scope, "Slice", [input(0), int64(scope, starts), int64(scope, ends), int64(scope, axes)])
    }
    case "concat": {
      const rotated = scope.runtimeOps ? rotation(tensor, uses) : undefined
      return rotated === undefined ? node(scope, "Concat", inputs(), { axis: op.axis }) : rotary(scope, rotated)
    }
    case "pad": {
      const fill = initializer(scope, { dtype, shape: [], data: arrayTypes[dtype].from([op.value]) })
      return node(scope, "Pad", [input(0), int64(scope, [...op.before, ...op.after]), fill])
    }
    case "gather":
      return node(scope, "Gather", inputs(), { axis: 0 })
    case "scatterAdd": {
      const zeros = initializer(scope, { dtype: "f32", shape, data: new Float32Array(sizeOf(shape)) })
      const wide = node(scope, "Cast", [input(0)], { to: elementType.i64 })
      if (scope.parallel)
        return scatterInOrder(scope, { zeros, wide, updates: input(1) }, [sizeOf(sources[0]), ...shape.slice(1)])
      const rows = node(scope, "Reshape", [wide, int64(scope, [...sources[0], 1])])
      return node(scope, "ScatterND", [zeros, rows, input(1)], { reduction: "add" })
    }
    case "oneHot": {
      const column = node(scope, "Reshape", [input(0), int64(scope, [...sources[0], 1])])
      const choices = initializer(scope, {
        dtype: "i32",
        shape: [op.depth],
        data: Int32Array.from({ length: op.depth }, (_, index) => index),
      })
      return node(scope, "Cast", [node(scope, "Equal", [column, choices])], { to: elementType.f32 })
    }
  }
}

/** Computes Where for bools by And and Or, because ONNX Runtime's Where does not take bools. */
const chosenTruth = (scope: Scope, [condition, then, otherwise]: ReadonlyArray<string>): string =>
  node(scope, "Or", [
    node(scope, "And", [condition, then]),
    node(scope, "And", [node(scope, "Not", [condition]), otherwise]),
  ])

/**
 * Computes the sum or mean of each column of a matrix (the gradient of a bias is such a sum) as a product with a vector
 * of equal numbers; returns undefined for other reductions and small matrices. For 128 × 64 elements, this product
 * takes 1 µs in ONNX Runtime, and a reduction takes 5 µs.
 */
const columnSums = (scope: Scope, op: OpOf<"reduce">, matrix: Tensor): string | undefined => {
  if ((op.fn !== "sum" && op.fn !== "mean") || op.axes.join() !== "0") return undefined
  const [rows, columns] = matrix.shape
  if (matrix.shape.length !== 2 || rows < 8 || columns < 8) return undefined
  const ones = initializer(scope, {
    dtype: "f32",
    shape: op.keepDims ? [1, rows] : [rows],
    data: new Float32Array(rows).fill(op.fn === "sum" ? 1 : 1 / rows),
  })
  return node(scope, "MatMul", [ones, nameOf(scope, matrix)])
}

const gemm = (scope: Scope, product: Tensor, bias: ReadonlyArray<string>): string => {
  const { op, inputs } = product
  if (scope.runtimeOps && bias.length === 0 && isQuickerTransposed(product)) return narrowProduct(scope, product)
  if (op.kind !== "matmul") throw new Error("only a product is a Gemm")
  const sides = inputs.map((side) => nameOf(scope, side))
  const [transA, transB] = [op.transposeA ? 1 : 0, op.transposeB ? 1 : 0]
  return node(scope, "Gemm", [...sides, ...bias], { transA, transB })
}

const batchedProduct = (scope: Scope, op: OpOf<"matmul">, inputs: ReadonlyArray<Tensor>): string => {
  const [a, b] = inputs
  const batches = (tensor: Tensor) => tensor.shape.slice(0, -2)
  const isTransposed = op.transposeA || op.transposeB
  if (scope.runtimeOps && isTransposed && sameShape(batches(a), batches(b)))
    return transposedProduct(scope, [nameOf(scope, a), nameOf(scope, b)], op)
  const side = (tensor: Tensor, transposed: boolean): string => {
    if (!transposed) return nameOf(scope, tensor)
    return node(scope, "Transpose", [nameOf(scope, tensor)], { perm: lastTwoSwapped(tensor.shape.length) })
  }
  return node(scope, "MatMul", [side(a, op.transposeA), side(b, op.transposeB)])
}

const convolutionInputGradient = (scope: Scope, op: Conv2dAttributes, { inputs, shape }: Tensor): string => {
  const [dy, w] = inputs
  // The number of rows (axis 0) or columns (axis 1) at the end of the image that no step of the kernel reaches.
  const left = (axis: number): number =>
    shape[axis + 2] -
    ((dy.shape[axis + 2] - 1) * op.strides[axis] + w.shape[axis + 2] - op.padding[axis] - op.padding[axis + 2])
  const attributes = { strides: op.strides, pads: op.padding, output_padding: [left(0), left(1)] }
  return node(scope, "ConvTranspose", [nameOf(scope, dy), nameOf(scope, w)], attributes)
}

/** Computes the gradient of w by a convolution of x with dy: batch and channels swap, and strides become dilations. */
const convolutionWeightGradient = (scope: Scope, op: Conv2dAttributes, { inputs, shape }: Tensor): string => {
  const swap = (tensor: Tensor) => node(scope, "Transpose", [nameOf(scope, tensor)], { perm: [1, 0, 2, 3] })
  const taps = node(scope, "Conv", [swap(inputs[0]), swap(inputs[1])], { dilations: op.strides, pads: op.padding })
  const [, , height, width] = shape
  const [x, dy] = inputs
  const fits = [height, width].every((size, axis) => {
    const padded = x.shape[axis + 2] + op.padding[axis] + op.padding[axis + 2]
    return padded - (dy.shape[axis + 2] - 1) * op.strides[axis] === size
  })
  // If the strides do not reach the last rows, the result is larger than the kernel; cut off the rest.
  const cut = fits
    ? taps
    : node(scope, "Slice", [taps, int64(scope, [0, 0]), int64(scope, [height, width]), int64(scope, [2, 3])])
  return node(scope, "Transpose", [cut], { perm: [1, 0, 2, 3] })
}

/**
 * Adds rows up in one thread. The threads of ONNX Runtime's `ScatterND` lose numbers if they add to one row at the same time;
 * `ScatterElements` has no threads, but it takes an index for each number, and much longer.
 */
const scatterInOrder = (
  scope: Scope,
  { zeros, wide, updates }: { readonly zeros: string; readonly wide: string; readonly updates: string },
  shape: ReadonlyArray<number>,
): string => {
  const column = node(scope, "Reshape", [
    wide,
    int64(
      scope,
      shape.map((length, axis) => (axis === 0 ? length : 1)),
    ),
  ])
  const places = node(scope, "Expand", [column, int64(scope, shape)])
  const rows = node(scope, "Reshape", [updates, int64(scope, shape)])
  return node(scope, "ScatterElements", [zeros, places, rows], { axis: 0, reduction: "add" })
}
