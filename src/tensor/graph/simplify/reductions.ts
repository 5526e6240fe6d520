/** Defines simplification rules for reductions: over axes of size 1, of another reduction, of a broadcast tensor. */
import { broadcastTo, mul, reshape } from "../ops.ts"
import { make, nextMark, sameShape } from "../ops/core.ts"
import type { Shape } from "../Tensor.ts"
import { countOpsSince, type Rule } from "./rule.ts"

const kept = (shape: Shape, axes: ReadonlyArray<number>): Shape =>
  shape.map((size, axis) => (axes.includes(axis) ? 1 : size))

/** Replaces a reduction or a cumulative sum over axes of size 1 by its input. */
export const overNothing: Rule = (tensor) => {
  const { op, inputs } = tensor
  const [x] = inputs
  if (op.kind === "cumSum") return x.shape[op.axis] === 1 && !op.exclusive ? x : undefined
  if (op.kind !== "reduce") return undefined
  return op.axes.every((axis) => x.shape[axis] === 1) ? reshape(x, tensor.shape) : undefined
}

/** Combines a sum of sums to one sum, and so with a mean of means (of equal counts), a max of max and a min of min. */
export const twice: Rule = (tensor) => {
  const { op } = tensor
  const [inner] = tensor.inputs
  if (op.kind !== "reduce" || inner.op.kind !== "reduce" || inner.op.fn !== op.fn) return undefined
  const [x] = inner.inputs
  const innerAxes = inner.op.axes
  const left = x.shape.map((_, axis) => axis).filter((axis) => !innerAxes.includes(axis))
  const outerAxes = inner.op.keepDims ? op.axes : op.axes.map((axis) => left[axis])
  const axes = [...new Set([...innerAxes, ...outerAxes])].sort((a, b) => a - b)
  const shape = op.keepDims ? kept(x.shape, axes) : x.shape.filter((_, axis) => !axes.includes(axis))
  return sameShape(shape, tensor.shape) ? make({ ...op, axes }, [x], shape, "f32") : undefined
}

/** Reduces a tensor before its broadcast: over a broadcast axis, a sum multiplies by its size, others do nothing. */
export const ofStretched: Rule = (tensor, { hasOneUser }) => {
  const { op, shape } = tensor
  const [wide] = tensor.inputs
  if (op.kind !== "reduce" || wide.op.kind !== "broadcastTo" || wide.shape.includes(0)) return undefined
  const [x] = wide.inputs
  const { keepDims, fn } = op
  const shift = wide.shape.length - x.shape.length
  const isOwn = (axis: number): boolean => axis >= shift && x.shape[axis - shift] === wide.shape[axis]
  const ownAxes = op.axes.filter(isOwn).map((axis) => axis - shift)
  const times = op.axes.reduce((product, axis) => (isOwn(axis) ? product : product * wide.shape[axis]), 1)

  const mark = nextMark()
  const ownShape = keepDims ? kept(x.shape, ownAxes) : without(x.shape, ownAxes)
  const reduced = ownAxes.length === 0 ? x : make({ ...op, axes: ownAxes }, [x], ownShape, "f32")
  const summed = fn === "sum" && times > 1 ? mul(reduced, times) : reduced
  const dropped = op.axes.map((axis) => axis - shift)
  const result = broadcastTo(keepDims ? summed : reshape(summed, without(x.shape, dropped)), shape)
  // Use the replacement only if it has no more ops than the original.
  return countOpsSince(mark, result) <= (hasOneUser(wide) ? 2 : 1) ? result : undefined
}

const without = (shape: Shape, axes: ReadonlyArray<number>): Shape => shape.filter((_, axis) => !axes.includes(axis))
