import { sizeOf, type Tensor } from "../Tensor.ts"
import { type Attribute, elementType, type Graph, type Initializer } from "./model.ts"

/** Ops as ONNX nodes. A session charges about a microsecond a node, so neighbours that ONNX has one op for become one. */
export interface Scope {
  /** Where nodes go. */
  readonly graph: Graph
  /** Where constants go: outside of a loop's body they are made once. */
  readonly constants: Graph
  /** What tensors are called. */
  readonly names: Map<Tensor, string>
  readonly fresh: (prefix: string) => string
}

export const emitNodes = (scope: Scope, order: ReadonlyArray<Tensor>, roots: ReadonlyArray<Tensor>): void => {
  const uses = new Map<Tensor, number>()
  for (const root of roots) uses.set(root, (uses.get(root) ?? 0) + 1)
  for (const tensor of order) for (const input of tensor.inputs) uses.set(input, (uses.get(input) ?? 0) + 1)
  const once = (tensor: Tensor): boolean => uses.get(tensor) === 1
  const absorbed = new Set(
    order.flatMap((tensor) => biasedProduct(tensor, once)?.product ?? sumOfSquares(tensor, once)?.square ?? []),
  )
  const splits = siblingSlices(order)
  for (const tensor of order) {
    if (scope.names.has(tensor) || absorbed.has(tensor)) continue
    const siblings = splits.get(tensor)
    if (siblings === undefined) scope.names.set(tensor, emitTensor(scope, tensor, once))
    else if (!scope.names.has(tensor)) emitSplit(scope, siblings)
  }
}

/** add(matmul(a, b), bias) of matrices is one Gemm, when nobody else looks at the product. */
const biasedProduct = (tensor: Tensor, once: (tensor: Tensor) => boolean) => {
  if (tensor.op.kind !== "binary" || tensor.op.fn !== "add") return undefined
  for (const [product, bias] of [tensor.inputs, [...tensor.inputs].reverse()]) {
    const fits = product.op.kind === "matmul" && product.shape.length === 2 && once(product) && product !== bias
    const [, n] = product.shape
    const stretches =
      bias.shape.length === 0 || (bias.shape.length === 1 && (bias.shape[0] === n || bias.shape[0] === 1))
    if (fits && stretches && tensor.shape.length === 2) return { product, bias }
  }
  return undefined
}

/** sum(mul(x, x)) is one op. */
const sumOfSquares = (tensor: Tensor, once: (tensor: Tensor) => boolean) => {
  if (tensor.op.kind !== "reduce" || tensor.op.fn !== "sum") return undefined
  const [square] = tensor.inputs
  const isSquare =
    square.op.kind === "binary" && square.op.fn === "mul" && square.inputs[0] === square.inputs[1] && once(square)
  return isSquare && square.dtype === "f32" ? { square, x: square.inputs[0] } : undefined
}

/** Slices that together are all of a tensor along one axis, in order: one Split. */
const siblingSlices = (order: ReadonlyArray<Tensor>): ReadonlyMap<Tensor, ReadonlyArray<Tensor>> => {
  const bySource = new Map<Tensor, Array<Tensor>>()
  for (const tensor of order) {
    if (tensor.op.kind !== "slice") continue
    const [source] = tensor.inputs
    bySource.set(source, [...(bySource.get(source) ?? []), tensor])
  }
  const groups = new Map<Tensor, ReadonlyArray<Tensor>>()
  for (const [source, slices] of bySource) {
    for (let axis = 0; axis < source.shape.length; axis++) {
      const along = slices
        .filter(({ shape }) => shape.every((size, other) => other === axis || size === source.shape[other]))
        .sort((a, b) => startOf(a, axis) - startOf(b, axis))
      let end = 0
      const contiguous = along.every((slice) => {
        const begins = startOf(slice, axis) === end
        end += slice.shape[axis]
        return begins
      })
      if (along.length > 1 && contiguous && end === source.shape[axis])
        for (const slice of along) groups.set(slice, along)
    }
  }
  return groups
}

const startOf = ({ op }: Tensor, axis: number): number => (op.kind === "slice" ? op.starts[axis] : 0)

const emitSplit = (scope: Scope, siblings: ReadonlyArray<Tensor>): void => {
  const [source] = siblings[0].inputs
  const axis = source.shape.findIndex((size, index) => siblings[0].shape[index] !== size)
  const sizes = int64(
    scope,
    siblings.map(({ shape }) => shape[axis]),
  )
  const outputs = siblings.map(() => scope.fresh("part"))
  scope.graph.nodes.push({ op: "Split", inputs: [nameOf(scope, source), sizes], outputs, attributes: { axis } })
  siblings.forEach((sibling, index) => scope.names.set(sibling, outputs[index]))
}

const nameOf = (scope: Scope, tensor: Tensor): string => {
  const name = scope.names.get(tensor)
  if (name === undefined) throw new Error(`${tensor.op.kind} is used before it is made`)
  return name
}

const node = (
  scope: Scope,
  op: string,
  inputs: ReadonlyArray<string>,
  attributes: Readonly<Record<string, Attribute>> = {},
): string => {
  const output = scope.fresh(op.toLowerCase())
  scope.graph.nodes.push({ op, inputs, outputs: [output], attributes })
  return output
}

const initializer = (scope: Scope, value: Omit<Initializer, "name">): string => {
  const same = scope.constants.initializers.find(
    (other) =>
      other.dtype === value.dtype &&
      other.data.length === value.data.length &&
      other.data.length <= 8 &&
      other.shape.join() === value.shape.join() &&
      other.data.join() === value.data.join(),
  )
  if (same !== undefined) return same.name
  const name = scope.fresh("constant")
  scope.constants.initializers.push({ ...value, name })
  return name
}

const int64 = (scope: Scope, values: ReadonlyArray<number>, shape: ReadonlyArray<number> = [values.length]): string =>
  initializer(scope, { dtype: "i64", shape, data: BigInt64Array.from(values.map(BigInt)) })

const float = (scope: Scope, value: number): string =>
  initializer(scope, { dtype: "f32", shape: [], data: Float32Array.of(value) })

const unaryNames = {
  neg: "Neg",
  abs: "Abs",
  sign: "Sign",
  exp: "Exp",
  log: "Log",
  sqrt: "Sqrt",
  reciprocal: "Reciprocal",
  sin: "Sin",
  cos: "Cos",
  tanh: "Tanh",
  sigmoid: "Sigmoid",
  relu: "Relu",
  softplus: "Softplus",
  floor: "Floor",
} as const

const binaryNames = { add: "Add", sub: "Sub", mul: "Mul", div: "Div", pow: "Pow", min: "Min", max: "Max" } as const

const compareNames = {
  less: "Less",
  lessEqual: "LessOrEqual",
  greater: "Greater",
  greaterEqual: "GreaterOrEqual",
  equal: "Equal",
  notEqual: "Equal",
} as const

const reduceNames = { sum: "ReduceSum", mean: "ReduceMean", max: "ReduceMax", min: "ReduceMin" } as const

const emitTensor = (scope: Scope, tensor: Tensor, once: (tensor: Tensor) => boolean): string => {
  const { op, shape, dtype } = tensor
  const input = (index: number): string => nameOf(scope, tensor.inputs[index])
  const sources = tensor.inputs.map((source) => source.shape)
  switch (op.kind) {
    case "input":
    case "state":
      throw new Error(`${op.kind} "${op.name}" has no name`)
    case "constant":
      return initializer(scope, { dtype, shape, data: op.data })
    case "unary":
      return node(scope, unaryNames[op.fn], [input(0)])
    case "binary": {
      const biased = biasedProduct(tensor, once)
      if (biased === undefined) return node(scope, binaryNames[op.fn], [input(0), input(1)])
      const { product, bias } = biased
      return gemm(scope, product, [nameOf(scope, bias)])
    }
    case "compare": {
      const result = node(scope, compareNames[op.fn], [input(0), input(1)])
      return op.fn === "notEqual" ? node(scope, "Not", [result]) : result
    }
    case "logical":
      return node(scope, op.fn === "and" ? "And" : "Or", [input(0), input(1)])
    case "not":
      return node(scope, "Not", [input(0)])
    case "where":
      return node(scope, "Where", [input(0), input(1), input(2)])
    case "clip":
      return node(scope, "Clip", [input(0), float(scope, op.min), float(scope, op.max)])
    case "cast":
      return node(scope, "Cast", [input(0)], { to: elementType[dtype] })
    case "stopGradient":
      return input(0)
    case "matmul":
      return shape.length === 2 ? gemm(scope, tensor, []) : batchedProduct(scope, tensor)
    case "conv2d":
      return node(scope, "Conv", [input(0), input(1)], { strides: op.strides, pads: op.padding })
    case "conv2dInputGrad":
      return convolutionInputGradient(scope, tensor)
    case "conv2dWeightGrad":
      return convolutionWeightGradient(scope, tensor)
    case "reduce": {
      const squares = sumOfSquares(tensor, once)
      const axes = int64(scope, op.axes)
      const keepdims = op.keepDims ? 1 : 0
      if (squares !== undefined) return node(scope, "ReduceSumSquare", [nameOf(scope, squares.x), axes], { keepdims })
      return node(scope, reduceNames[op.fn], [input(0), axes], { keepdims })
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
    case "concat":
      return node(
        scope,
        "Concat",
        tensor.inputs.map((part) => nameOf(scope, part)),
        { axis: op.axis },
      )
    case "pad": {
      const fill = initializer(scope, {
        dtype,
        shape: [],
        data:
          dtype === "f32"
            ? Float32Array.of(op.value)
            : dtype === "i32"
              ? Int32Array.of(op.value)
              : Uint8Array.of(op.value),
      })
      return node(scope, "Pad", [input(0), int64(scope, [...op.before, ...op.after]), fill])
    }
    case "gather":
      return node(scope, "Gather", [input(0), input(1)], { axis: 0 })
    case "scatterAdd": {
      const zeros = initializer(scope, { dtype: "f32", shape, data: new Float32Array(sizeOf(shape)) })
      const wide = node(scope, "Cast", [input(0)], { to: elementType.i64 })
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

const gemm = (scope: Scope, product: Tensor, bias: ReadonlyArray<string>): string => {
  const { op, inputs } = product
  if (op.kind !== "matmul") throw new Error("only a product is a Gemm")
  return node(scope, "Gemm", [...inputs.map((side) => nameOf(scope, side)), ...bias], {
    transA: op.transposeA ? 1 : 0,
    transB: op.transposeB ? 1 : 0,
  })
}

const batchedProduct = (scope: Scope, { op, inputs }: Tensor): string => {
  if (op.kind !== "matmul") throw new Error("only a product is a MatMul")
  const side = (tensor: Tensor, transposed: boolean): string => {
    if (!transposed) return nameOf(scope, tensor)
    const rank = tensor.shape.length
    const perm = [...Array.from({ length: rank - 2 }, (_, axis) => axis), rank - 1, rank - 2]
    return node(scope, "Transpose", [nameOf(scope, tensor)], { perm })
  }
  return node(scope, "MatMul", [side(inputs[0], op.transposeA), side(inputs[1], op.transposeB)])
}

const convolutionInputGradient = (scope: Scope, { op, inputs, shape }: Tensor): string => {
  if (op.kind !== "conv2dInputGrad") throw new Error("not a convolution's gradient")
  const [dy, w] = inputs
  // Rows at the end that the strides never reached.
  const left = (axis: number): number =>
    shape[axis + 2] -
    ((dy.shape[axis + 2] - 1) * op.strides[axis] + w.shape[axis + 2] - op.padding[axis] - op.padding[axis + 2])
  return node(
    scope,
    "ConvTranspose",
    inputs.map((side) => nameOf(scope, side)),
    {
      strides: op.strides,
      pads: op.padding,
      output_padding: [left(0), left(1)],
    },
  )
}

/** dw is a convolution itself: of x by dy, with batch and channels changing places and strides as dilations. */
const convolutionWeightGradient = (scope: Scope, { op, inputs, shape }: Tensor): string => {
  if (op.kind !== "conv2dWeightGrad") throw new Error("not a convolution's gradient")
  const swap = (tensor: Tensor) => node(scope, "Transpose", [nameOf(scope, tensor)], { perm: [1, 0, 2, 3] })
  const taps = node(scope, "Conv", [swap(inputs[0]), swap(inputs[1])], { dilations: op.strides, pads: op.padding })
  const [, , height, width] = shape
  const cut = node(scope, "Slice", [taps, int64(scope, [0, 0]), int64(scope, [height, width]), int64(scope, [2, 3])])
  return node(scope, "Transpose", [cut], { perm: [1, 0, 2, 3] })
}
