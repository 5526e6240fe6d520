import { assert, describe, it } from "@effect/vitest"
import { gradients } from "../../../src/graph/gradients.ts"
import { mlp } from "../../../src/graph/layers.ts"
import * as G from "../../../src/graph/ops.ts"
import { adam, clipGlobalNorm } from "../../../src/graph/optimisers.ts"
import { layout } from "../../../src/graph/Parameters.ts"
import type { Tensor } from "../../../src/graph/Tensor.ts"
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
  it("of the elementary functions are the same everywhere", () => {
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

  it("of products and sums are the same everywhere", () => {
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

  it("of a hundred updates of a network are the same everywhere", () => {
    const net = mlp("net", { sizes: [4, 64, 64, 3], activation: "tanh" })
    const parameters = layout(net.parameters)
    const theta = G.state("theta", [parameters.size])
    const weights = parameters.tensorsOf(theta)
    const batch = 24
    const x = G.input("x", [batch, 4])
    const label = G.input("label", [batch])
    const logits = G.logSoftmax(net.apply(weights, x))
    const target = G.oneHot(G.cast(label, "i32"), 3)
    const loss = G.neg(G.mean(G.sum(G.mul(logits, target), 1)))
    const slopes = gradients(loss, Object.values(weights))
    const flat = parameters.flatten(Object.fromEntries(Object.keys(weights).map((name, i) => [name, slopes[i]])))
    const { moments, next } = adam({ size: parameters.size, learningRate: 1e-3 }).update(
      theta,
      clipGlobalNorm(flat, 0.5),
    )
    const program = load({
      name: "update",
      inputs: { x, label },
      state: { theta: { tensor: theta, next }, ...moments },
      outputs: { loss },
      minibatches: { rows: 96, batch, count: 100, gathered: ["x", "label"] },
    })
    program.state("theta").set(numbers(parameters.size).map((n) => n / 10))
    program.feed("x").set(numbers(4 * 96, 2))
    program.feed("label").set(numbers(96, 3).map((n) => Math.floor((n + 2) * 0.75)))
    const indices = program.module.feeds.indices
    new Int32Array(program.feed("x").buffer, indices.address, indices.length).forEach(
      (_, i, all) => (all[i] = (i * 37 + (i >> 4)) % 96),
    )
    assert.strictEqual(program.run(), 100)
    assertFinite(program.state("theta"), program.result("loss"))
    assert.isBelow(program.result("loss")[99], program.result("loss")[0])
    assert.strictEqual(digestOf([bytesOf(program.state("theta")), program.bytes("loss")]), UPDATE)
  })
})

const FUNCTIONS = {}
const SUMS: ReadonlyArray<string> = []
const UPDATE = ""
