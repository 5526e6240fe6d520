/** Adds the ops that compute gradients to a graph. Learners call `gradients` to build the program of an update. */
import { fail, make, sameShape } from "./ops/core.ts"
import {
  add,
  broadcastTo,
  cast,
  concat,
  constant,
  cos,
  cumSum,
  div,
  equal,
  exp,
  gather,
  greater,
  less,
  log,
  matmul,
  mul,
  neg,
  pad,
  pow,
  reshape,
  scatterAdd,
  sigmoid,
  sign,
  sin,
  slice,
  square,
  sub,
  sum,
  transpose,
  where,
} from "./ops.ts"
import {
  type BinaryFn,
  type Conv2dAttributes,
  type ReduceFn,
  type Shape,
  sizeOf,
  type Tensor,
  topologicalOrder,
  type UnaryFn,
} from "./Tensor.ts"

/**
 * Returns the gradients of a scalar with respect to tensors (backpropagation), each as a tensor of the same graph.
 *
 * The gradients consist of as few ops as possible, because an ONNX session has a cost for each op. At a tie, `min`,
 * `max`, `minimum` and `maximum` divide the gradient equally among the equal inputs. `clip` passes the gradient on
 * where the input is within the bounds or on a bound.
 *
 * @example
 * ```ts
 * const w = Graph.state("w", [3])
 * const [slope] = gradients(Graph.sum(Graph.square(w)), [w]) // 2 w
 * ```
 */
export const gradients = (loss: Tensor, withRespectTo: ReadonlyArray<Tensor>): ReadonlyArray<Tensor> => {
  if (sizeOf(loss.shape) !== 1) fail("gradients", "the loss must be a scalar", loss)
  const order = topologicalOrder([loss])
  const wanted = new Set(withRespectTo)
  // Differentiate only the tensors on a path from a wanted tensor to the loss.
  const matters = new Set<Tensor>()
  for (const tensor of order)
    if (wanted.has(tensor) || tensor.inputs.some((input) => matters.has(input))) matters.add(tensor)

  const contributions = new Map<Tensor, Array<Tensor>>([[loss, [constant(1, loss.shape)]]])
  const slopes = new Map<Tensor, Tensor>()
  for (let index = order.length - 1; index >= 0; index--) {
    const tensor = order[index]
    const parts = contributions.get(tensor)
    if (parts === undefined || !matters.has(tensor)) continue
    const slope = total(parts)
    slopes.set(tensor, slope)
    for (const [input, part] of pullBack(tensor, slope, matters, wanted)) {
      const earlier = contributions.get(input)
      if (earlier === undefined) contributions.set(input, [part])
      else earlier.push(part)
    }
  }
  return withRespectTo.map((tensor) => slopes.get(tensor) ?? constant(0, tensor.shape))
}

/**
 * Adds up the gradients that a tensor gets from all ops that read it. If all these ops are slices, one concat is
 * enough.
 */
const total = (parts: ReadonlyArray<Tensor>): Tensor =>
  (parts.length === 1 ? undefined : joined(parts)) ?? parts.reduce((sum, part) => add(sum, part))

/** Computes a sum by one concat if each tensor is zero outside of its own range of one axis; else returns undefined. */
const joined = (parts: ReadonlyArray<Tensor>): Tensor | undefined => {
  const axis = stretchOf(parts[0])?.axis
  const stretches = parts.flatMap((part) => stretchOf(part) ?? []).sort((a, b) => a.start - b.start)
  if (axis === undefined || stretches.length < parts.length) return undefined
  const { shape } = parts[0]
  const pieces: Array<Tensor> = []
  let end = 0
  const fillTo = (start: number): void => {
    if (start > end) pieces.push(constant(0, shape.with(axis, start - end)))
  }
  for (const stretch of stretches) {
    if (stretch.axis !== axis || stretch.start < end) return undefined
    fillTo(stretch.start)
    pieces.push(stretch.piece)
    end = stretch.start + stretch.piece.shape[axis]
  }
  fillTo(shape[axis])
  return concat(pieces, axis)
}

/** Recognises x padded with zeros along one axis: returns x as `piece`, the axis, and where x starts; or undefined. */
const stretchOf = ({ op, inputs }: Tensor) => {
  if (op.kind !== "pad" || op.value !== 0) return undefined
  const [axis, ...others] = op.before.flatMap((before, index) => (before + op.after[index] > 0 ? [index] : []))
  return others.length > 0 ? undefined : { axis, start: op.before[axis], piece: inputs[0] }
}

/**
 * A function that makes the tensor of a gradient. If nobody needs the gradient, it is not called, and no ops are added.
 */
type Slope = () => Tensor

/**
 * Backpropagates through one op: returns the gradient contribution for each float32 input of `y` that matters. `dy` is
 * the gradient of the loss with respect to `y`. `wanted` are the tensors whose gradients the caller asked for.
 */
const pullBack = (
  y: Tensor,
  dy: Tensor,
  matters: ReadonlySet<Tensor>,
  wanted: ReadonlySet<Tensor>,
): ReadonlyArray<[Tensor, Tensor]> =>
  inputGradients(y, dy, wanted).flatMap((slope, index) => {
    const input = y.inputs[index]
    const needed = slope !== undefined && matters.has(input) && input.dtype === "f32"
    return needed ? [[input, toShape(slope(), input.shape)]] : []
  })

/** Returns for each input of `y` the function that makes its gradient; undefined if no gradient flows to the input. */
const inputGradients = (y: Tensor, dy: Tensor, wanted: ReadonlySet<Tensor>): ReadonlyArray<Slope | undefined> => {
  const [a, b] = y.inputs
  const { op } = y
  switch (op.kind) {
    case "unary":
      return [unarySlopes[op.fn]?.(dy, a, y)]
    case "binary":
      return binarySlopes(op.fn, a, b, y, dy, wanted)
    case "where":
      return [undefined, () => where(a, dy, 0), () => where(a, 0, dy)]
    case "clip":
      return [() => where(equal(a, y), dy, 0)]
    case "matmul":
      return matmulSlopes(op.transposeA, op.transposeB, a, b, dy)
    // A convolution is linear in both inputs, so the gradients of its gradients are again these three ops, with `dy` in
    // place of one input.
    case "conv2d":
      return [convolution("conv2dInputGrad", op, dy, b, a), convolution("conv2dWeightGrad", op, a, dy, b)]
    case "conv2dInputGrad":
      return [convolution("conv2d", op, dy, b, a), convolution("conv2dWeightGrad", op, dy, a, b)]
    case "conv2dWeightGrad":
      return [convolution("conv2dInputGrad", op, b, dy, a), convolution("conv2d", op, a, dy, b)]
    case "reduce":
      return [() => reduceSlope(op.fn, op.axes, a, y, dy)]
    case "softmax":
      return [() => mul(y, sub(dy, sum(mul(dy, y), -1, { keepDims: true })))]
    case "logSoftmax":
      return [() => sub(dy, mul(exp(y), sum(dy, -1, { keepDims: true })))]
    case "cumSum":
      return [() => cumSum(dy, op.axis, { exclusive: op.exclusive, reverse: !op.reverse })]
    case "reshape":
      return [() => reshape(dy, a.shape)]
    case "transpose":
      return [() => transpose(dy, inverse(op.permutation))]
    case "broadcastTo":
      return [() => dy]
    case "slice": {
      const after = a.shape.map((size, axis) => size - op.starts[axis] - y.shape[axis])
      return [() => pad(dy, op.starts, after)]
    }
    case "concat": {
      let end = 0
      return y.inputs.map((input) => {
        const start = end
        end += input.shape[op.axis]
        const starts = y.shape.map((_, axis) => (axis === op.axis ? start : 0))
        return () => slice(dy, starts, input.shape)
      })
    }
    case "pad":
      return [() => slice(dy, op.before, a.shape)]
    case "gather":
      return [() => scatterAdd(b, dy, a.shape[0])]
    case "scatterAdd":
      return [undefined, () => gather(dy, a)]
    // No gradient flows through these ops.
    case "stopGradient":
    case "cast":
    case "compare":
    case "logical":
    case "not":
    case "argMax":
    case "oneHot":
    case "input":
    case "state":
    case "constant":
      return []
  }
}

type ConvolutionKind = "conv2d" | "conv2dInputGrad" | "conv2dWeightGrad"

/**
 * Returns a function that makes a convolution, or one of its two gradients, of `left` and `right`. It has the strides and
 * the padding of the op that is differentiated, and the shape of `like`.
 */
const convolution =
  (kind: ConvolutionKind, { strides, padding }: Conv2dAttributes, left: Tensor, right: Tensor, like: Tensor): Slope =>
  () =>
    make({ kind, strides, padding }, [left, right], like.shape, "f32")

/**
 * The gradients of y = f(x) with respect to x. `sign` and `floor` are missing, because their gradients are zero almost
 * everywhere.
 */
const unarySlopes: Readonly<Partial<Record<UnaryFn, (dy: Tensor, x: Tensor, y: Tensor) => Slope>>> = {
  neg: (dy) => () => neg(dy),
  abs: (dy, x) => () => mul(dy, sign(x)),
  exp: (dy, _, y) => () => mul(dy, y),
  log: (dy, x) => () => div(dy, x),
  sqrt: (dy, _, y) => () => div(mul(dy, 0.5), y),
  reciprocal: (dy, _, y) => () => neg(mul(dy, square(y))),
  sin: (dy, x) => () => mul(dy, cos(x)),
  cos: (dy, x) => () => neg(mul(dy, sin(x))),
  tanh: (dy, _, y) => () => mul(dy, sub(1, square(y))),
  sigmoid: (dy, _, y) => () => mul(dy, mul(y, sub(1, y))),
  relu: (dy, x) => () => where(greater(x, 0), dy, 0),
  softplus: (dy, x) => () => mul(dy, sigmoid(x)),
}

const binarySlopes = (
  fn: BinaryFn,
  a: Tensor,
  b: Tensor,
  y: Tensor,
  dy: Tensor,
  wanted: ReadonlySet<Tensor>,
): ReadonlyArray<Slope | undefined> => {
  switch (fn) {
    case "add":
      return [() => dy, () => dy]
    case "sub":
      return [() => dy, () => neg(dy)]
    case "mul":
      // For x · x, one op computes both contributions.
      if (a === b) return [() => mul(mul(dy, 2), a)]
      // In silu, x · σ(x), both contributions have common factors, so one expression computes their sum. No gradient
      // then goes through σ(x) itself.
      if (isSigmoidOf(b, a) && !wanted.has(b)) return [() => mul(dy, add(b, mul(y, sub(1, b))))]
      if (isSigmoidOf(a, b) && !wanted.has(a)) return [undefined, () => mul(dy, add(a, mul(y, sub(1, a))))]
      return [() => mul(dy, b), () => mul(dy, a)]
    case "div": {
      const quotient = once(() => div(dy, b))
      return [quotient, () => neg(mul(quotient(), y))]
    }
    case "pow":
      return [
        () => mul(dy, mul(b, pow(a, sub(b, 1)))),
        () => mul(dy, where(greater(a, 0), mul(y, log(where(greater(a, 0), a, 1))), 0)),
      ]
    case "min":
    case "max": {
      const isChosen = once(() => (fn === "min" ? less(a, b) : greater(a, b)))
      const isTie = once(() => equal(a, b))
      const half = once(() => mul(dy, 0.5))
      return [
        () => where(isChosen(), dy, where(isTie(), half(), 0)),
        () => where(isChosen(), 0, where(isTie(), half(), dy)),
      ]
    }
  }
}

const isSigmoidOf = ({ op, inputs }: Tensor, x: Tensor): boolean =>
  op.kind === "unary" && op.fn === "sigmoid" && inputs[0] === x

/** Makes a tensor at the first call, and returns the same one afterwards. */
const once = (make: () => Tensor): (() => Tensor) => {
  let tensor: Tensor | undefined
  return () => (tensor ??= make())
}

const matmulSlopes = (
  transposeA: boolean,
  transposeB: boolean,
  a: Tensor,
  b: Tensor,
  dy: Tensor,
): ReadonlyArray<Slope> => [
  () =>
    transposeA
      ? matmul(b, dy, { transposeA: transposeB, transposeB: true })
      : matmul(dy, b, { transposeB: !transposeB }),
  () =>
    transposeB
      ? matmul(dy, a, { transposeA: true, transposeB: transposeA })
      : matmul(a, dy, { transposeA: !transposeA }),
]

const reduceSlope = (fn: ReduceFn, axes: ReadonlyArray<number>, x: Tensor, y: Tensor, dy: Tensor): Tensor => {
  const kept = x.shape.map((size, axis) => (axes.includes(axis) ? 1 : size))
  // If only leading axes were reduced, the tensor broadcasts without a reshape.
  const aligned = (small: Tensor): Tensor =>
    axes.every((axis, index) => axis === index) ? small : reshape(small, kept)
  const slope = aligned(dy)
  if (fn === "sum") return broadcastTo(slope, x.shape)
  if (fn === "mean") return broadcastTo(mul(slope, sizeOf(y.shape) / sizeOf(x.shape)), x.shape)
  const isExtreme = cast(equal(x, aligned(y)), "f32")
  return mul(isExtreme, div(slope, sum(isExtreme, axes, { keepDims: slope.shape.length === x.shape.length })))
}

const inverse = (permutation: ReadonlyArray<number>): ReadonlyArray<number> =>
  permutation.map((_, axis) => permutation.indexOf(axis))

/**
 * Brings a gradient to its input's shape: sums it over the axes along which the input was broadcast, or broadcasts it.
 */
const toShape = (slope: Tensor, shape: Shape): Tensor => {
  if (sameShape(slope.shape, shape)) return slope
  const shift = slope.shape.length - shape.length
  if (shift >= 0) {
    const axes = slope.shape.flatMap((size, axis) =>
      axis < shift || (shape[axis - shift] === 1 && size !== 1) ? [axis] : [],
    )
    if (axes.length > 0) return reshape(sum(slope, axes, { keepDims: shift === 0 }), shape)
  }
  return broadcastTo(slope, shape)
}
