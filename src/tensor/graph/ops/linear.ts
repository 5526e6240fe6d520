/** Makes the ops for matrix products and convolutions. */
import type { Tensor } from "../Tensor.ts"
import { commonShape, expectDType, fail, isSize, make } from "./core.ts"

interface MatmulOptions {
  readonly transposeA?: boolean
  readonly transposeB?: boolean
}

/**
 * Multiplies matrices: [..., m, k] × [..., k, n] → [..., m, n], after the transposes in `options`; leading axes
 * broadcast.
 */
export const matmul = (a: Tensor, b: Tensor, options: MatmulOptions = {}): Tensor => {
  const { transposeA = false, transposeB = false } = options
  expectDType("matmul", ["f32"], a, b)
  if (a.shape.length < 2 || b.shape.length < 2) fail("matmul", "expected at least two axes on both sides", a, b)
  const [m, k] = lastTwo(a, transposeA)
  const [k2, n] = lastTwo(b, transposeB)
  if (k !== k2) fail("matmul", `inner sizes ${k} and ${k2} differ`, a, b)
  const leading = commonShape(a.shape.slice(0, -2), b.shape.slice(0, -2))
  if (leading === undefined) return fail("matmul", "leading axes do not broadcast", a, b)
  return make({ kind: "matmul", transposeA, transposeB }, [a, b], [...leading, m, n], "f32")
}

const lastTwo = ({ shape }: Tensor, transposed: boolean): readonly [number, number] => {
  const [rows, columns] = [shape[shape.length - 2], shape[shape.length - 1]]
  return transposed ? [columns, rows] : [rows, columns]
}

export interface Conv2dOptions {
  readonly strides?: number | readonly [number, number]
  /**
   * The padding with zeros: one number for all sides, or top, left, bottom and right. With `same`, the output's height
   * and width are ⌈size / stride⌉, where size is the size of the input.
   */
  readonly padding?: number | "same" | readonly [number, number, number, number]
}

/** Convolves images with kernels: x [N, C, H, W] and w [O, C, kh, kw] → [N, O, H', W']. */
export const conv2d = (x: Tensor, w: Tensor, options: Conv2dOptions = {}): Tensor => {
  expectDType("conv2d", ["f32"], x, w)
  if (x.shape.length !== 4 || w.shape.length !== 4) fail("conv2d", "expected [N, C, H, W] and [O, C, kh, kw]", x, w)
  const [batch, channels, height, width] = x.shape
  const [outputs, inner, kernelHeight, kernelWidth] = w.shape
  if (channels !== inner) fail("conv2d", `expected ${inner} channels, as the kernel has, found ${channels}`, x, w)
  const { strides: strideOption = 1, padding = 0 } = options
  const strides = typeof strideOption === "number" ? ([strideOption, strideOption] as const) : strideOption
  if (!strides.every((stride) => isSize(stride) && stride > 0))
    fail("conv2d", `expected strides that are integers from 1 on, found ${strides.join(" and ")}`, x, w)
  const sides = paddingSides(padding, [height, width], [kernelHeight, kernelWidth], strides)
  if (!sides.every(isSize)) fail("conv2d", `expected padding by integers from 0 on, found ${sides.join(", ")}`, x, w)
  const outHeight = Math.floor((height + sides[0] + sides[2] - kernelHeight) / strides[0]) + 1
  const outWidth = Math.floor((width + sides[1] + sides[3] - kernelWidth) / strides[1]) + 1
  if (outHeight < 1 || outWidth < 1) fail("conv2d", "the kernel is larger than the padded image", x, w)
  return make({ kind: "conv2d", strides, padding: sides }, [x, w], [batch, outputs, outHeight, outWidth], "f32")
}

/** Returns the padding at the top, left, bottom and right. */
const paddingSides = (
  padding: NonNullable<Conv2dOptions["padding"]>,
  sizes: readonly [number, number],
  kernel: readonly [number, number],
  strides: readonly [number, number],
): readonly [number, number, number, number] => {
  if (typeof padding === "number") return [padding, padding, padding, padding]
  if (padding !== "same") return padding
  const total = (axis: 0 | 1): number =>
    Math.max(0, (Math.ceil(sizes[axis] / strides[axis]) - 1) * strides[axis] + kernel[axis] - sizes[axis])
  const [rows, columns] = [total(0), total(1)]
  return [Math.floor(rows / 2), Math.floor(columns / 2), Math.ceil(rows / 2), Math.ceil(columns / 2)]
}
