/** Makes the ops that move elements without changing their values, such as reshape and slice. */
import { type Shape, sizeOf, type Tensor } from "../Tensor.ts"
import { expectDType, fail, isSize, lastTwoSwapped, make, normalAxis, sameShape, shapeText } from "./core.ts"

/** Gives a tensor another shape of the same size. One size may be −1; it is computed from the others. */
export const reshape = (x: Tensor, shape: Shape): Tensor => {
  const fixed = sizeOf(shape.filter((size) => size !== -1))
  const open = shape.filter((size) => size === -1).length
  const target = shape.map((size) => (size === -1 ? sizeOf(x.shape) / fixed : size))
  if (open > 1 || sizeOf(target) !== sizeOf(x.shape) || !target.every(isSize)) {
    fail("reshape", `expected a shape of the same size, found ${shapeText(shape)}`, x)
  }
  return sameShape(target, x.shape) ? x : make({ kind: "reshape" }, [x], target, x.dtype)
}

export const flatten = (x: Tensor): Tensor => reshape(x, [-1])

/** Reorders axes: axis i of the result is axis `permutation[i]` of `x`. By default it exchanges the last two. */
export const transpose = (x: Tensor, permutation?: ReadonlyArray<number>): Tensor => {
  const rank = x.shape.length
  const order = permutation ?? lastTwoSwapped(rank)
  const isPermutation = order.length === rank && [...order].sort((a, b) => a - b).every((axis, index) => axis === index)
  if (!isPermutation) fail("transpose", `expected an order of all axes, found ${shapeText(order)}`, x)
  if (order.every((axis, index) => axis === index)) return x
  const shape = order.map((axis) => x.shape[axis])
  return make({ kind: "transpose", permutation: order }, [x], shape, x.dtype)
}

export const broadcastTo = (x: Tensor, shape: Shape): Tensor => {
  const shift = shape.length - x.shape.length
  if (shift < 0 || !x.shape.every((size, axis) => size === 1 || size === shape[axis + shift])) {
    fail("broadcastTo", `cannot broadcast to ${shapeText(shape)}`, x)
  }
  return sameShape(shape, x.shape) ? x : make({ kind: "broadcastTo" }, [x], shape, x.dtype)
}

/** Cuts out a range of `sizes` elements from `starts` on; both have one number per axis. */
export const slice = (x: Tensor, starts: ReadonlyArray<number>, sizes: Shape): Tensor => {
  const fits =
    starts.length === x.shape.length &&
    sizes.length === x.shape.length &&
    starts.every((start, axis) => isSize(start) && isSize(sizes[axis]) && start + sizes[axis] <= x.shape[axis])
  if (!fits) fail("slice", `${shapeText(sizes)} from ${shapeText(starts)} is not inside`, x)
  return sameShape(sizes, x.shape) ? x : make({ kind: "slice", starts }, [x], sizes, x.dtype)
}

/** Splits a tensor along an axis into parts of these sizes. */
export const split = (x: Tensor, sizes: ReadonlyArray<number>, axis = 0): ReadonlyArray<Tensor> => {
  const at = normalAxis("split", x, axis)
  if (sizes.reduce((sum, size) => sum + size, 0) !== x.shape[at])
    fail("split", `expected sizes that add up to axis ${axis}, found ${shapeText(sizes)}`, x)
  let start = 0
  return sizes.map((size) => {
    const starts = x.shape.map((_, index) => (index === at ? start : 0))
    start += size
    return slice(x, starts, x.shape.with(at, size))
  })
}

export const concat = (tensors: ReadonlyArray<Tensor>, axis = 0): Tensor => {
  const [first, ...rest] = tensors
  if (first === undefined) return fail("concat", "expected at least one tensor")
  if (rest.length === 0) return first
  const at = normalAxis("concat", first, axis)
  const fits = rest.every(
    ({ shape, dtype }) =>
      dtype === first.dtype &&
      shape.length === first.shape.length &&
      shape.every((size, index) => index === at || size === first.shape[index]),
  )
  if (!fits) fail("concat", `expected shapes that are equal except along axis ${axis}`, ...tensors)
  const total = tensors.reduce((sum, { shape }) => sum + shape[at], 0)
  return make({ kind: "concat", axis: at }, tensors, first.shape.with(at, total), first.dtype)
}

export const expandDims = (x: Tensor, axis: number): Tensor => {
  const rank = x.shape.length + 1
  const at = axis < 0 ? axis + rank : axis
  if (!Number.isInteger(at) || at < 0 || at >= rank)
    fail("expandDims", `there is no position ${axis} for a new axis`, x)
  return reshape(x, [...x.shape.slice(0, at), 1, ...x.shape.slice(at)])
}

/** Removes the axes in `axes`, which must have size 1. Without `axes`, removes all axes of size 1. */
export const squeeze = (x: Tensor, axes?: ReadonlyArray<number>): Tensor => {
  const drop =
    axes?.map((axis) => normalAxis("squeeze", x, axis)) ?? x.shape.flatMap((size, axis) => (size === 1 ? [axis] : []))
  if (drop.some((axis) => x.shape[axis] !== 1)) fail("squeeze", `expected axes of size 1 at ${shapeText(drop)}`, x)
  const kept = x.shape.filter((_, axis) => !drop.includes(axis))
  return reshape(x, kept)
}

export const stack = (tensors: ReadonlyArray<Tensor>, axis = 0): Tensor => {
  const expanded = tensors.map((tensor) => expandDims(tensor, axis))
  return concat(expanded, axis)
}

export const pad = (x: Tensor, before: ReadonlyArray<number>, after: ReadonlyArray<number>, value = 0): Tensor => {
  const rank = x.shape.length
  const whole = (sizes: ReadonlyArray<number>) => sizes.length === rank && sizes.every(isSize)
  if (!whole(before) || !whole(after)) {
    const sizes = `${shapeText(before)} before and ${shapeText(after)} after`
    fail("pad", `expected integers from 0 on for each axis, found ${sizes}`, x)
  }
  if ([...before, ...after].every((size) => size === 0)) return x
  const shape = x.shape.map((size, axis) => size + before[axis] + after[axis])
  return make({ kind: "pad", before, after, value }, [x], shape, x.dtype)
}

/** Selects rows of `data` by index: data [rows, ...rest] and i32 indices [...] → [...indices.shape, ...rest]. */
export const gather = (data: Tensor, indices: Tensor): Tensor => {
  expectDType("gather", ["i32"], indices)
  if (data.shape.length === 0) fail("gather", "a scalar has no rows", data)
  if (data.shape[0] === 0 && sizeOf(indices.shape) > 0)
    fail("gather", "expected at least one row to select from", data, indices)
  return make({ kind: "gather" }, [data, indices], [...indices.shape, ...data.shape.slice(1)], data.dtype)
}

/** Makes a tensor of `rows` rows of zeros, and adds each update to the row whose index is in `indices`. */
export const scatterAdd = (indices: Tensor, updates: Tensor, rows: number): Tensor => {
  expectDType("scatterAdd", ["i32"], indices)
  expectDType("scatterAdd", ["f32"], updates)
  const rank = indices.shape.length
  if (!sameShape(updates.shape.slice(0, rank), indices.shape))
    fail("scatterAdd", "expected updates whose shape begins with that of the indices", indices, updates)
  if (rows === 0 && sizeOf(indices.shape) > 0)
    fail("scatterAdd", "expected at least one row to add to", indices, updates)
  return make({ kind: "scatterAdd" }, [indices, updates], [rows, ...updates.shape.slice(rank)], "f32")
}

export const oneHot = (indices: Tensor, depth: number): Tensor => {
  expectDType("oneHot", ["i32"], indices)
  return make({ kind: "oneHot", depth }, [indices], [...indices.shape, depth], "f32")
}
