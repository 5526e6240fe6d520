/**
 * Lifts ops out of the loop over minibatches, for `stages.ts`: a tensor that differs between iterations becomes one
 * tensor whose first axis is the iteration. One node before or after the loop then replaces a node in the loop's body.
 */
import { broadcastTo, constant, reshape } from "../ops.ts"
import { make } from "../ops/core.ts"
import { isElementwise, type Op, type Shape, type Tensor } from "../Tensor.ts"

/**
 * Tells whether an op can be lifted. Lifting adds an axis, and six axes are the limit. Products and convolutions stay
 * in the loop.
 */
export const isLiftable = ({ op, shape, inputs }: Tensor): boolean =>
  liftedOp(op) !== undefined && shape.length < 6 && inputs.every((input) => input.shape.length < 6)

/** Returns the op for tensors with one more axis in front; undefined for an op that cannot be lifted. */
const liftedOp = (op: Op): Op | undefined => {
  if (isElementwise(op)) return op
  switch (op.kind) {
    case "stopGradient":
    case "broadcastTo":
    case "softmax":
    case "logSoftmax":
    case "reshape":
    case "oneHot":
      return op
    case "reduce":
      return { ...op, axes: op.axes.map((axis) => axis + 1) }
    case "argMax":
    case "cumSum":
    case "concat":
      return { ...op, axis: op.axis + 1 }
    case "transpose":
      return { ...op, permutation: [0, ...op.permutation.map((axis) => axis + 1)] }
    case "slice":
      return { ...op, starts: [0, ...op.starts] }
    case "pad":
      return { ...op, before: [0, ...op.before], after: [0, ...op.after] }
    default:
      return undefined
  }
}

/**
 * Applies the op of `tensor` for all `count` iterations at once: the result has the shape [count, ...shape]. `lifted`
 * returns the values of an input in all iterations, or undefined for an input that is the same in all of them.
 */
export const lift = (tensor: Tensor, count: number, lifted: (input: Tensor) => Tensor | undefined): Tensor => {
  const { op, shape, dtype } = tensor
  const broadcasts = isElementwise(op) || op.kind === "stopGradient" || op.kind === "broadcastTo"
  const inputs = tensor.inputs.map((input) => {
    const many = lifted(input)
    if (!broadcasts) return many ?? repeated(input, count)
    return many === undefined ? input : stretched(many, shape.length)
  })
  const manyOp = liftedOp(op)
  if (manyOp === undefined) throw new Error(`lift: unexpected ${op.kind}`)
  return make(manyOp, inputs, [count, ...shape], dtype)
}

/** Repeats a tensor that is the same in all iterations: the result has the shape [count, ...shape]. */
export const repeated = (tensor: Tensor, count: number): Tensor => broadcastTo(tensor, [count, ...tensor.shape])

/** Makes a tensor [count, 1, …] of the numbers 0, step, 2 step, …; it has one axis more than `shape`. */
export const counted = (step: number, count: number, shape: Shape): Tensor => {
  const numbers = Float32Array.from({ length: count }, (_, iteration) => iteration * step)
  return constant(numbers, [count, ...shape.map(() => 1)])
}

/** Adds axes of size 1 after the first, so that tensors broadcast: [count, 4] with rank 2 becomes [count, 1, 4]. */
const stretched = (many: Tensor, rank: number): Tensor => {
  const [count, ...own] = many.shape
  const missing = rank - own.length
  return missing === 0 ? many : reshape(many, [count, ...new Array<number>(missing).fill(1), ...own])
}
