/**
 * Makes tensors of ops that come from a file or another process. Their shapes, dtypes and settings may be anything, so each
 * op is made again by the function of `ops/` that checks it.
 */
import { GraphError } from "./GraphError.ts"
import * as G from "./ops.ts"
import { fail, make, sameShape, shapeText } from "./ops/core.ts"
import {
  arrayTypes,
  type BinaryFn,
  type CompareFn,
  type DType,
  type Op,
  type OpOf,
  type ReduceFn,
  type Shape,
  sizeOf,
  type Tensor,
  type UnaryFn,
} from "./Tensor.ts"

const unaries: Readonly<Record<UnaryFn, (x: Tensor) => Tensor>> = {
  neg: G.neg,
  abs: G.abs,
  sign: G.sign,
  exp: G.exp,
  log: G.log,
  sqrt: G.sqrt,
  reciprocal: G.reciprocal,
  sin: G.sin,
  cos: G.cos,
  tanh: G.tanh,
  sigmoid: G.sigmoid,
  relu: G.relu,
  softplus: G.softplus,
  floor: G.floor,
}

const binaries: Readonly<Record<BinaryFn, (a: Tensor, b: Tensor) => Tensor>> = {
  add: G.add,
  sub: G.sub,
  mul: G.mul,
  div: G.div,
  pow: G.pow,
  min: G.minimum,
  max: G.maximum,
}

const comparisons: Readonly<Record<CompareFn, (a: Tensor, b: Tensor) => Tensor>> = {
  less: G.less,
  lessEqual: G.lessEqual,
  greater: G.greater,
  greaterEqual: G.greaterEqual,
  equal: G.equal,
  notEqual: G.notEqual,
}

const reductions: Readonly<Record<ReduceFn, typeof G.sum>> = { sum: G.sum, mean: G.mean, max: G.max, min: G.min }

/** The number of inputs of each op; a concatenation has any number from 1 on. */
const inputCounts: Readonly<Record<Exclude<Op["kind"], "concat">, number>> = {
  input: 0,
  state: 0,
  constant: 0,
  unary: 1,
  binary: 2,
  compare: 2,
  logical: 2,
  not: 1,
  where: 3,
  clip: 1,
  cast: 1,
  stopGradient: 1,
  matmul: 2,
  conv2d: 2,
  conv2dInputGrad: 2,
  conv2dWeightGrad: 2,
  reduce: 1,
  argMax: 1,
  softmax: 1,
  logSoftmax: 1,
  cumSum: 1,
  reshape: 1,
  transpose: 1,
  broadcastTo: 1,
  slice: 1,
  pad: 1,
  gather: 2,
  scatterAdd: 2,
  oneHot: 1,
}

/** A tensor that is not made yet. */
interface Description {
  readonly op: Op
  readonly inputs: ReadonlyArray<Tensor>
  readonly shape: Shape
  readonly dtype: DType
}

/**
 * Makes the tensor of a description. Throws a `GraphError` that begins with `node POSITION` if the op cannot have these
 * inputs, or if its result has another shape or dtype.
 */
export const rebuilt = (position: number, description: Description): Tensor => {
  const { op, inputs, shape, dtype } = description
  try {
    const wanted = op.kind === "concat" ? Math.max(1, inputs.length) : inputCounts[op.kind]
    if (inputs.length !== wanted)
      fail(op.kind, `expected ${wanted} input${wanted === 1 ? "" : "s"}, found ${inputs.length}`)
    const tensor = madeByOp(description)
    if (!sameShape(tensor.shape, shape) || tensor.dtype !== dtype) {
      const found = `found ${dtype} ${shapeText(shape)}`
      fail(op.kind, `expected a result of ${tensor.dtype} ${shapeText(tensor.shape)}, ${found}`, ...inputs)
    }
    // Functions of ops that would change nothing, such as a reshape to the same shape, return their input.
    return inputs.includes(tensor) ? make(op, inputs, shape, dtype) : tensor
  } catch (error) {
    if (!(error instanceof GraphError)) throw error
    // The line that called the op is in this library, and tells nothing about the description.
    const problem = error.message.replace(` at ${error.where}`, "")
    throw new GraphError({ op: op.kind, message: `node ${position}: ${problem}`, shapes: error.shapes, where: "" })
  }
}

// oxlint-disable-next-line max-lines-per-function -- a table of all ops, each with the function that makes it
const madeByOp = ({ op, inputs, shape, dtype }: Description): Tensor => {
  const [a, b, c] = inputs
  switch (op.kind) {
    case "input":
      return G.input(op.name, shape, dtype)
    case "state":
      return G.state(op.name, shape, dtype === "i8" ? dtype : "f32")
    case "constant":
      return constantOf(op, shape, dtype)
    case "unary":
      return unaries[op.fn](a)
    case "binary":
      return binaries[op.fn](a, b)
    case "compare":
      return comparisons[op.fn](a, b)
    case "logical":
      return op.fn === "and" ? G.and(a, b) : G.or(a, b)
    case "not":
      return G.not(a)
    case "where":
      return G.where(a, b, c)
    case "clip":
      return G.clip(a, op.min, op.max)
    case "cast":
      return G.cast(a, dtype)
    case "stopGradient":
      return G.stopGradient(a)
    case "matmul":
      return G.matmul(a, b, op)
    case "conv2d":
      return G.conv2d(a, b, op)
    case "conv2dInputGrad":
    case "conv2dWeightGrad":
      return convolutionGradient(op, a, b, shape)
    case "reduce":
      return reductions[op.fn](a, op.axes, op)
    case "argMax":
      return G.argMax(a, op.axis)
    case "softmax":
      return G.softmax(a)
    case "logSoftmax":
      return G.logSoftmax(a)
    case "cumSum":
      return G.cumSum(a, op.axis, op)
    case "reshape":
      return G.reshape(a, shape)
    case "transpose":
      return G.transpose(a, op.permutation)
    case "broadcastTo":
      return G.broadcastTo(a, shape)
    case "slice":
      return G.slice(a, op.starts, shape)
    case "concat":
      return G.concat(inputs, op.axis)
    case "pad":
      return G.pad(a, op.before, op.after, op.value)
    case "gather":
      return G.gather(a, b)
    case "scatterAdd":
      return G.scatterAdd(a, b, shape[0])
    case "oneHot":
      return G.oneHot(a, op.depth)
  }
}

/** Makes a constant without a copy of its numbers, which may be all weights of a network. */
const constantOf = (op: OpOf<"constant">, shape: Shape, dtype: DType): Tensor => {
  const { data } = op
  const isOfType = data instanceof arrayTypes[dtype]
  if (!isOfType || data.length !== sizeOf(shape))
    fail(
      "constant",
      `expected ${sizeOf(shape)} numbers of ${dtype}, found ${data.length} in a ${data.constructor.name}`,
    )
  if (dtype === "bool") {
    const other = data.find((value) => value > 1)
    if (other !== undefined) fail("constant", `expected bool, found ${other}`)
  }
  return make(op, [], shape, dtype)
}

/** Makes a gradient of a convolution. The convolution itself must fit: its images, its weights and the shape of its output. */
const convolutionGradient = (
  op: OpOf<"conv2dInputGrad" | "conv2dWeightGrad">,
  a: Tensor,
  b: Tensor,
  shape: Shape,
): Tensor => {
  const result = G.input("result", shape)
  const isOfInput = op.kind === "conv2dInputGrad"
  const [slope, convolved] = isOfInput ? [a, G.conv2d(result, b, op)] : [b, G.conv2d(a, result, op)]
  if (!sameShape(slope.shape, convolved.shape) || slope.dtype !== "f32") {
    const found = `found ${slope.dtype} ${shapeText(slope.shape)}`
    fail(op.kind, `expected the gradient of an output of f32 ${shapeText(convolved.shape)}, ${found}`, a, b)
  }
  return make(op, [a, b], shape, "f32")
}
