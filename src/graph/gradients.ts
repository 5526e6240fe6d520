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
  type ReduceFn,
  type Shape,
  sizeOf,
  type Tensor,
  topologicalOrder,
  type UnaryFn,
} from "./Tensor.ts"

/**
 * Differentiates a scalar with respect to tensors in reverse mode; the gradients are tensors of the same graph.
 *
 * They consist of as few ops as possible, because an ONNX session has a cost for each op. At a tie, `min`, `max`,
 * `minimum` and `maximum` divide the gradient equally among the equal inputs; `clip` passes it on from its lower to its
 * upper bound, both included.
 *
 * @example
 * ```ts
 * const w = state("w", [3])
 * const [slope] = gradients(sum(square(w)), [w]) // 2 w
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
    for (const [input, part] of pullBack(tensor, slope, (input) => matters.has(input))) {
      const sofar = contributions.get(input)
      if (sofar === undefined) contributions.set(input, [part])
      else sofar.push(part)
    }
  }
  return withRespectTo.map((tensor) => slopes.get(tensor) ?? constant(0, tensor.shape))
}

/** Adds up the gradients that all users of a tensor give it. If the users are slices, one concat joins their gradients. */
const total = (parts: ReadonlyArray<Tensor>): Tensor => {
  const sideBySide = parts.length === 1 ? undefined : joined(parts)
  return sideBySide ?? parts.reduce((sum, part) => add(sum, part))
}

/** Joins parts by one concat if each fills a different range of the same axis and is zero elsewhere; else undefined. */
const joined = (parts: ReadonlyArray<Tensor>): Tensor | undefined => {
  const axis = stretchOf(parts[0])?.axis
  const stretches = parts.flatMap((part) => stretchOf(part) ?? []).sort((a, b) => a.start - b.start)
  if (axis === undefined || stretches.length < parts.length) return undefined
  const { shape } = parts[0]
  const pieces: Array<Tensor> = []
  let end = 0
  const fillTo = (start: number): void => {
    const gap = shape.map((size, index) => (index === axis ? start - end : size))
    if (start > end) pieces.push(constant(0, gap))
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

/** Recognises a tensor that pads another one with zeros along one axis: returns the padded tensor, the axis and its start. */
const stretchOf = ({ op, inputs }: Tensor) => {
  if (op.kind !== "pad" || op.value !== 0) return undefined
  const [axis, ...others] = op.before.flatMap((before, index) => (before + op.after[index] > 0 ? [index] : []))
  return others.length > 0 ? undefined : { axis, start: op.before[axis], piece: inputs[0] }
}

type Contribution = readonly [Tensor, Tensor]
type Give = (index: number, slope: () => Tensor) => void

/** Computes, from the gradient `dy` at `y`, the contributions to the gradients at the inputs of `y` that matter. */
const pullBack = (y: Tensor, dy: Tensor, matters: (input: Tensor) => boolean): ReadonlyArray<Contribution> => {
  const contributions: Array<Contribution> = []
  const give = (index: number, slope: () => Tensor): void => {
    const input = y.inputs[index]
    if (matters(input) && input.dtype === "f32") contributions.push([input, toShape(slope(), input.shape)])
  }
  const [a, b] = y.inputs
  const { op } = y
  switch (op.kind) {
    case "unary":
      unarySlopes(op.fn, a, y, dy, give)
      break
    case "binary":
      binarySlopes(op.fn, a, b, y, dy, give)
      break
    case "where":
      give(1, () => where(a, dy, 0))
      give(2, () => where(a, 0, dy))
      break
    case "clip":
      give(0, () => where(equal(a, y), dy, 0))
      break
    case "cast":
      break
    case "matmul":
      matmulSlopes(op.transposeA, op.transposeB, a, b, dy, give)
      break
    case "conv2d": {
      const { strides, padding } = op
      give(0, () => make({ kind: "conv2dInputGrad", strides, padding }, [dy, b], a.shape, "f32"))
      give(1, () => make({ kind: "conv2dWeightGrad", strides, padding }, [a, dy], b.shape, "f32"))
      break
    }
    case "conv2dInputGrad": {
      // The op is linear in both inputs: the gradient at dy is the convolution of the incoming gradient with w, and the
      // gradient at w is the weight gradient in which the incoming gradient takes the place of x.
      const { strides, padding } = op
      give(0, () => make({ kind: "conv2d", strides, padding }, [dy, b], a.shape, "f32"))
      give(1, () => make({ kind: "conv2dWeightGrad", strides, padding }, [dy, a], b.shape, "f32"))
      break
    }
    case "conv2dWeightGrad": {
      const { strides, padding } = op
      give(0, () => make({ kind: "conv2dInputGrad", strides, padding }, [b, dy], a.shape, "f32"))
      give(1, () => make({ kind: "conv2d", strides, padding }, [a, dy], b.shape, "f32"))
      break
    }
    case "reduce":
      give(0, () => reduceSlope(op.fn, op.axes, a, y, dy))
      break
    case "softmax":
      give(0, () => mul(y, sub(dy, sum(mul(dy, y), -1, { keepDims: true }))))
      break
    case "logSoftmax":
      give(0, () => sub(dy, mul(exp(y), sum(dy, -1, { keepDims: true }))))
      break
    case "cumSum":
      give(0, () => cumSum(dy, op.axis, { exclusive: op.exclusive, reverse: !op.reverse }))
      break
    case "reshape":
      give(0, () => reshape(dy, a.shape))
      break
    case "transpose":
      give(0, () => transpose(dy, inverse(op.permutation)))
      break
    case "broadcastTo":
      give(0, () => dy)
      break
    case "slice":
      give(0, () =>
        pad(
          dy,
          op.starts,
          a.shape.map((size, axis) => size - op.starts[axis] - y.shape[axis]),
        ),
      )
      break
    case "concat": {
      let start = 0
      y.inputs.forEach((input, index) => {
        const starts = y.shape.map((_, axis) => (axis === op.axis ? start : 0))
        start += input.shape[op.axis]
        give(index, () => slice(dy, starts, input.shape))
      })
      break
    }
    case "pad":
      give(0, () => slice(dy, op.before, a.shape))
      break
    case "gather":
      give(0, () => scatterAdd(b, dy, a.shape[0]))
      break
    case "scatterAdd":
      give(1, () => gather(dy, a))
      break
    // No gradient flows through these ops.
    case "stopGradient":
    case "compare":
    case "logical":
    case "not":
    case "argMax":
    case "oneHot":
    case "input":
    case "state":
    case "constant":
      break
  }
  return contributions
}

const unarySlopes = (fn: UnaryFn, x: Tensor, y: Tensor, dy: Tensor, give: Give): void => {
  switch (fn) {
    case "neg":
      return give(0, () => neg(dy))
    case "abs":
      return give(0, () => mul(dy, sign(x)))
    case "exp":
      return give(0, () => mul(dy, y))
    case "log":
      return give(0, () => div(dy, x))
    case "sqrt":
      return give(0, () => div(mul(dy, 0.5), y))
    case "reciprocal":
      return give(0, () => neg(mul(dy, square(y))))
    case "sin":
      return give(0, () => mul(dy, cos(x)))
    case "cos":
      return give(0, () => neg(mul(dy, sin(x))))
    case "tanh":
      return give(0, () => mul(dy, sub(1, square(y))))
    case "sigmoid":
      return give(0, () => mul(dy, mul(y, sub(1, y))))
    case "relu":
      return give(0, () => where(greater(x, 0), dy, 0))
    case "softplus":
      return give(0, () => mul(dy, sigmoid(x)))
    // These functions are constant almost everywhere, so the gradient is zero.
    case "sign":
    case "floor":
      return
  }
}

const binarySlopes = (fn: BinaryFn, a: Tensor, b: Tensor, y: Tensor, dy: Tensor, give: Give): void => {
  switch (fn) {
    case "add":
      give(0, () => dy)
      give(1, () => dy)
      break
    case "sub":
      give(0, () => dy)
      give(1, () => neg(dy))
      break
    case "mul":
      if (a === b) {
        // For x · x, one op computes both contributions.
        give(0, () => mul(mul(dy, 2), a))
        break
      }
      give(0, () => mul(dy, b))
      give(1, () => mul(dy, a))
      break
    case "div": {
      const quotient = once(() => div(dy, b))
      give(0, quotient)
      give(1, () => neg(mul(quotient(), y)))
      break
    }
    case "pow":
      give(0, () => mul(dy, mul(b, pow(a, sub(b, 1)))))
      give(1, () => mul(dy, where(greater(a, 0), mul(y, log(where(greater(a, 0), a, 1))), 0)))
      break
    case "min":
    case "max": {
      const wins = once(() => (fn === "min" ? less(a, b) : greater(a, b)))
      const ties = once(() => equal(a, b))
      const half = once(() => mul(dy, 0.5))
      give(0, () => where(wins(), dy, where(ties(), half(), 0)))
      give(1, () => where(wins(), 0, where(ties(), half(), dy)))
      break
    }
  }
}

/** Makes a tensor at the first call, and returns the same one afterwards. */
const once = (make: () => Tensor): (() => Tensor) => {
  let made: Tensor | undefined
  return () => (made ??= make())
}

const matmulSlopes = (transposeA: boolean, transposeB: boolean, a: Tensor, b: Tensor, dy: Tensor, give: Give): void => {
  give(0, () =>
    transposeA
      ? matmul(b, dy, { transposeA: transposeB, transposeB: true })
      : matmul(dy, b, { transposeB: !transposeB }),
  )
  give(1, () =>
    transposeB
      ? matmul(dy, a, { transposeA: true, transposeB: transposeA })
      : matmul(a, dy, { transposeA: !transposeA }),
  )
}

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

const inverse = (permutation: ReadonlyArray<number>): ReadonlyArray<number> => {
  const result = new Array<number>(permutation.length)
  permutation.forEach((axis, index) => {
    result[axis] = index
  })
  return result
}

/** Sums a gradient over the axes along which its tensor was broadcast; broadcasts one that is smaller. */
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
