/** Makes inputs, states, constants and elementwise ops. A number as an operand gets the dtype of the other operand. */
import type { BinaryFn, CompareFn, DType, Shape, Tensor, TensorData, UnaryFn } from "../Tensor.ts"
import { arrayTypes, sizeOf } from "../Tensor.ts"
import { broadcastShapes, expectDType, fail, make } from "./core.ts"

export type Operand = Tensor | number

export const input = (name: string, shape: Shape, dtype: DType = "f32"): Tensor =>
  make({ kind: "input", name }, [], shape, dtype)

/** Makes a state; one of the type `i8` has no next value. */
export const state = (name: string, shape: Shape, dtype: "f32" | "i8" = "f32"): Tensor =>
  make({ kind: "state", name }, [], shape, dtype)

/** Makes a tensor of fixed numbers. Without a shape, an array is a vector; with one, a single number fills it. */
export const constant = (
  value: number | TensorData | ReadonlyArray<number>,
  shape?: Shape,
  dtype: DType = value instanceof Int32Array ? "i32" : value instanceof Uint8Array ? "bool" : "f32",
): Tensor => {
  const dimensions = shape ?? (typeof value === "number" ? [] : [value.length])
  const data = new arrayTypes[dtype](typeof value === "number" ? sizeOf(dimensions) : value.length)
  if (typeof value === "number") data.fill(value)
  else data.set(value)
  const wrong = dtype === "f32" ? undefined : firstUnlike(value, data, dtype === "bool" ? 1 : Infinity)
  if (wrong !== undefined) fail("constant", `expected ${dtype}, found ${wrong}`)
  if (sizeOf(dimensions) !== data.length)
    fail("constant", `expected numbers for shape [${dimensions.join(", ")}], found ${data.length}`)
  return make({ kind: "constant", data }, [], dimensions, dtype)
}

/**
 * Returns the first number that the type of `data` cannot hold exactly, or that is above `most`; undefined if there is
 * none.
 */
const firstUnlike = (value: number | ArrayLike<number>, data: TensorData, most: number): number | undefined => {
  for (let i = 0; i < data.length; i++) {
    const one = typeof value === "number" ? value : value[i]
    if (data[i] !== one || one > most) return one
  }
  return undefined
}

const unary =
  (fn: UnaryFn) =>
  (x: Tensor): Tensor => {
    expectDType(fn, ["f32"], x)
    return make({ kind: "unary", fn }, [x], x.shape, "f32")
  }

export const neg = unary("neg")
export const abs = unary("abs")
export const sign = unary("sign")
export const exp = unary("exp")
export const log = unary("log")
export const sqrt = unary("sqrt")
export const reciprocal = unary("reciprocal")
export const sin = unary("sin")
export const cos = unary("cos")
export const tanh = unary("tanh")
export const sigmoid = unary("sigmoid")
export const relu = unary("relu")
export const softplus = unary("softplus")
export const floor = unary("floor")

const pair = (op: string, a: Operand, b: Operand): readonly [Tensor, Tensor] => {
  if (typeof a === "number" && typeof b === "number") return [constant(a), constant(b)]
  const left = typeof a === "number" ? constant(a, [], typeof b === "number" ? "f32" : b.dtype) : a
  const right = typeof b === "number" ? constant(b, [], left.dtype) : b
  if (left.dtype !== right.dtype) fail(op, `cannot mix ${left.dtype} and ${right.dtype}`, left, right)
  return [left, right]
}

const binary =
  (fn: BinaryFn, dtypes: ReadonlyArray<DType> = ["f32", "i32"]) =>
  (a: Operand, b: Operand): Tensor => {
    const [left, right] = pair(fn, a, b)
    expectDType(fn, dtypes, left, right)
    return make({ kind: "binary", fn }, [left, right], broadcastShapes(fn, left, right), left.dtype)
  }

export const add = binary("add")
export const sub = binary("sub")
export const mul = binary("mul")
export const div = binary("div", ["f32"])
export const pow = binary("pow", ["f32"])
/** Returns the smaller of two elements, element by element. `min` is the reduction along axes. */
export const minimum = binary("min")
/** Returns the larger of two elements, element by element. `max` is the reduction along axes. */
export const maximum = binary("max")

const compare =
  (fn: CompareFn) =>
  (a: Operand, b: Operand): Tensor => {
    const [left, right] = pair(fn, a, b)
    expectDType(fn, ["f32", "i32"], left, right)
    return make({ kind: "compare", fn }, [left, right], broadcastShapes(fn, left, right), "bool")
  }

export const less = compare("less")
export const lessEqual = compare("lessEqual")
export const greater = compare("greater")
export const greaterEqual = compare("greaterEqual")
export const equal = compare("equal")
export const notEqual = compare("notEqual")

const logical =
  (fn: "and" | "or") =>
  (a: Tensor, b: Tensor): Tensor => {
    expectDType(fn, ["bool"], a, b)
    return make({ kind: "logical", fn }, [a, b], broadcastShapes(fn, a, b), "bool")
  }

export const and = logical("and")
export const or = logical("or")

export const not = (x: Tensor): Tensor => {
  expectDType("not", ["bool"], x)
  return make({ kind: "not" }, [x], x.shape, "bool")
}

/** Selects the element of `a` where the condition is true, and the element of `b` elsewhere. */
export const where = (condition: Tensor, a: Operand, b: Operand): Tensor => {
  expectDType("where", ["bool"], condition)
  const [left, right] = pair("where", a, b)
  return make({ kind: "where" }, [condition, left, right], broadcastShapes("where", condition, left, right), left.dtype)
}

export const clip = (x: Tensor, min: number, max: number): Tensor => {
  expectDType("clip", ["f32"], x)
  if (!(min <= max)) fail("clip", `the lower bound ${min} is above the upper bound ${max}`, x)
  return make({ kind: "clip", min, max }, [x], x.shape, "f32")
}

export const cast = (x: Tensor, dtype: DType): Tensor =>
  x.dtype === dtype ? x : make({ kind: "cast" }, [x], x.shape, dtype)

export const stopGradient = (x: Tensor): Tensor => make({ kind: "stopGradient" }, [x], x.shape, x.dtype)

export const square = (x: Tensor): Tensor => mul(x, x)
export const silu = (x: Tensor): Tensor => mul(x, sigmoid(x))

/** Computes the Gaussian error linear unit, by its approximation with tanh. */
export const gelu = (x: Tensor): Tensor => {
  const inner = mul(add(x, mul(mul(square(x), x), 0.044715)), 0.7978845608028654)
  return mul(mul(x, 0.5), add(tanh(inner), 1))
}

/** Computes the Huber loss of an error x (Huber 1964): ½ x² for |x| ≤ δ, and δ (|x| − ½ δ) for larger |x|. */
export const huber = (error: Tensor, delta = 1): Tensor => {
  const size = abs(error)
  return where(lessEqual(size, delta), mul(square(error), 0.5), mul(sub(size, delta / 2), delta))
}
