/**
 * Defines the simplification rules for arithmetic on single elements. A rule returns the simpler tensor, or undefined
 * if it does not apply. All rules are exact for every float, including NaN and the infinities. Only the sign of a zero
 * may change, and the rounding when two scale factors become one.
 */
import { abs, add, broadcastTo, cast, clip, mul, neg, sub, where } from "../ops.ts"
import { make } from "../ops/core.ts"
import type { Tensor } from "../Tensor.ts"
import { likeShape, type Rule, scalarLike, uniformValue } from "./rule.ts"

const isZero = (x: Tensor): boolean => uniformValue(x) === 0
const isOne = (x: Tensor): boolean => uniformValue(x) === 1

/** Returns `x` if it has the tensor's shape and dtype, so that it can replace the tensor; otherwise undefined. */
const ifSameShape = (tensor: Tensor, x: Tensor): Tensor | undefined => (likeShape(tensor, x) ? x : undefined)

const zeroLike = (tensor: Tensor): Tensor => broadcastTo(scalarLike(tensor, 0), tensor.shape)

/** Tells whether all elements are certainly finite, so that multiplying them by 0 always gives 0. */
const isFinite = (tensor: Tensor): boolean => {
  let moved = tensor
  while (moved.op.kind === "reshape" || moved.op.kind === "transpose" || moved.op.kind === "broadcastTo")
    moved = moved.inputs[0]
  const { op, dtype } = moved
  if (op.kind === "constant" && dtype === "f32") return op.data.every(Number.isFinite)
  return dtype !== "f32" || op.kind === "oneHot" || op.kind === "cast"
}

const negated = ({ op, inputs }: Tensor): Tensor | undefined =>
  op.kind === "unary" && op.fn === "neg" ? inputs[0] : undefined

/** Recognises a · (−b), and returns a · b; otherwise returns undefined. */
const negatedProduct = ({ op, inputs }: Tensor): Tensor | undefined => {
  if (op.kind !== "binary" || op.fn !== "mul") return undefined
  const [a, b] = inputs
  const [negA, negB] = [negated(a), negated(b)]
  if (negB !== undefined) return mul(a, negB)
  return negA === undefined ? undefined : mul(negA, b)
}

/** Removes arithmetic that changes nothing, such as x + 0 and x · 1; replaces x · 0 by zeros, and x² by x · x. */
export const neutral: Rule = (tensor) => {
  if (tensor.op.kind !== "binary") return undefined
  const [a, b] = tensor.inputs
  switch (tensor.op.fn) {
    case "add":
      return isZero(b) ? ifSameShape(tensor, a) : isZero(a) ? ifSameShape(tensor, b) : undefined
    case "sub":
      return isZero(b) ? ifSameShape(tensor, a) : undefined
    case "mul":
      if ((isZero(a) && isFinite(b)) || (isZero(b) && isFinite(a))) return zeroLike(tensor)
      return isOne(b) ? ifSameShape(tensor, a) : isOne(a) ? ifSameShape(tensor, b) : undefined
    case "div":
      return isOne(b) ? ifSameShape(tensor, a) : undefined
    case "pow":
      return isOne(b) ? ifSameShape(tensor, a) : uniformValue(b) === 2 && likeShape(tensor, a) ? mul(a, a) : undefined
    case "min":
    case "max":
      return a === b ? a : undefined
  }
}

/** Rewrites a + (−b) to a − b, a + b · (−c) to a − b · c, and so on, so that the negation is no longer needed. */
export const signs: Rule = (tensor, { hasOneUser }) => {
  const { op } = tensor
  const [a, b] = tensor.inputs
  if (op.kind === "binary") {
    const opposite = (x: Tensor): Tensor | undefined =>
      negated(x) ?? (hasOneUser(x) && likeShape(x, tensor) ? negatedProduct(x) : undefined)
    const [negA, negB] = op.fn === "mul" ? [negated(a), negated(b)] : [opposite(a), opposite(b)]
    if (op.fn === "add" && negB !== undefined) return sub(a, negB)
    if (op.fn === "add" && negA !== undefined) return sub(b, negA)
    if (op.fn === "sub" && negB !== undefined) return add(a, negB)
    if (op.fn === "mul" && negA !== undefined && negB !== undefined) return mul(negA, negB)
  }
  if (op.kind !== "unary") return undefined
  const inner = negated(a)
  if (op.fn === "neg") {
    if (inner !== undefined) return inner
    return a.op.kind === "binary" && a.op.fn === "sub" ? sub(a.inputs[1], a.inputs[0]) : undefined
  }
  return op.fn === "abs" && inner !== undefined ? abs(inner) : undefined
}

interface Scaled {
  readonly x: Tensor
  readonly by: number
}

/** Recognises a tensor that is another tensor times a number; undefined for other tensors. */
const scaled = (tensor: Tensor): Scaled | undefined => {
  const { op, inputs } = tensor
  const [a, b] = inputs
  const scaledBy = (x: Tensor, by: number | undefined): Scaled | undefined =>
    by === undefined || !likeShape(x, tensor) ? undefined : { x, by }
  if (tensor.dtype !== "f32") return undefined
  if (op.kind === "unary" && op.fn === "neg") return scaledBy(a, -1)
  if (op.kind !== "binary") return undefined
  if (op.fn === "mul") return scaledBy(a, uniformValue(b)) ?? scaledBy(b, uniformValue(a))
  const divisor = op.fn === "div" ? uniformValue(b) : undefined
  return divisor === undefined ? undefined : scaledBy(a, 1 / divisor)
}

const smallestNormal = 2 ** -126
const largest = 3.4e38

/** Combines two successive scale factors to one, unless it is out of a float's range; writes x · (−1) as −x. */
export const scaleChains: Rule = (tensor) => {
  const outer = scaled(tensor)
  if (outer === undefined) return undefined
  const inner = scaled(outer.x)
  if (inner !== undefined) {
    const by = outer.by * inner.by
    const fits = Math.abs(by) >= smallestNormal && Math.abs(by) <= largest
    if (!fits || Math.abs(inner.by) < smallestNormal || Math.abs(inner.by) > largest) return undefined
    return by === 1 ? inner.x : mul(inner.x, scalarLike(tensor, by))
  }
  return outer.by === -1 && tensor.op.kind === "binary" ? neg(outer.x) : undefined
}

/** Removes a function that is applied to its own result, such as relu(relu(x)), and combines two clips or casts. */
export const repeated: Rule = (tensor) => {
  const { op } = tensor
  const [x] = tensor.inputs
  if (op.kind === "unary" && x.op.kind === "unary" && x.op.fn === op.fn) {
    const idempotent = op.fn === "abs" || op.fn === "relu" || op.fn === "sign" || op.fn === "floor"
    return idempotent ? x : undefined
  }
  if (op.kind === "clip") {
    if (op.min === -Infinity && op.max === Infinity) return x
    if (x.op.kind !== "clip") return undefined
    const into = (value: number): number => Math.min(Math.max(value, op.min), op.max)
    return clip(x.inputs[0], into(x.op.min), into(x.op.max))
  }
  if (op.kind === "cast" && x.op.kind === "cast" && x.inputs[0].dtype === "bool") return cast(x.inputs[0], tensor.dtype)
  return undefined
}

const opposite = {
  equal: "notEqual",
  notEqual: "equal",
  less: "greaterEqual",
  lessEqual: "greater",
  greater: "lessEqual",
  greaterEqual: "less",
} as const

/** Simplifies `not`, `and`, `or` and `where`. */
export const truths: Rule = (tensor) => {
  const { op } = tensor
  const [a, b, c] = tensor.inputs
  switch (op.kind) {
    case "not":
      if (a.op.kind === "not") return a.inputs[0]
      if (a.op.kind !== "compare") return undefined
      // Do not negate `less` or `greater` of floats: if an element is NaN, both the comparison and its opposite are false.
      return a.inputs[0].dtype === "i32" || a.op.fn === "equal" || a.op.fn === "notEqual"
        ? make({ kind: "compare", fn: opposite[a.op.fn] }, a.inputs, a.shape, "bool")
        : undefined
    case "logical": {
      const [left, right] = [uniformValue(a), uniformValue(b)]
      const neutralTo = op.fn === "and" ? 1 : 0
      if (a === b || right === neutralTo) return ifSameShape(tensor, a)
      return left === neutralTo ? ifSameShape(tensor, b) : undefined
    }
    case "where": {
      const truth = uniformValue(a)
      if (truth !== undefined) return ifSameShape(tensor, truth === 0 ? c : b)
      if (b === c) return ifSameShape(tensor, b)
      return a.op.kind === "not" ? where(a.inputs[0], c, b) : undefined
    }
    default:
      return undefined
  }
}
