import * as fc from "fast-check"
import { gradients } from "../../src/tensor/graph/gradients.ts"
import * as G from "../../src/tensor/graph/ops.ts"
import type { ProgramSpec } from "../../src/tensor/graph/Program.ts"
import { sizeOf, type Tensor } from "../../src/tensor/graph/Tensor.ts"

type Choices = ReadonlyArray<readonly [number, number, number]>

/**
 * A graph grown from a list of numbers: each picks an op and what it is applied to, among all that was made before. With
 * `bytes`, a state has weights of one byte, which sessions of ONNX Runtime do not take.
 */
export const grow = (choices: Choices, { bytes = false }: { readonly bytes?: boolean } = {}): ProgramSpec => {
  const inputs = { a: G.input("a", [6, 4]), b: G.input("b", [4]), c: G.input("c", [6, 1]), d: G.input("d", [24]) }
  const s = G.state("s", [6, 4])
  const t = G.state("t", [4, 6])
  const r = G.state("r", [24])
  const w = G.state("w", [4, 6], "i8")
  const pool: Array<Tensor> = [...Object.values(inputs), s, t, r]
  const matrix = (x: Tensor): Tensor => G.reshape(x, sizeOf(x.shape) === 24 ? [4, 6] : [sizeOf(x.shape), 1])
  const broadcasts = (x: Tensor, y: Tensor): boolean => {
    const rank = Math.max(x.shape.length, y.shape.length)
    return Array.from({ length: rank }).every((_, axis) => {
      const p = x.shape[axis - rank + x.shape.length] ?? 1
      const q = y.shape[axis - rank + y.shape.length] ?? 1
      return p === q || p === 1 || q === 1
    })
  }
  const wide = (x: Tensor): boolean => broadcasts(x, inputs.c)
  const bits = (n: number): Tensor => G.cast(G.less(inputs.c, n / 10 - 1), "i32")
  const tamed = (x: Tensor): Tensor => G.clip(x, -3, 3)
  const ops: ReadonlyArray<(x: Tensor, y: Tensor, n: number) => Tensor | undefined> = [
    (x) => G.tanh(x),
    (x) => G.exp(tamed(x)),
    (x) => G.log(G.add(G.square(tamed(x)), 1)),
    (x) => G.sigmoid(x),
    (x) => G.relu(x),
    (x) => G.neg(x),
    (x) => G.square(tamed(x)),
    (x, y) => (broadcasts(x, y) ? G.add(x, y) : undefined),
    (x, y) => (broadcasts(x, y) ? G.mul(tamed(x), tamed(y)) : undefined),
    (x, y) => (broadcasts(x, y) ? G.sub(x, y) : undefined),
    (x, y) => (broadcasts(x, y) ? G.minimum(x, y) : undefined),
    // The condition reads an input, which both backends share: a computed value near the jump could fall on either side.
    (x, y, n) =>
      broadcasts(x, y) && wide(x) && wide(y) ? G.where(G.less(inputs.c, n / 10 - 1), x, G.tanh(y)) : undefined,
    (x, y) => (broadcasts(x, y) ? G.div(x, G.add(G.abs(tamed(y)), 1)) : undefined),
    (x, y) =>
      sizeOf(x.shape) === 24 && sizeOf(y.shape) === 24
        ? G.mul(G.matmul(matrix(x), matrix(y), { transposeB: true }), 0.1)
        : undefined,
    (x, y) =>
      sizeOf(x.shape) === 24 && sizeOf(y.shape) === 24
        ? G.matmul(matrix(x), matrix(y), { transposeA: true })
        : undefined,
    // Weights of one byte, with a scale for each output, as they are and transposed.
    (x, _, n) => {
      if (!bytes) return undefined
      const weight = G.cast(w, "f32")
      if (x.shape.at(-1) === 6 && x.shape.length > 1)
        return G.mul(G.matmul(tamed(x), weight, { transposeB: true }), G.mul(inputs.b, n / 100))
      return x.shape.at(-1) === 4 && x.shape.length > 1 ? G.mul(G.matmul(tamed(x), weight), 0.01) : undefined
    },
    (_, __, n) => (bytes ? G.mul(G.cast(G.gather(w, G.constant(Int32Array.of(3, n % 4))), "f32"), 0.02) : undefined),
    (x, _, n) => (x.shape.length > 0 ? G.sum(x, n % x.shape.length, { keepDims: n % 2 === 0 }) : undefined),
    (x, _, n) => (x.shape.length > 0 ? G.max(x, n % x.shape.length) : undefined),
    (x) => G.mean(x),
    (x) => (x.shape.length > 0 ? G.softmax(x) : undefined),
    (x) => (x.shape.length > 0 ? G.logSoftmax(x) : undefined),
    (x, _, n) => (x.shape.length > 0 ? G.cumSum(x, n % x.shape.length, { reverse: n % 2 === 0 }) : undefined),
    (x) => (x.shape.length > 1 ? G.transpose(x) : undefined),
    (x) => (sizeOf(x.shape) === 24 ? G.reshape(x, [2, 12]) : G.flatten(x)),
    (x) => (sizeOf(x.shape) === 24 ? G.reshape(x, [4, 6]) : undefined),
    (x, _, n) =>
      x.shape.length > 0 && x.shape[0] > 1
        ? G.slice(
            x,
            x.shape.map((_, axis) => (axis === 0 ? n % (x.shape[0] - 1) : 0)),
            x.shape.map((size, axis) => (axis === 0 ? size - (n % (size - 1)) - 1 : size)),
          )
        : undefined,
    (x, y) =>
      x.shape.length > 0 && x.shape.slice(1).join() === y.shape.slice(1).join() && y.shape.length === x.shape.length
        ? G.concat([x, y])
        : undefined,
    (x, y) => (sizeOf(x.shape) + sizeOf(y.shape) < 100 ? G.concat([G.flatten(x), G.flatten(G.tanh(y))]) : undefined),
    (x) =>
      x.shape.length > 0
        ? G.pad(
            x,
            x.shape.map(() => 1),
            x.shape.map(() => 0),
            0.5,
          )
        : undefined,
    (x) => (x.shape.length > 0 ? G.gather(x, G.constant(Int32Array.of(0, x.shape[0] - 1, 0))) : undefined),
    (x) => G.sin(x),
    (x) => G.cos(tamed(x)),
    (x) => G.abs(x),
    (x) => G.softplus(x),
    (x) => G.sqrt(G.add(G.square(tamed(x)), 0.5)),
    (x) => G.reciprocal(G.add(G.abs(tamed(x)), 0.5)),
    (x, _, n) => G.pow(G.add(G.abs(tamed(x)), 1), n / 8),
    (x, y) => (broadcasts(x, y) ? G.maximum(x, y) : undefined),
    (x, _, n) => (x.shape.length > 0 ? G.min(x, n % x.shape.length, { keepDims: n % 2 === 0 }) : undefined),
    (x, _, n) => (x.shape.length > 0 ? G.mean(x, n % x.shape.length) : undefined),
    (x) => (x.shape.length < 3 ? G.broadcastTo(x, [3, ...x.shape]) : undefined),
    (x, y, n) =>
      x.shape.join() === y.shape.join() && x.shape.length < 4 ? G.stack([x, y], n % 2 === 0 ? 0 : -1) : undefined,
    (x, y) =>
      sizeOf(x.shape) === 24 && sizeOf(y.shape) === 24
        ? G.tanh(G.matmul(G.reshape(x, [2, 1, 3, 4]), G.reshape(y, [3, 2, 4]), { transposeB: true }))
        : undefined,
    (x, y, n) =>
      sizeOf(x.shape) === 24 && sizeOf(y.shape) === 24
        ? G.tanh(
            G.conv2d(G.reshape(x, [2, 2, 3, 2]), G.reshape(y, [3, 2, 2, 2]), {
              padding: n % 3 === 0 ? "same" : [1, 0, 1, 2],
              strides: [1, 1 + (n % 2)],
            }),
          )
        : undefined,
    // Zeros and ones, the same on both sides, as indices, as truths and as numbers.
    (x, _, n) => (x.shape.length > 0 && x.shape[0] > 1 ? G.gather(x, bits(n)) : undefined),
    (x, _, n) => (x.shape[0] === 6 ? G.scatterAdd(G.reshape(bits(n), [6]), x, 3) : undefined),
    (x, _, n) => (broadcasts(x, inputs.c) ? G.mul(x, G.sum(G.oneHot(G.add(bits(n), 1), 2), -1)) : undefined),
    (x, y, n) => {
      const truths = G.or(
        G.and(G.cast(bits(n), "bool"), G.greaterEqual(bits(n + 3), 1)),
        G.not(G.equal(bits(7), bits(n))),
      )
      return broadcasts(x, y) && wide(x) && wide(y) ? G.where(truths, G.mul(x, G.cast(truths, "f32")), y) : undefined
    },
    (x, _, n) => (broadcasts(x, inputs.c) ? G.mul(x, G.stopGradient(G.cast(bits(n), "f32"))) : undefined),
  ]
  for (const [op, first, second] of choices) {
    const x = pool[pool.length - 1 - (first % pool.length)]
    const y = pool[pool.length - 1 - (second % pool.length)]
    const made = ops[op % ops.length](x, y, first + second)
    if (made !== undefined && sizeOf(made.shape) < 2000) pool.push(made)
  }
  const last = pool.slice(7).slice(-4)
  const loss = last.reduce((sum, x) => G.add(sum, G.mean(G.tanh(x))), G.constant(0))
  const [slopeS, slopeR] = gradients(loss, [s, r])
  const whole = pool.filter((x) => x.dtype === "f32" && x.shape.join() === "4,6")
  // Steps are small, as a learner's are: a loop of large ones multiplies a difference in rounding by thousands.
  const step = (x: Tensor, slope: Tensor): Tensor => G.sub(x, G.mul(G.tanh(slope), 0.02))
  return {
    name: "grown",
    inputs,
    state: {
      s: { tensor: s, next: step(s, slopeS) },
      t: { tensor: t, next: G.mul(G.tanh(whole[whole.length - 1]), 0.9) },
      ...(bytes ? { w: { tensor: w } } : {}),
      r: { tensor: r, next: step(G.mul(r, 0.9), slopeR) },
    },
    outputs: { loss, slopeS, slopeR, ...Object.fromEntries(last.map((x, i) => [`y${i}`, x])), old: r },
  }
}

/** Generates the choices from which `grow` makes a graph. */
export const choices = fc.array(fc.tuple(fc.nat(1000), fc.nat(12), fc.nat(12)), { minLength: 3, maxLength: 25 })
