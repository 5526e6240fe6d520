/** Defines the simplification rules for ops that move elements, and for broadcasts before ops that broadcast anyway. */
import { concat, reshape, slice, transpose } from "../ops.ts"
import { broadcastShapes, lastTwoSwapped, make, sameShape } from "../ops/core.ts"
import { isElementwise, type Shape, sizeOf, type Tensor } from "../Tensor.ts"
import { likeShape, onInputs, type Rule, scalarLike, uniformValue } from "./rule.ts"

const withoutLeadingOnes = (shape: Shape): Shape => {
  const first = shape.findIndex((size) => size !== 1)
  return first === -1 ? [] : shape.slice(first)
}

/**
 * Returns the smallest tensor that gives `x` when it is broadcast: a scalar if all elements are equal, else the tensor
 * before the broadcasts that made `x`. It can have more leading axes of size 1 than `x`.
 */
const narrowed = (x: Tensor): Tensor => {
  const value = uniformValue(x)
  if (value !== undefined) return x.shape.length === 0 ? x : scalarLike(x, value)
  if (x.op.kind === "broadcastTo") return narrowed(x.inputs[0])
  const [source] = x.inputs
  const onlyLeadingOnes =
    x.op.kind === "reshape" && sameShape(withoutLeadingOnes(x.shape), withoutLeadingOnes(source.shape))
  return onlyLeadingOnes ? narrowed(source) : x
}

/**
 * Lets an elementwise op read its inputs without explicit broadcasts, as it broadcasts anyway. If all inputs are then
 * smaller than the result, computes a small result and broadcasts that.
 */
export const broadcasts: Rule = (tensor, { hasOneUser }) => {
  const { op, inputs, shape } = tensor
  const stretches = op.kind === "binary" || op.kind === "compare" || op.kind === "logical" || op.kind === "where"
  if (stretches) {
    const narrow = [...inputs]
    inputs.forEach((input, index) => {
      narrow[index] = narrowed(input)
      if (!sameShape(broadcastShapes(op.kind, ...narrow), shape)) narrow[index] = input
    })
    if (narrow.some((input, index) => input !== inputs[index])) return onInputs(tensor, narrow)
  }
  if (!isElementwise(op) || !inputs.some((input) => input.op.kind === "broadcastTo" && hasOneUser(input)))
    return undefined
  const least = inputs.map(narrowed)
  const own = broadcastShapes(op.kind, ...least)
  const isSmaller = own.length <= shape.length && sizeOf(own) < sizeOf(shape)
  return isSmaller ? stretched(onInputs(tensor, least, own), shape) : undefined
}

const stretched = (x: Tensor, shape: Shape): Tensor => make({ kind: "broadcastTo" }, [x], shape, x.dtype)

/** Removes a reshape to the same shape, combines two, and makes a reshape of one broadcast number a broadcast. */
export const reshapes: Rule = (tensor) => {
  if (tensor.op.kind !== "reshape") return undefined
  const [x] = tensor.inputs
  if (likeShape(x, tensor)) return x
  if (x.op.kind === "reshape") return reshape(x.inputs[0], tensor.shape)
  const [source] = x.inputs
  const ofOneNumber = x.op.kind === "broadcastTo" && sizeOf(source.shape) === 1
  return ofOneNumber && source.shape.length <= tensor.shape.length ? stretched(source, tensor.shape) : undefined
}

/**
 * Removes a broadcast to the same shape. If a broadcast's input was itself made by broadcasting or reshaping a smaller
 * tensor (see `narrowed`), broadcasts that smaller tensor instead.
 */
export const stretches: Rule = (tensor) => {
  if (tensor.op.kind !== "broadcastTo") return undefined
  const [x] = tensor.inputs
  if (likeShape(x, tensor)) return x
  const least = narrowed(x)
  // A reshape that drops leading axes of size 1 can leave a source of a higher rank, which cannot be broadcast.
  const isNarrower = least !== x && least.shape.length <= tensor.shape.length
  return isNarrower ? stretched(least, tensor.shape) : undefined
}

/** Combines transposes with each other and with matmul; one that moves only axes of size 1 becomes a reshape. */
export const transposes: Rule = (tensor) => {
  const { op, inputs } = tensor
  const [x, y] = inputs
  if (op.kind === "transpose") {
    if (x.op.kind === "transpose") {
      const { permutation } = x.op
      const both = op.permutation.map((axis) => permutation[axis])
      return transpose(x.inputs[0], both)
    }
    const moved = op.permutation.filter((axis) => x.shape[axis] !== 1)
    return moved.every((axis, index) => index === 0 || moved[index - 1] < axis) ? reshape(x, tensor.shape) : undefined
  }
  if (op.kind !== "matmul") return undefined
  const [a, b] = [swapOfLastTwo(x), swapOfLastTwo(y)]
  if (a === undefined && b === undefined) return undefined
  const transposeA = op.transposeA !== (a !== undefined)
  const transposeB = op.transposeB !== (b !== undefined)
  return make({ kind: "matmul", transposeA, transposeB }, [a ?? x, b ?? y], tensor.shape, "f32")
}

/** Returns the input of a transpose that exchanges only the last two axes; undefined for another tensor. */
const swapOfLastTwo = ({ op, inputs }: Tensor): Tensor | undefined => {
  if (op.kind !== "transpose") return undefined
  return sameShape(op.permutation, lastTwoSwapped(op.permutation.length)) ? inputs[0] : undefined
}

/** Lets a slice of a slice, pad or concat read the inner tensor directly, if one inner tensor contains all of it. */
export const slices: Rule = (tensor) => {
  const { op, shape } = tensor
  if (op.kind !== "slice") return undefined
  const [x] = tensor.inputs
  const startsIn = (offsets: ReadonlyArray<number>): ReadonlyArray<number> =>
    op.starts.map((start, axis) => start + offsets[axis])
  if (likeShape(x, tensor)) return x
  switch (x.op.kind) {
    case "slice":
      return slice(x.inputs[0], startsIn(x.op.starts), shape)
    case "pad": {
      const [inner] = x.inputs
      const starts = startsIn(x.op.before.map((before) => -before))
      const inside = starts.every((start, axis) => start >= 0 && start + shape[axis] <= inner.shape[axis])
      return inside ? slice(inner, starts, shape) : undefined
    }
    case "concat": {
      const { axis } = x.op
      let begin = 0
      for (const part of x.inputs) {
        const offset = op.starts[axis] - begin
        if (offset >= 0 && offset + shape[axis] <= part.shape[axis]) {
          return slice(part, op.starts.with(axis, offset), shape)
        }
        begin += part.shape[axis]
      }
      return undefined
    }
    default:
      return undefined
  }
}

/**
 * In a concat, joins neighbouring slices of one tensor to one slice, and replaces a concat along the same axis by its
 * parts.
 */
export const concats: Rule = (tensor, { hasOneUser }) => {
  if (tensor.op.kind !== "concat") return undefined
  const { axis } = tensor.op
  const parts = tensor.inputs.flatMap((part) =>
    part.op.kind === "concat" && part.op.axis === axis && hasOneUser(part) ? part.inputs : [part],
  )
  const merged: Array<Tensor> = []
  for (const part of parts) {
    const last = merged[merged.length - 1]
    const both = last === undefined ? undefined : union(last, part, axis)
    if (both === undefined) merged.push(part)
    else merged[merged.length - 1] = both
  }
  // If a joined slice has other users, it remains, so the program may get larger. Then `simplify` returns an earlier
  // version.
  return merged.length === tensor.inputs.length ? undefined : concat(merged, axis)
}

/** Joins two slices to one if the second begins at the end of the first along `axis`; else returns undefined. */
const union = (first: Tensor, second: Tensor, axis: number): Tensor | undefined => {
  if (first.op.kind !== "slice" || second.op.kind !== "slice" || first.inputs[0] !== second.inputs[0]) return undefined
  const [from, to] = [first.op.starts, second.op.starts]
  const adjacent = to.every((start, index) => start === from[index] + (index === axis ? first.shape[axis] : 0))
  if (!adjacent) return undefined
  return slice(first.inputs[0], from, first.shape.with(axis, first.shape[axis] + second.shape[axis]))
}
