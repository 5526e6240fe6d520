import { assert, describe, it } from "vitest"
import { cos, cosOfTurns, exp, log, sin } from "../../../src/base/rng/Elementary.ts"
import { stream } from "../../../src/base/rng/Rng.ts"

const view = new DataView(new ArrayBuffer(8))
const bitsOf = (value: number): bigint => {
  view.setFloat64(0, value)
  return view.getBigUint64(0)
}

/** The distance to the next double away from zero. */
const ulp = (value: number): number => {
  view.setBigUint64(0, bitsOf(Math.abs(value)) + 1n)
  return view.getFloat64(0) - Math.abs(value)
}

const sample = (name: string, count: number, low: number, high: number): Float64Array => {
  const random = stream(7, "elementary", name)
  return Float64Array.from({ length: count }, () => random.between(low, high))
}

type Unary = (x: number) => number

/** The worst distance, in units in the last place of what the engine's own function gives; that one errs by up to 1. */
const worstUlps = (ours: Unary, engines: Unary, xs: Float64Array): number =>
  xs.reduce((worst, x) => Math.max(worst, Math.abs(ours(x) - engines(x)) / ulp(engines(x))), 0)

const worstError = (ours: Unary, engines: Unary, xs: Float64Array): number =>
  xs.reduce((worst, x) => Math.max(worst, Math.abs(ours(x) - engines(x))), 0)

describe("sin and cos", () => {
  it.each([
    ["sin", sin, Math.sin],
    ["cos", cos, Math.cos],
  ] as const)("%s is within two units in the last place where it needs no reduction", (name, ours, engines) => {
    assert.isAtMost(worstUlps(ours, engines, sample(`${name} near`, 50_000, -Math.PI / 4, Math.PI / 4)), 2)
  })

  it.each([
    ["sin", sin, Math.sin],
    ["cos", cos, Math.cos],
  ] as const)("%s is within 1e-15 for arguments up to a million and a half", (name, ours, engines) => {
    for (const bound of [4, 100, 1e4, 1.6e6]) {
      assert.isAtMost(worstError(ours, engines, sample(`${name} ${bound}`, 50_000, -bound, bound)), 1e-15)
    }
  })

  it("are accurate close to multiples of π/2, where most digits of the argument cancel", () => {
    for (let n = 1; n < 1_000_000; n = Math.ceil(n * 1.37)) {
      const x = n * (Math.PI / 2)
      assert.approximately(sin(x), Math.sin(x), 1e-15)
      assert.approximately(cos(x), Math.cos(x), 1e-15)
      const small = Math.abs(Math.sin(x)) < 0.5 ? [sin(x), Math.sin(x)] : [cos(x), Math.cos(x)]
      assert.isAtMost(Math.abs(small[0] / small[1] - 1), 1e-13, `at ${n} · π/2`)
    }
  })

  it("stay within 1, and are as accurate as their argument, for large arguments", () => {
    for (const x of [2e6, 1e9, 1e15, 1e300, Number.MAX_VALUE]) {
      for (const sign of [-1, 1]) {
        assert.isAtMost(Math.abs(sin(sign * x)), 1)
        assert.isAtMost(Math.abs(cos(sign * x)), 1)
        if (x > 1e15) continue
        assert.approximately(sin(sign * x), Math.sin(sign * x), ulp(x))
        assert.approximately(cos(sign * x), Math.cos(sign * x), ulp(x))
      }
    }
  })

  it("are NaN for infinities and NaN", () => {
    for (const x of [NaN, Infinity, -Infinity]) {
      assert.isNaN(sin(x))
      assert.isNaN(cos(x))
    }
  })

  it("cosOfTurns takes its argument in turns", () => {
    assert.deepEqual(
      [0, 0.25, 0.5, 0.75, 1].map((turns) => cosOfTurns(turns) + 0),
      [1, 0, -1, 0, 1],
    )
    for (const turns of sample("turns", 20_000, -3, 3)) {
      assert.approximately(cosOfTurns(turns), Math.cos(2 * Math.PI * turns), 5e-15)
    }
  })
})

describe("exp", () => {
  it("is within two units in the last place, from the smallest result to the largest", () => {
    for (const bound of [1e-9, 1, 10, 708]) {
      assert.isAtMost(worstUlps(exp, Math.exp, sample(`exp ${bound}`, 50_000, -bound, bound)), 2)
    }
    assert.isAtMost(worstUlps(exp, Math.exp, sample("exp subnormal", 20_000, -745, -708)), 2)
    assert.isAtMost(worstUlps(exp, Math.exp, sample("exp large", 20_000, 708, 709.78)), 2)
  })

  it("returns the right limits", () => {
    assert.strictEqual(exp(0), 1)
    assert.strictEqual(exp(-0), 1)
    assert.strictEqual(exp(709.782712893384), Math.exp(709.782712893384))
    assert.strictEqual(exp(709.79), Infinity)
    assert.strictEqual(exp(Infinity), Infinity)
    assert.strictEqual(exp(-745.13), Number.MIN_VALUE)
    assert.strictEqual(exp(-746), 0)
    assert.strictEqual(exp(-Infinity), 0)
    assert.isNaN(exp(NaN))
  })
})

describe("log", () => {
  it("is within two units in the last place, near 1 and of every size", () => {
    assert.isAtMost(worstUlps(log, Math.log, sample("log unit", 50_000, Number.MIN_VALUE, 2)), 2)
    assert.isAtMost(worstUlps(log, Math.log, sample("log near 1", 50_000, 0.999, 1.001)), 2)
    assert.isAtMost(worstUlps(log, Math.log, sample("log sizes", 50_000, -745, 709).map(Math.exp)), 2)
  })

  it("returns the right limits", () => {
    assert.strictEqual(log(1), 0)
    assert.strictEqual(log(0), -Infinity)
    assert.strictEqual(log(-0), -Infinity)
    assert.strictEqual(log(Infinity), Infinity)
    assert.strictEqual(log(Number.MIN_VALUE), Math.log(Number.MIN_VALUE))
    assert.strictEqual(log(Number.MAX_VALUE), Math.log(Number.MAX_VALUE))
    assert.isNaN(log(-1))
    assert.isNaN(log(-Infinity))
    assert.isNaN(log(NaN))
  })

  it("is the inverse of exp", () => {
    for (const x of sample("inverse", 20_000, -50, 50))
      assert.approximately(log(exp(x)), x, 1e-15 * Math.max(1, Math.abs(x)))
  })
})

describe("all of them", () => {
  it("give the same bits on every machine", () => {
    // Any change of a bit changes this: it is part of what a seed means.
    let hash = 0n
    for (const x of sample("bits", 20_000, -20, 20)) {
      for (const value of [sin(x), cos(x), exp(x), log(Math.abs(x)), cosOfTurns(x)]) {
        hash = BigInt.asUintN(64, (hash ^ bitsOf(value)) * 1_099_511_628_211n)
      }
    }
    assert.strictEqual(hash.toString(16), "bc1d7f8f1c685e83")
  })
})
