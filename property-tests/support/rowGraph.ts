import { gradients } from "../../src/tensor/graph/gradients.ts"
import * as G from "../../src/tensor/graph/ops.ts"
import type { ProgramSpec } from "../../src/tensor/graph/Program.ts"
import { sizeOf, type Tensor } from "../../src/tensor/graph/Tensor.ts"

/**
 * A graph over a batch of rows, grown from a list of numbers: each picks an op and what it is applied to, among all that was
 * made before. Other sizes can be equal to the number of rows. The states change by gradients, or by each other.
 */
export const growRows = (
  choices: ReadonlyArray<readonly [number, number, number]>,
  rows: number,
  [p, q]: readonly [number, number],
  minibatches: boolean,
): ProgramSpec => {
  const inputs = { x: G.input("x", [rows, p]), y: G.input("y", [rows]), z: G.input("z", [rows, q]) }
  const states = { u: G.state("u", [p, q]), v: G.state("v", [q, p]), w: G.state("w", [q, q]), b: G.state("b", [q]) }
  const pool: Array<Tensor> = [...Object.values(inputs), ...Object.values(states)]
  const matrix = (x: Tensor): Tensor => (x.shape.length === 2 ? x : G.reshape(x, [sizeOf(x.shape), 1]))
  const broadcasts = (x: Tensor, y: Tensor): boolean => {
    const rank = Math.max(x.shape.length, y.shape.length)
    return Array.from({ length: rank }).every((_, axis) => {
      const [m, n] = [x, y].map(({ shape }) => shape[axis - rank + shape.length] ?? 1)
      return m === n || m === 1 || n === 1
    })
  }
  const product = (x: Tensor, y: Tensor, transposeA: boolean, transposeB: boolean): Tensor | undefined => {
    const [a, b] = [matrix(x), matrix(y)]
    const inner = a.shape[transposeA ? 0 : 1]
    return inner === b.shape[transposeB ? 1 : 0] ? G.tanh(G.matmul(a, b, { transposeA, transposeB })) : undefined
  }
  const ops: ReadonlyArray<(x: Tensor, y: Tensor, n: number) => Tensor | undefined> = [
    (x) => G.tanh(x),
    (x) => G.exp(G.clip(x, -3, 1)),
    (x, y) => (broadcasts(x, y) ? G.add(x, y) : undefined),
    (x, y) => (broadcasts(x, y) ? G.mul(G.tanh(x), y) : undefined),
    (x, y) => (broadcasts(x, y) ? G.where(G.less(x, y), x, G.mul(y, 0.5)) : undefined),
    // Products are most of what runs in bands.
    ...[false, true, false].map(
      (transposeA) => (x: Tensor, y: Tensor, n: number) => product(x, y, transposeA, n % 2 === 0),
    ),
    ...[states.u, states.v, states.w].map((weights) => (x: Tensor) => product(x, weights, false, false)),
    (x, _, n) => (x.shape.length > 0 ? G.sum(x, n % x.shape.length, { keepDims: n % 3 === 0 }) : undefined),
    (x) => (x.shape.length > 0 ? G.sub(x, G.mean(x, 0, { keepDims: true })) : undefined),
    (x) => G.mean(x),
    (x) => (x.shape.length > 0 ? G.logSoftmax(x) : undefined),
    (x) => (x.shape.length === 2 ? G.transpose(G.softmax(G.transpose(x))) : undefined),
    (x) => (x.shape.length > 1 ? G.transpose(x) : undefined),
    (x, y) =>
      x.shape.length === 2 && y.shape.length === 2 && x.shape[0] === y.shape[0]
        ? G.concat([x, G.tanh(y)], 1)
        : undefined,
    (x, _, n) =>
      x.shape.length === 2 && x.shape[1] > 1
        ? G.slice(x, [0, n % (x.shape[1] - 1)], [x.shape[0], x.shape[1] - (n % (x.shape[1] - 1))])
        : undefined,
    (x, _, n) => {
      const size = sizeOf(x.shape)
      return size % (2 * rows) === 0 ? G.reshape(x, n % 2 === 0 ? [2 * rows, size / (2 * rows)] : [size]) : undefined
    },
  ]
  const given = pool.length
  for (const [op, first, second] of choices) {
    const x = pool[pool.length - 1 - (first % pool.length)]
    const y = pool[pool.length - 1 - (second % pool.length)]
    const made = ops[op % ops.length](x, y, first + second)
    if (made !== undefined && sizeOf(made.shape) < 20_000) pool.push(made)
  }
  const last = pool.slice(given).slice(-5)
  const loss = last.reduce((sum, x) => G.add(sum, G.mean(G.tanh(x))), G.constant(0))
  const [slopeU, slopeV, slopeW] = gradients(loss, [states.u, states.v, states.w])
  const step = (x: Tensor, slope: Tensor): Tensor => G.sub(x, G.mul(G.clip(slope, -1, 1), 0.1))
  const like = (x: Tensor): Tensor => pool.findLast(({ shape }) => shape.join() === x.shape.join()) ?? x
  return {
    name: "rows",
    inputs,
    state: {
      u: { tensor: states.u, next: step(states.u, slopeU) },
      v: { tensor: states.v, next: step(G.mul(states.v, G.transpose(states.u)), slopeV) },
      w: { tensor: states.w, next: G.add(G.tanh(like(states.w)), G.mul(slopeW, 0.1)) },
      b: { tensor: states.b, next: G.tanh(like(states.b)) },
    },
    outputs: { loss, slopeU, ...Object.fromEntries(last.map((x, i) => [`y${i}`, x])) },
    ...(minibatches ? { minibatches: { rows: rows + 5, batch: rows, count: 2, gathered: ["x", "y"] } } : {}),
  }
}
