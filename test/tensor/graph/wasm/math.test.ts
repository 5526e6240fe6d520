import { assert, describe, it } from "@effect/vitest"
import * as G from "../../../../src/tensor/graph/ops.ts"
import type { Tensor } from "../../../../src/tensor/graph/Tensor.ts"
import { load } from "./support.ts"

/** The distance between neighbouring floats at a value. */
const unitOf = (value: number): number => {
  const size = Math.abs(Math.fround(value))
  return size < 2 ** -126 ? 2 ** -149 : 2 ** (Math.floor(Math.log2(size)) - 23)
}

/** Off by how many units in the last place, where both are finite; agreement is demanded elsewhere. */
const errorOf = (found: number, exact: number, ...at: ReadonlyArray<number>): number => {
  const expected = Math.fround(exact)
  if (Number.isFinite(expected) && Number.isFinite(found)) return Math.abs(found - exact) / unitOf(exact)
  const justOverflows = Math.abs(exact) > 3.402823e38 && Math.abs(found) > 3.402823e38
  if (Object.is(found, expected) || justOverflows) return 0
  return assert.fail(`at ${at} it is ${found}, expected ${expected}`)
}

const count = 1 << 16
const bits = new Uint32Array(1)
const float = new Float32Array(bits.buffer)

/** Every 9973rd float there is: all signs and exponents, denormals, infinities and NaNs. */
const everyFloat = (fill: (index: number) => Float32Array, run: () => void): void => {
  const step = 9973
  for (let start = 0; start * step < 2 ** 32; start += count) {
    const x = fill(start)
    for (let i = 0; i < count; i++) {
      bits[0] = (start + i) * step
      x[i] = float[0]
    }
    run()
  }
}

const largestError = (build: (x: Tensor) => Tensor, exact: (x: number) => number, within = Infinity): number => {
  const input = G.input("x", [count])
  const program = load({ name: "sweep", inputs: { x: input }, state: {}, outputs: { y: build(input) } })
  const x = program.feed("x")
  const y = program.result("y")
  let worst = 0
  everyFloat(
    () => x,
    () => {
      program.run()
      for (let i = 0; i < count; i++) {
        if (Math.abs(x[i]) <= within || !Number.isFinite(x[i]))
          worst = Math.max(worst, errorOf(y[i], exact(x[i]), x[i]))
      }
    },
  )
  return worst
}

const valuesAt = (build: (x: Tensor) => Tensor, at: ReadonlyArray<number>): ReadonlyArray<number> => {
  const input = G.input("x", [at.length])
  const program = load({ name: "points", inputs: { x: input }, state: {}, outputs: { y: build(input) } })
  program.feed("x").set(at)
  program.run()
  return [...program.result("y")]
}

describe("elementary functions", () => {
  it("have errors of at most a few units in the last place, over all floats", () => {
    assert.isBelow(largestError(G.exp, Math.exp), 1)
    assert.isBelow(largestError(G.log, Math.log), 1)
    assert.isBelow(largestError(G.tanh, Math.tanh), 5.5)
    assert.isBelow(
      largestError(G.sigmoid, (x) => (x < 0 ? Math.exp(x) / (1 + Math.exp(x)) : 1 / (1 + Math.exp(-x)))),
      3,
    )
    assert.isBelow(
      largestError(G.softplus, (x) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)))),
      3,
    )
  })

  it("compute sine and cosine within two units up to a million", () => {
    assert.isBelow(largestError(G.sin, Math.sin, 1e6), 2)
    assert.isBelow(largestError(G.cos, Math.cos, 1e6), 2)
  })

  it("round correctly where the machine's own operation does", () => {
    assert.isAtMost(largestError(G.sqrt, Math.sqrt), 0.5)
    assert.isAtMost(
      largestError(G.reciprocal, (x) => 1 / x),
      0.5,
    )
    assert.isAtMost(largestError(G.floor, Math.floor), 0)
    assert.isAtMost(largestError(G.abs, Math.abs), 0)
    assert.isAtMost(largestError(G.sign, Math.sign), 0)
  })

  it("compute powers within one unit, with the special cases of JavaScript", () => {
    const bases = [0, -0, 1, -1, 2, -2, 0.5, -0.3, 3, -3, 1e-20, 1e20, -1e20, Infinity, -Infinity, NaN]
    const exponents = [0, -0, 1, 2, 3, -1, -2, -3, 0.5, -0.5, 2.5, 10, -10, 37.3, Infinity, -Infinity, NaN]
    const pairs = bases.flatMap((base) =>
      exponents.map((exponent) => [Math.fround(base), Math.fround(exponent)] as const),
    )
    for (let i = 0; i < 2000; i++)
      pairs.push([Math.fround(Math.exp(Math.sin(i) * 20)), Math.fround(Math.sin(i * 1.7) * 9)])
    const x = G.input("x", [pairs.length])
    const y = G.input("y", [pairs.length])
    const program = load({ name: "pow", inputs: { x, y }, state: {}, outputs: { z: G.pow(x, y) } })
    program.feed("x").set(pairs.map(([base]) => base))
    program.feed("y").set(pairs.map(([, exponent]) => exponent))
    program.run()
    pairs.forEach(([base, exponent], i) => {
      const error = errorOf(program.result("z")[i], base ** exponent, base, exponent)
      assert.isBelow(error, 1, `${base} ** ${exponent}`)
    })
  })

  it("reach their limits at infinity", () => {
    assert.deepStrictEqual(valuesAt(G.tanh, [0, -0, 9, -9, 1e30, Infinity, -Infinity, NaN]), [
      0,
      -0,
      1,
      -1,
      1,
      1,
      -1,
      NaN,
    ])
    assert.deepStrictEqual(valuesAt(G.exp, [0, 89, -104, Infinity, -Infinity, NaN]), [1, Infinity, 0, Infinity, 0, NaN])
    assert.deepStrictEqual(valuesAt(G.log, [1, 0, -0, -1, Infinity, -Infinity, NaN]), [
      0,
      -Infinity,
      -Infinity,
      NaN,
      Infinity,
      NaN,
      NaN,
    ])
    assert.deepStrictEqual(valuesAt(G.sigmoid, [0, 200, -200, Infinity, -Infinity, NaN]), [0.5, 1, 0, 1, 0, NaN])
    assert.deepStrictEqual(valuesAt(G.softplus, [200, -200, Infinity, -Infinity, NaN]), [200, 0, Infinity, 0, NaN])
    assert.deepStrictEqual(valuesAt(G.sin, [0, Infinity, -Infinity, NaN]), [0, NaN, NaN, NaN])
  })

  it("stay within their range", () => {
    const x = Array.from({ length: 5000 }, (_, i) => Math.sin(i) * 2 ** (i % 60))
    for (const y of valuesAt(G.tanh, x)) assert.isAtMost(Math.abs(y), 1)
    for (const y of valuesAt(G.sin, x)) assert.isAtMost(Math.abs(y), 1)
    for (const y of valuesAt(G.cos, x)) assert.isAtMost(Math.abs(y), 1)
    for (const y of valuesAt(G.sigmoid, x)) assert.isTrue(y >= 0 && y <= 1)
  })
})
