import { assert, describe, it } from "@effect/vitest"
import * as G from "../../../../src/tensor/graph/ops.ts"
import type { ProgramSpec } from "../../../../src/tensor/graph/Program.ts"
import type { Tensor } from "../../../../src/tensor/graph/Tensor.ts"
import { load, numbers } from "./support.ts"

/** FNV-1a, over the bits of all numbers. */
const digestOf = (arrays: ReadonlyArray<Uint8Array>): string => {
  let word = 0x811c9dc5
  for (const array of arrays) for (const byte of array) word = Math.imul(word ^ byte, 0x01000193)
  return (word >>> 0).toString(16).padStart(8, "0")
}

const bytesOf = (floats: Float32Array): Uint8Array =>
  new Uint8Array(floats.buffer, floats.byteOffset, floats.byteLength)

const assertFinite = (...arrays: ReadonlyArray<Float32Array>): void => {
  for (const array of arrays) assert.isTrue(array.every(Number.isFinite))
}

/**
 * These digests were computed once and hold on every machine and in every engine: the arithmetic is strict. They change
 * only when kernels change, and with them what every run computes; then say so in the release notes.
 */
describe("bits", () => {
  it("of elementary functions are the same on every machine", () => {
    const x = G.input("x", [4096])
    const functions = {
      exp: G.exp,
      log: G.log,
      tanh: G.tanh,
      sigmoid: G.sigmoid,
      softplus: G.softplus,
      sin: G.sin,
      cos: G.cos,
      sqrt: G.sqrt,
      reciprocal: G.reciprocal,
      pow: (t: Tensor) => G.pow(t, G.constant(0.37)),
    }
    const outputs = Object.fromEntries(Object.entries(functions).map(([name, fn]) => [name, fn(x)]))
    const program = load({ name: "functions", inputs: { x }, state: {}, outputs })
    // From 2⁻²⁰ to 2⁶, positive, so that none gives NaN, whose bits are the machine's own.
    program.feed("x").set(Float32Array.from(numbers(4096), (n) => 2 ** Math.round(n * 6.5 - 7) * (n + 4)))
    program.run()
    const digests = Object.fromEntries(Object.keys(functions).map((name) => [name, digestOf([program.bytes(name)])]))
    assert.deepStrictEqual(digests, FUNCTIONS)
  })

  it("of products and sums are the same on every machine", () => {
    const digests = [
      [4, 64, 64],
      [5, 33, 7],
      [64, 30, 2],
      [3, 100, 1],
      [32, 256, 24],
    ].map(([m, k, n]) => {
      const a = G.input("a", [m, k])
      const b = G.input("b", [k, n])
      const y = G.matmul(a, b)
      const program = load({
        name: "sums",
        inputs: { a, b },
        state: {},
        outputs: { y, rows: G.sum(y, 1), columns: G.mean(y, 0), all: G.sum(y) },
      })
      program.feed("a").set(numbers(m * k, 1))
      program.feed("b").set(numbers(k * n, 2))
      program.run()
      return digestOf(["y", "rows", "columns", "all"].map(program.bytes))
    })
    assert.deepStrictEqual(digests, SUMS)
  })

  it("of products and sums over many rows are those of additions in order", () => {
    const [rows, m, n] = [385, 24, 76]
    const a = G.input("a", [rows, m])
    const b = G.input("b", [rows, n])
    const outputs = { product: G.matmul(a, b, { transposeA: true }), sums: G.sum(G.mul(b, b), 0) }
    const left = numbers(rows * m, 6)
    const right = numbers(rows * n, 7)
    const inOrder = (term: (row: number) => number): number => {
      let sum = 0
      for (let row = 0; row < rows; row++) sum = Math.fround(sum + Math.fround(term(row)))
      return sum
    }
    const product = Float32Array.from({ length: m * n }, (_, at) =>
      inOrder((row) => left[row * m + Math.floor(at / n)] * right[row * n + (at % n)]),
    )
    const sums = Float32Array.from({ length: n }, (_, at) => inOrder((row) => right[row * n + at] ** 2))
    for (const lanes of [4, 8, 16] as const) {
      const program = load({ name: "order", inputs: { a, b }, state: {}, outputs }, { lanes })
      program.feed("a").set(left)
      program.feed("b").set(right)
      program.run()
      assert.deepStrictEqual(program.result("product"), product)
      assert.deepStrictEqual(program.result("sums"), sums)
    }
  })

  it("of a hundred updates of a network are the same on every machine", () => {
    const batch = 24
    const x = G.input("x", [batch, 4])
    const label = G.input("label", [batch])
    const w1 = G.state("w1", [4, 64])
    const w2 = G.state("w2", [64, 3])
    const hidden = G.tanh(G.matmul(x, w1))
    const logProbabilities = G.logSoftmax(G.matmul(hidden, w2))
    const target = G.oneHot(G.cast(label, "i32"), 3)
    const loss = G.neg(G.mean(G.sum(G.mul(logProbabilities, target), 1)))
    // The slopes by hand, so that the digest depends on the kernels alone.
    const slope = G.div(G.sub(G.exp(logProbabilities), target), batch)
    const slopeHidden = G.mul(G.matmul(slope, w2, { transposeB: true }), G.sub(1, G.square(hidden)))
    const momentum = (name: string, w: Tensor, gradient: Tensor): ProgramSpec["state"] => {
      const v = G.state(`v${name}`, w.shape)
      const nextV = G.add(G.mul(v, 0.9), G.square(gradient))
      const next = G.sub(w, G.div(G.mul(gradient, 0.01), G.add(G.sqrt(nextV), 1e-8)))
      return { [`w${name}`]: { tensor: w, next }, [`v${name}`]: { tensor: v, next: nextV } }
    }
    const program = load({
      name: "update",
      inputs: { x, label },
      state: {
        ...momentum("1", w1, G.matmul(x, slopeHidden, { transposeA: true })),
        ...momentum("2", w2, G.matmul(hidden, slope, { transposeA: true })),
      },
      outputs: { loss },
      minibatches: { rows: 96, batch, count: 100, gathered: ["x", "label"] },
    })
    program.state("w1").set(numbers(256, 4).map((n) => n / 4))
    program.state("w2").set(numbers(192, 5).map((n) => n / 4))
    program.feed("x").set(numbers(4 * 96, 2))
    program.feed("label").set(numbers(96, 3).map((n) => Math.floor((n + 2) * 0.75)))
    const indices = program.module.feeds.indices
    new Int32Array(program.feed("x").buffer, indices.address, indices.length).forEach(
      (_, i, all) => (all[i] = (i * 37 + (i >> 4)) % 96),
    )
    assert.strictEqual(program.run(), 100)
    assertFinite(program.state("w1"), program.state("w2"), program.result("loss"))
    assert.isBelow(program.result("loss")[99], program.result("loss")[0])
    assert.strictEqual(
      digestOf([bytesOf(program.state("w1")), bytesOf(program.state("w2")), program.bytes("loss")]),
      UPDATE,
    )
  })
})

const FUNCTIONS = {
  exp: "e3cf033f",
  log: "199654bb",
  tanh: "85c9af37",
  sigmoid: "bf2b3b82",
  softplus: "0d844aa5",
  sin: "6e27c184",
  cos: "31fab639",
  sqrt: "ca080ef1",
  reciprocal: "b71bf67e",
  pow: "fa7a810e",
}
const SUMS: ReadonlyArray<string> = ["b33f845b", "92fe6555", "7a9a100e", "30aa6ffe", "082be237"]
const UPDATE = "1a5470e3"
