import * as G from "../../src/tensor/graph/ops.ts"
import type { Shape, Tensor } from "../../src/tensor/graph/Tensor.ts"

/**
 * One case for every op: shapes to draw from two small sizes, how the op is applied, and values that keep it clear of
 * kinks and poles.
 */
export interface OpCase {
  readonly shapes: (m: number, n: number) => ReadonlyArray<Shape>
  readonly build: (...inputs: ReadonlyArray<Tensor>) => Tensor
  /** The bounds of the inputs' values, which are multiples of a step chosen so that no kink lies between two of them. */
  readonly low?: number
  readonly high?: number
  /** The op jumps or is flat: its value is compared, its slope is not. */
  readonly noSlope?: boolean
}

const one = (m: number, n: number): ReadonlyArray<Shape> => [[m, n]]
const two = (m: number, n: number): ReadonlyArray<Shape> => [
  [m, n],
  [m, n],
]
const row = (m: number, n: number): ReadonlyArray<Shape> => [[m, n], [n]]
const column = (m: number, n: number): ReadonlyArray<Shape> => [
  [m, n],
  [m, 1],
]

const indices = (x: Tensor): Tensor => G.constant(Int32Array.from({ length: 5 }, (_, i) => (i * 3) % x.shape[0]))

export const opCases: Readonly<Record<string, OpCase>> = {
  neg: { shapes: one, build: G.neg },
  abs: { shapes: one, build: G.abs, low: 0.25, high: 2 },
  sign: { shapes: one, build: G.sign, noSlope: true },
  exp: { shapes: one, build: G.exp },
  log: { shapes: one, build: G.log, low: 0.5, high: 4 },
  sqrt: { shapes: one, build: G.sqrt, low: 0.5, high: 4 },
  reciprocal: { shapes: one, build: G.reciprocal, low: 0.5, high: 4 },
  sin: { shapes: one, build: G.sin },
  cos: { shapes: one, build: G.cos },
  tanh: { shapes: one, build: G.tanh },
  sigmoid: { shapes: one, build: G.sigmoid },
  relu: { shapes: one, build: (x) => G.relu(G.add(x, 1 / 32)) },
  softplus: { shapes: one, build: G.softplus },
  floor: { shapes: one, build: G.floor, noSlope: true },
  silu: { shapes: one, build: G.silu },
  gelu: { shapes: one, build: G.gelu },
  huber: { shapes: one, build: (x) => G.huber(x, 0.7), noSlope: true },
  "add, of a row": { shapes: row, build: G.add },
  "sub, of a column": { shapes: column, build: G.sub },
  "mul, of a row": { shapes: row, build: G.mul },
  "mul, of itself": { shapes: one, build: (x) => G.mul(x, x) },
  "mul, of a scalar": { shapes: (m, n) => [[m, n], []], build: G.mul },
  "div, by a column": { shapes: column, build: G.div, low: 0.5, high: 3 },
  pow: { shapes: two, build: G.pow, low: 0.5, high: 2 },
  minimum: { shapes: two, build: (a, b) => G.minimum(a, G.add(b, 1 / 32)) },
  maximum: { shapes: row, build: (a, b) => G.maximum(a, G.add(b, 1 / 32)) },
  where: {
    shapes: two,
    build: (a, b) => G.where(G.constant(Uint8Array.from({ length: a.shape[1] }, (_, i) => i % 2)), a, b),
  },
  clip: { shapes: one, build: (x) => G.clip(x, -0.96875, 0.53125) },
  cast: { shapes: one, build: (x) => G.cast(G.greater(x, 0.015625), "f32"), noSlope: true },
  "matmul NN": {
    shapes: (m, n) => [
      [m, 3],
      [3, n],
    ],
    build: (a, b) => G.matmul(a, b),
  },
  "matmul TN": {
    shapes: (m, n) => [
      [3, m],
      [3, n],
    ],
    build: (a, b) => G.matmul(a, b, { transposeA: true }),
  },
  "matmul NT": {
    shapes: (m, n) => [
      [m, 3],
      [n, 3],
    ],
    build: (a, b) => G.matmul(a, b, { transposeB: true }),
  },
  "matmul TT": {
    shapes: (m, n) => [
      [3, m],
      [n, 3],
    ],
    build: (a, b) => G.matmul(a, b, { transposeA: true, transposeB: true }),
  },
  "matmul with a bias": {
    shapes: (m, n) => [[m, 3], [3, n], [n]],
    build: (a, b, c) => G.tanh(G.add(G.matmul(a, b), c)),
  },
  "matmul, batched": {
    shapes: (m, n) => [
      [2, m, 3],
      [2, 3, n],
    ],
    build: (a, b) => G.matmul(a, b),
  },
  "matmul, batched by one matrix": {
    shapes: (m, n) => [
      [2, 3, m],
      [n, 3],
    ],
    build: (a, b) => G.matmul(a, b, { transposeA: true, transposeB: true }),
  },
  "sum over the last axis": { shapes: one, build: (x) => G.sum(x, -1) },
  "sum over the first axis": { shapes: one, build: (x) => G.sum(x, 0, { keepDims: true }) },
  "sum of squares": { shapes: one, build: (x) => G.sum(G.square(x)) },
  mean: { shapes: one, build: (x) => G.mean(x, 0) },
  max: { shapes: one, build: (x) => G.max(distinct(x), -1) },
  min: { shapes: one, build: (x) => G.min(distinct(x)) },
  argMax: { shapes: one, build: (x) => G.cast(G.argMax(distinct(x), 0), "f32"), noSlope: true },
  variance: { shapes: one, build: (x) => G.variance(x, -1) },
  softmax: { shapes: one, build: G.softmax },
  logSoftmax: { shapes: one, build: G.logSoftmax },
  logSumExp: { shapes: one, build: (x) => G.logSumExp(distinct(x)) },
  cumSum: { shapes: one, build: (x) => G.cumSum(x, -1) },
  "cumSum, exclusive and backwards": { shapes: one, build: (x) => G.cumSum(x, 0, { exclusive: true, reverse: true }) },
  layerNorm: { shapes: (m, n) => [[m, n + 2], [n + 2]], build: (x, scale) => G.layerNorm(spread(x), { scale }) },
  rmsNorm: { shapes: (m, n) => [[m, n + 2], [n + 2]], build: (x, scale) => G.rmsNorm(spread(x), { scale }) },
  reshape: { shapes: one, build: (x) => G.mul(G.reshape(x, [-1, 1]), 2) },
  transpose: { shapes: (m, n) => [[m, 2, n]], build: (x) => G.mul(G.transpose(x, [2, 0, 1]), 2) },
  broadcastTo: { shapes: (_, n) => [[n]], build: (x) => G.mul(G.broadcastTo(x, [3, x.shape[0]]), 2) },
  slice: { shapes: (m, n) => [[m + 1, n]], build: (x) => G.mul(G.slice(x, [1, 0], [x.shape[0] - 1, x.shape[1]]), 2) },
  split: {
    shapes: (m, n) => [[m, n + 2]],
    build: (x) => {
      const [a, b] = G.split(x, [2, x.shape[1] - 2], 1)
      return G.concat([b, G.mul(a, 3)], 1)
    },
  },
  concat: { shapes: column, build: (a, b) => G.mul(G.concat([a, b], 1), 2) },
  stack: { shapes: two, build: (a, b) => G.mul(G.stack([a, b], 1), 2) },
  pad: { shapes: one, build: (x) => G.mul(G.pad(x, [1, 0], [0, 2], 0.5), 2) },
  gather: { shapes: one, build: (x) => G.mul(G.gather(x, indices(x)), 2) },
  scatterAdd: {
    shapes: (_, n) => [[5, n]],
    build: (x) => G.mul(G.scatterAdd(G.constant(Int32Array.of(2, 0, 2, 3, 1)), x, 4), 2),
  },
  oneHot: {
    shapes: one,
    build: (x) =>
      G.mul(
        x,
        G.slice(
          G.oneHot(G.constant(Int32Array.from({ length: x.shape[0] }, (_, i) => i % x.shape[1])), x.shape[1]),
          [0, 0],
          x.shape,
        ),
      ),
  },
  conv2d: {
    shapes: (m, n) => [
      [2, 2, m + 3, n + 3],
      [3, 2, 3, 2],
    ],
    build: (x, w) => G.conv2d(x, w),
  },
  "conv2d, strided and padded": {
    shapes: (m, n) => [
      [1, 2, m + 4, n + 4],
      [2, 2, 3, 3],
    ],
    build: (x, w) => G.conv2d(x, w, { strides: 2, padding: 1 }),
  },
  "conv2d, same": {
    shapes: (m, n) => [
      [2, 1, m + 2, n + 2],
      [2, 1, 2, 3],
    ],
    build: (x, w) => G.conv2d(x, w, { strides: [1, 2], padding: "same" }),
  },
}

/** Values apart from one another, so that the largest stays the largest. */
function distinct(x: Tensor): Tensor {
  const size = x.shape.reduce((a, b) => a * b, 1)
  return G.add(
    x,
    G.constant(
      Float32Array.from({ length: size }, (_, i) => ((i * 7) % size) * 5),
      x.shape,
    ),
  )
}

/** Adds different numbers to the elements of a row: with equal ones, the deviation would have a pole. */
function spread(x: Tensor): Tensor {
  const size = x.shape[x.shape.length - 1]
  return G.add(x, G.constant(Float32Array.from({ length: size }, (_, i) => i * 2)))
}
