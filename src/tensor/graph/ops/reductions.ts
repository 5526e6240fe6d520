/** Makes the ops that reduce or normalise along axes. A reduction without `axes` is over all axes. */
import type { ReduceFn, Tensor } from "../Tensor.ts"
import { expectDType, make, normalAxis } from "./core.ts"
import { add, exp, log, mul, reciprocal, sqrt, square, sub } from "./elementwise.ts"
import { reshape } from "./movement.ts"

interface ReduceOptions {
  readonly keepDims?: boolean
}

const reduce =
  (fn: ReduceFn) =>
  (x: Tensor, axes?: number | ReadonlyArray<number>, options: ReduceOptions = {}): Tensor => {
    expectDType(fn, ["f32"], x)
    const listed = axes === undefined ? x.shape.map((_, axis) => axis) : typeof axes === "number" ? [axes] : axes
    const normal = [...new Set(listed.map((axis) => normalAxis(fn, x, axis)))].sort((a, b) => a - b)
    if (normal.length === 0) return x
    const { keepDims = false } = options
    const reduced = keepDims ? [1] : []
    const shape = x.shape.flatMap((size, axis) => (normal.includes(axis) ? reduced : [size]))
    return make({ kind: "reduce", fn, axes: normal, keepDims }, [x], shape, "f32")
  }

export const sum = reduce("sum")
export const mean = reduce("mean")
export const max = reduce("max")
export const min = reduce("min")

export const argMax = (x: Tensor, axis = -1): Tensor => {
  expectDType("argMax", ["f32"], x)
  const at = normalAxis("argMax", x, axis)
  return make({ kind: "argMax", axis: at }, [x], x.shape.toSpliced(at, 1), "i32")
}

const overLast =
  (kind: "softmax" | "logSoftmax") =>
  (x: Tensor): Tensor => {
    expectDType(kind, ["f32"], x)
    normalAxis(kind, x, -1)
    return make({ kind }, [x], x.shape, "f32")
  }

/** Computes exp(x) / Σ exp(x) over the last axis. */
export const softmax = overLast("softmax")
/** Computes the logarithm of `softmax` over the last axis, without overflow. */
export const logSoftmax = overLast("logSoftmax")

/** Sums up along an axis, from the end if `reverse`. With `exclusive`, an element is not part of its own sum. */
export const cumSum = (
  x: Tensor,
  axis = -1,
  options: { readonly exclusive?: boolean; readonly reverse?: boolean } = {},
): Tensor => {
  expectDType("cumSum", ["f32"], x)
  const { exclusive = false, reverse = false } = options
  return make({ kind: "cumSum", axis: normalAxis("cumSum", x, axis), exclusive, reverse }, [x], x.shape, "f32")
}

/** Computes log Σ exp(x) over the last axis, without overflow. */
export const logSumExp = (x: Tensor): Tensor => {
  const largest = max(x, -1, { keepDims: true })
  return add(log(sum(exp(sub(x, largest)), -1)), reshape(largest, x.shape.slice(0, -1)))
}

/** Computes the population variance: it divides by n, not by n − 1. */
export const variance = (x: Tensor, axes?: number | ReadonlyArray<number>, options: ReduceOptions = {}): Tensor =>
  mean(square(sub(x, mean(x, axes, { keepDims: true }))), axes, options)

/** Normalises the last axis to mean 0 and variance 1 (Ba et al. 2016), then multiplies by `scale` and adds `shift`. */
export const layerNorm = (
  x: Tensor,
  options: { readonly scale?: Tensor; readonly shift?: Tensor; readonly epsilon?: number } = {},
): Tensor => {
  const centred = sub(x, mean(x, -1, { keepDims: true }))
  const deviation = sqrt(add(mean(square(centred), -1, { keepDims: true }), options.epsilon ?? 1e-5))
  const normal = mul(centred, reciprocal(deviation))
  const scaled = options.scale === undefined ? normal : mul(normal, options.scale)
  return options.shift === undefined ? scaled : add(scaled, options.shift)
}

/** Normalises the last axis to a root mean square of 1 (Zhang and Sennrich 2019), then multiplies by `scale`. */
export const rmsNorm = (x: Tensor, options: { readonly scale?: Tensor; readonly epsilon?: number } = {}): Tensor => {
  const size = sqrt(add(mean(square(x), -1, { keepDims: true }), options.epsilon ?? 1e-6))
  const normal = mul(x, reciprocal(size))
  return options.scale === undefined ? normal : mul(normal, options.scale)
}
