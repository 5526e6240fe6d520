/**
 * Implements all ops in doubles, written to be read rather than to be fast. The `reference` backend and `evaluate` run
 * these kernels, and tests compare the other backends with them.
 */
import type { BinaryFn, CompareFn, Conv2dAttributes, OpOf, Shape, Tensor, UnaryFn } from "./Tensor.ts"
import { sizeOf, stridesOf } from "./Tensor.ts"

/** Computes the numbers of one tensor from its inputs' numbers, in buffers that live as long as the program. */
type TensorKernel = () => void

// These functions store their result instead of returning it, which is faster: if one of many functions returns a
// number, V8 allocates it on the heap.

type Unary = (a: Float64Array, out: Float64Array) => (i: number) => void
type Binary = (a: Float64Array, b: Float64Array, out: Float64Array) => (i: number, j: number, at: number) => void

const unaryFunctions: Readonly<Record<UnaryFn, Unary>> = {
  neg: (a, out) => (i) => void (out[i] = -a[i]),
  abs: (a, out) => (i) => void (out[i] = Math.abs(a[i])),
  sign: (a, out) => (i) => void (out[i] = Math.sign(a[i])),
  exp: (a, out) => (i) => void (out[i] = Math.exp(a[i])),
  log: (a, out) => (i) => void (out[i] = Math.log(a[i])),
  sqrt: (a, out) => (i) => void (out[i] = Math.sqrt(a[i])),
  reciprocal: (a, out) => (i) => void (out[i] = 1 / a[i]),
  sin: (a, out) => (i) => void (out[i] = Math.sin(a[i])),
  cos: (a, out) => (i) => void (out[i] = Math.cos(a[i])),
  tanh: (a, out) => (i) => void (out[i] = Math.tanh(a[i])),
  sigmoid: (a, out) => (i) => void (out[i] = 1 / (1 + Math.exp(-a[i]))),
  relu: (a, out) => (i) => void (out[i] = Math.max(a[i], 0)),
  softplus: (a, out) => (i) => void (out[i] = Math.max(a[i], 0) + Math.log1p(Math.exp(-Math.abs(a[i])))),
  floor: (a, out) => (i) => void (out[i] = Math.floor(a[i])),
}

const binaryFunctions: Readonly<Record<BinaryFn, Binary>> = {
  add: (a, b, out) => (i, j, at) => void (out[at] = a[i] + b[j]),
  sub: (a, b, out) => (i, j, at) => void (out[at] = a[i] - b[j]),
  mul: (a, b, out) => (i, j, at) => void (out[at] = a[i] * b[j]),
  div: (a, b, out) => (i, j, at) => void (out[at] = a[i] / b[j]),
  pow: (a, b, out) => (i, j, at) => void (out[at] = a[i] ** b[j]),
  min: (a, b, out) => (i, j, at) => void (out[at] = Math.min(a[i], b[j])),
  max: (a, b, out) => (i, j, at) => void (out[at] = Math.max(a[i], b[j])),
}

const compareFunctions: Readonly<Record<CompareFn, Binary>> = {
  less: (a, b, out) => (i, j, at) => void (out[at] = a[i] < b[j] ? 1 : 0),
  lessEqual: (a, b, out) => (i, j, at) => void (out[at] = a[i] <= b[j] ? 1 : 0),
  greater: (a, b, out) => (i, j, at) => void (out[at] = a[i] > b[j] ? 1 : 0),
  greaterEqual: (a, b, out) => (i, j, at) => void (out[at] = a[i] >= b[j] ? 1 : 0),
  equal: (a, b, out) => (i, j, at) => void (out[at] = a[i] === b[j] ? 1 : 0),
  notEqual: (a, b, out) => (i, j, at) => void (out[at] = a[i] !== b[j] ? 1 : 0),
}

const logicalFunctions: Readonly<Record<"and" | "or", Binary>> = {
  and: (a, b, out) => (i, j, at) => void (out[at] = a[i] & b[j]),
  or: (a, b, out) => (i, j, at) => void (out[at] = a[i] | b[j]),
}

/** Returns, for each element of `shape` in order, the index of the element of `from` that is broadcast to it. */
const broadcastIndex = (from: Shape, shape: Shape): Int32Array => {
  const shift = shape.length - from.length
  const own = stridesOf(from)
  const strides = shape.map((_, axis) => (axis < shift || from[axis - shift] === 1 ? 0 : own[axis - shift]))
  return stridedIndex(shape, strides)
}

/** Returns, for each element of `shape` in order, its index under other strides: Σ (start + coordinate) · stride. */
const stridedIndex = (shape: Shape, strides: ReadonlyArray<number>, start: Shape = shape.map(() => 0)): Int32Array => {
  const index = new Int32Array(sizeOf(shape))
  const coordinates = [...start]
  for (let at = 0; at < index.length; at++) {
    index[at] = coordinates.reduce((sum, coordinate, axis) => sum + coordinate * strides[axis], 0)
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      coordinates[axis]++
      if (coordinates[axis] < start[axis] + shape[axis]) break
      coordinates[axis] = start[axis]
    }
  }
  return index
}

/** Returns the number of 1-D lines along an axis, the elements of each line, and the distance between neighbours. */
const axisLayout = (shape: Shape, axis: number) => ({
  lines: sizeOf(shape.toSpliced(axis, 1)),
  along: shape[axis],
  after: sizeOf(shape.slice(axis + 1)),
})

/** Makes the kernel that computes a tensor's elements from the elements of its inputs, and writes them to `out`. */
// oxlint-disable-next-line max-lines-per-function -- a table of all ops, each with its kernel
export const kernelOf = (tensor: Tensor, inputs: ReadonlyArray<Float64Array>, out: Float64Array): TensorKernel => {
  const { op, shape } = tensor
  const [a, b, c] = inputs
  const shapes = tensor.inputs.map((input) => input.shape)
  switch (op.kind) {
    case "input":
    case "state":
      return () => {}
    case "constant":
      return () => out.set(op.data)
    case "unary": {
      const store = unaryFunctions[op.fn](a, out)
      return () => {
        for (let i = 0; i < out.length; i++) store(i)
      }
    }
    case "not":
      return () => a.forEach((x, i) => void (out[i] = x === 0 ? 1 : 0))
    case "clip":
      return () => a.forEach((x, i) => void (out[i] = Math.min(Math.max(x, op.min), op.max)))
    case "cast":
      return castKernel(tensor, a, out)
    case "stopGradient":
    case "reshape":
      return () => out.set(a)
    case "binary":
      return onPairs(shapes, shape, binaryFunctions[op.fn](a, b, out))
    case "compare":
      return onPairs(shapes, shape, compareFunctions[op.fn](a, b, out))
    case "logical":
      return onPairs(shapes, shape, logicalFunctions[op.fn](a, b, out))
    case "where": {
      const [condition, yes, no] = shapes.map((from) => broadcastIndex(from, shape))
      return () => out.forEach((_, i) => void (out[i] = a[condition[i]] !== 0 ? b[yes[i]] : c[no[i]]))
    }
    case "broadcastTo":
      return gatherElements(broadcastIndex(shapes[0], shape), a, out)
    case "transpose": {
      const strides = stridesOf(shapes[0])
      const permuted = op.permutation.map((axis) => strides[axis])
      return gatherElements(stridedIndex(shape, permuted), a, out)
    }
    case "slice":
      return gatherElements(stridedIndex(shape, stridesOf(shapes[0]), op.starts), a, out)
    case "pad": {
      const index = stridedIndex(shapes[0], stridesOf(shape), op.before)
      return () => {
        out.fill(op.value)
        index.forEach((to, i) => void (out[to] = a[i]))
      }
    }
    case "concat": {
      const start = shape.map(() => 0)
      const targets = shapes.map((from) => {
        const index = stridedIndex(from, stridesOf(shape), start)
        start[op.axis] += from[op.axis]
        return index
      })
      return () => targets.forEach((index, part) => index.forEach((to, i) => void (out[to] = inputs[part][i])))
    }
    case "gather": {
      const width = sizeOf(shapes[0].slice(1))
      return () => b.forEach((row, i) => out.set(a.subarray(row * width, (row + 1) * width), i * width))
    }
    case "scatterAdd": {
      const width = sizeOf(shape.slice(1))
      return () => {
        out.fill(0)
        a.forEach((row, i) => {
          for (let at = 0; at < width; at++) out[row * width + at] += b[i * width + at]
        })
      }
    }
    case "oneHot":
      return () => {
        out.fill(0)
        a.forEach((choice, i) => {
          if (choice >= 0 && choice < op.depth) out[i * op.depth + choice] = 1
        })
      }
    case "reduce":
      return reduceKernel(op, shapes[0], a, out)
    case "argMax": {
      const { lines, along, after } = axisLayout(shapes[0], op.axis)
      return () => {
        for (let i = 0; i < lines; i++) {
          const at = (k: number) => a[(Math.floor(i / after) * along + k) * after + (i % after)]
          let best = 0
          for (let k = 1; k < along; k++) if (at(k) > at(best)) best = k
          out[i] = best
        }
      }
    }
    case "softmax":
    case "logSoftmax":
      return softmaxKernel(op.kind === "logSoftmax", shape[shape.length - 1], a, out)
    case "cumSum": {
      const { lines, along, after } = axisLayout(shape, op.axis)
      return () => {
        for (let i = 0; i < lines; i++) {
          let total = 0
          for (let k = 0; k < along; k++) {
            const step = op.reverse ? along - 1 - k : k
            const at = (Math.floor(i / after) * along + step) * after + (i % after)
            out[at] = op.exclusive ? total : total + a[at]
            total += a[at]
          }
        }
      }
    }
    case "matmul":
      return matmulKernel(op, shapes, shape, a, b, out)
    case "conv2d":
      return eachTap(op, shapes[0], shapes[1], shape, out, (x, w, y) => void (out[y] += a[x] * b[w]))
    case "conv2dInputGrad":
      return eachTap(op, shape, shapes[1], shapes[0], out, (x, w, y) => void (out[x] += a[y] * b[w]))
    case "conv2dWeightGrad":
      return eachTap(op, shapes[0], shape, shapes[1], out, (x, w, y) => void (out[w] += a[x] * b[y]))
  }
}

/** Makes a kernel of two inputs that broadcast to `shape`; `store` computes element `at` from elements `i` and `j`. */
const onPairs = (
  shapes: ReadonlyArray<Shape>,
  shape: Shape,
  store: (i: number, j: number, at: number) => void,
): TensorKernel => {
  const [left, right] = shapes.map((from) => broadcastIndex(from, shape))
  return () => {
    for (let at = 0; at < left.length; at++) store(left[at], right[at], at)
  }
}

const gatherElements =
  (index: Int32Array, a: Float64Array, out: Float64Array): TensorKernel =>
  () => {
    for (let i = 0; i < index.length; i++) out[i] = a[index[i]]
  }

const castKernel = (tensor: Tensor, a: Float64Array, out: Float64Array): TensorKernel => {
  const from = tensor.inputs[0].dtype
  const to = tensor.dtype
  if (to === "bool") return () => a.forEach((x, i) => void (out[i] = x !== 0 ? 1 : 0))
  if (to === "i32" && from === "f32") return () => a.forEach((x, i) => void (out[i] = Math.trunc(x)))
  return () => out.set(a)
}

const reduceKernel = ({ fn, axes }: OpOf<"reduce">, from: Shape, a: Float64Array, out: Float64Array): TensorKernel => {
  const kept = from.map((size, axis) => (axes.includes(axis) ? 1 : size))
  const index = broadcastIndex(kept, from)
  const countPerResult = a.length / Math.max(1, out.length)
  return () => {
    out.fill(fn === "max" ? -Infinity : fn === "min" ? Infinity : 0)
    for (let at = 0; at < a.length; at++) {
      const to = index[at]
      if (fn === "max") out[to] = Math.max(out[to], a[at])
      else if (fn === "min") out[to] = Math.min(out[to], a[at])
      else out[to] += a[at]
    }
    if (fn === "mean") for (let to = 0; to < out.length; to++) out[to] /= countPerResult
  }
}

const softmaxKernel =
  (isLog: boolean, width: number, a: Float64Array, out: Float64Array): TensorKernel =>
  () => {
    for (let start = 0; start < a.length; start += width) {
      let largest = -Infinity
      for (let i = start; i < start + width; i++) largest = Math.max(largest, a[i])
      let total = 0
      for (let i = start; i < start + width; i++) total += Math.exp(a[i] - largest)
      for (let i = start; i < start + width; i++) {
        out[i] = isLog ? a[i] - largest - Math.log(total) : Math.exp(a[i] - largest) / total
      }
    }
  }

const matmulKernel = (
  { transposeA, transposeB }: OpOf<"matmul">,
  [shapeA, shapeB]: ReadonlyArray<Shape>,
  shape: Shape,
  a: Float64Array,
  b: Float64Array,
  out: Float64Array,
): TensorKernel => {
  const [m, n] = shape.slice(-2)
  const k = shapeA[shapeA.length - (transposeA ? 2 : 1)]
  // The strides of both matrices along m, n and k.
  const [rowA, innerA] = transposeA ? [1, m] : [k, 1]
  const [innerB, columnB] = transposeB ? [1, k] : [n, 1]
  const batches = shape.slice(0, -2)
  const indexA = broadcastIndex(shapeA.slice(0, -2), batches)
  const indexB = broadcastIndex(shapeB.slice(0, -2), batches)
  return () => {
    for (let batch = 0; batch < indexA.length; batch++) {
      const startA = indexA[batch] * m * k
      const startB = indexB[batch] * k * n
      for (let i = 0; i < m; i++) {
        for (let j = 0; j < n; j++) {
          let total = 0
          let left = startA + i * rowA
          let right = startB + j * columnB
          for (let p = 0; p < k; p++) {
            total += a[left] * b[right]
            left += innerA
            right += innerB
          }
          out[batch * m * n + i * n + j] = total
        }
      }
    }
  }
}

/**
 * Makes the kernel of a convolution between images x, weights w and outputs y of these shapes. It sets `out` to zero,
 * then calls `tap` with the indices of each x, w and y for which the convolution adds x · w to y.
 */
const eachTap = (
  { strides, padding }: Conv2dAttributes,
  x: Shape,
  w: Shape,
  y: Shape,
  out: Float64Array,
  tap: (x: number, w: number, y: number) => void,
): TensorKernel => {
  const [batch, channels, height, width] = x
  const [outputs, , kernelHeight, kernelWidth] = w
  const [, , outHeight, outWidth] = y
  return () => {
    out.fill(0)
    for (let n = 0; n < batch; n++)
      for (let o = 0; o < outputs; o++)
        for (let row = 0; row < outHeight; row++)
          for (let column = 0; column < outWidth; column++)
            for (let c = 0; c < channels; c++)
              for (let i = 0; i < kernelHeight; i++)
                for (let j = 0; j < kernelWidth; j++) {
                  const top = row * strides[0] + i - padding[0]
                  const left = column * strides[1] + j - padding[1]
                  if (top < 0 || top >= height || left < 0 || left >= width) continue
                  tap(
                    ((n * channels + c) * height + top) * width + left,
                    ((o * channels + c) * kernelHeight + i) * kernelWidth + j,
                    ((n * outputs + o) * outHeight + row) * outWidth + column,
                  )
                }
  }
}
