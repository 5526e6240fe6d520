/**
 * Expresses convolutions as matrix products over patches: `columns` copies each image to a matrix with a row for each
 * pair of channel and tap (an element of the kernel), and a column for each position of the kernel. So a convolution
 * needs no loops of its own and is as fast as a matmul.
 */
import type { Conv2dAttributes, Shape } from "../Tensor.ts"
import { stridesOf } from "../Tensor.ts"
import { type Builder, slice, transpose } from "./builder.ts"
import type { Ref } from "./ir.ts"

/** Copies patches to columns: x [N, C, H, W] → [N, C·kh·kw, H'·W'], with `taps` [kh, kw] and `places` [H', W']. */
const columns = (build: Builder, op: Conv2dAttributes, x: Ref, taps: Shape, places: Shape): Ref => {
  const [top, left, bottom, right] = op.padding
  const [images, channels, height, width] = x.shape
  const padded = [images, channels, height + top + bottom, width + left + right]
  const strides = stridesOf(padded)
  const source = padded.every((size, axis) => size === x.shape[axis])
    ? x
    : build.node(
        { kind: "assemble", pieces: [{ offset: top * strides[2] + left, strides }], fill: 0, accumulate: false },
        [x],
        padded,
        "f32",
      )
  const [n, c, h, w] = source.strides
  const patches: Ref = {
    ...source,
    shape: [images, channels, taps[0], taps[1], places[0], places[1]],
    strides: [n, c, h, w, h * op.strides[0], w * op.strides[1]],
  }
  return build.reshape(build.copy(patches), [images, channels * taps[0] * taps[1], places[0] * places[1]])
}

/** Computes the convolution: w [O, C, kh, kw] · columns → [N, O, H', W']. */
export const convolution = (build: Builder, op: Conv2dAttributes, x: Ref, w: Ref, shape: Shape): Ref => {
  const [outputs, channels, ...taps] = w.shape
  const patches = columns(build, op, x, taps, shape.slice(2))
  const weights = build.reshape(w, [outputs, channels * taps[0] * taps[1]])
  return build.reshape(build.matmul(weights, patches), shape)
}

/**
 * Computes dx: wᵀ · dy is the gradient of each patch. Each tap's part of it is added to dx at the positions that the
 * patch was copied from.
 */
export const convolutionInputGrad = (build: Builder, op: Conv2dAttributes, dy: Ref, w: Ref, shape: Shape): Ref => {
  const [outputs, channels, kh, kw] = w.shape
  const [images, , oh, ow] = dy.shape
  const weights = transpose(build.reshape(w, [outputs, channels * kh * kw]), [1, 0])
  const patchGradients = build.matmul(weights, build.reshape(dy, [images, outputs, oh * ow]))
  const byTap = build.reshape(patchGradients, [images, channels, kh, kw, oh, ow])
  const [top, left, bottom, right] = op.padding
  const padded = [shape[0], shape[1], shape[2] + top + bottom, shape[3] + left + right]
  const [n, c, h] = stridesOf(padded)
  const inputs: Array<Ref> = []
  const pieces: Array<{ readonly offset: number; readonly strides: ReadonlyArray<number> }> = []
  for (let i = 0; i < kh; i++) {
    for (let j = 0; j < kw; j++) {
      const tap = slice(byTap, [0, 0, i, j, 0, 0], [images, channels, 1, 1, oh, ow])
      inputs.push(build.reshape(tap, [images, channels, oh, ow]))
      pieces.push({ offset: i * h + j, strides: [n, c, h * op.strides[0], op.strides[1]] })
    }
  }
  const sum = build.node({ kind: "assemble", pieces, fill: 0, accumulate: true }, inputs, padded, "f32")
  return slice(sum, [0, 0, top, left], shape)
}

/** Computes dw: dy · columnsᵀ for each image, summed over the images. */
export const convolutionWeightGrad = (build: Builder, op: Conv2dAttributes, x: Ref, dy: Ref, shape: Shape): Ref => {
  const [outputs, channels, ...taps] = shape
  const [images, , oh, ow] = dy.shape
  const patches = transpose(columns(build, op, x, taps, [oh, ow]), [0, 2, 1])
  const products = build.matmul(build.reshape(dy, [images, outputs, oh * ow]), patches)
  const sum = images === 1 ? products : build.reduce("sum", products, [0])
  return build.reshape(sum, [outputs, channels, taps[0], taps[1]])
}
