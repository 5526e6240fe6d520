/**
 * Emits code for elementary functions over blocks of vectors, with roundings in a fixed order. Most reduce the range
 * of the argument and evaluate a polynomial or a rational function, with coefficients fitted for this project. A
 * block is a few vectors that are computed together, so that constants are loaded once for all of them and their
 * dependency chains overlap.
 *
 * The largest errors in units in the last place, over the arguments in `test/tensor/graph/wasm/math.test.ts`: exp 1, log 1,
 * tanh 5.5, sigmoid 3, softplus 3, sin and cos 2, pow 0.5.
 */
import type { FunctionBuilder } from "./function.ts"
import { callFor, f32, f32x4, f64, f64x2, i32x4, type V128, v128 } from "../../wasm/instructions.ts"
import { powFunction } from "./pow.ts"
import {
  cosineSeries,
  expHigh,
  expLow,
  expSeries,
  halfPiHigh,
  halfPiLow,
  ln2High,
  ln2Low,
  logarithmSeries,
  rootHalfBits,
  roundingMagic,
  roundingMagicBits,
  sineSeries,
  smallestNormal,
  softplusSeries,
  tanhFarthest,
  tanhP,
  tanhQ,
} from "./coefficients.ts"

/** A few vectors of four lanes; all blocks in one computation have the same length. */
export type Block = ReadonlyArray<V128>

/** Applies an op to each vector, and stores each result in a local. */
export const apply = (f: FunctionBuilder, op: (a: V128) => V128, a: Block): Block => a.map((x) => f.let(op(x)))

export const apply2 = (f: FunctionBuilder, op: (a: V128, b: V128) => V128, a: Block, b: Block): Block =>
  a.map((x, i) => f.let(op(x, b[i])))

export const constant = (f: FunctionBuilder, value: number, like: Block): Block => {
  const loaded = f.let(f.constant(value))
  return like.map(() => loaded)
}

const word = (f: FunctionBuilder, value: number, like: Block): Block => {
  const loaded = f.let(f.word(value))
  return like.map(() => loaded)
}

/** Computes a · b + c with two roundings. */
const multiplyAdd = (f: FunctionBuilder, a: Block, b: Block, c: Block): Block =>
  a.map((x, i) => f.let(f32x4.add(f32x4.mul(x, b[i]), c[i])))

/** Evaluates a polynomial by Horner's scheme, with coefficients from the highest power down. */
const polynomial = (f: FunctionBuilder, x: Block, coefficients: ReadonlyArray<number>): Block => {
  let sum = constant(f, coefficients[0], x)
  for (const coefficient of coefficients.slice(1)) sum = multiplyAdd(f, sum, x, constant(f, coefficient, x))
  return sum
}

const select = (f: FunctionBuilder, mask: Block, then: Block, otherwise: Block): Block =>
  mask.map((m, i) => f.let(v128.bitselect(then[i], otherwise[i], m)))

/**
 * Computes tanh x as x · P(x²) / Q(x²). x² is clipped to 9.25², where tanh rounds to 1 in float32, and the result to
 * [−1, 1]. Q's highest coefficient is 1; the lowest of P and Q are equal, so that tanh x = x for tiny x.
 */
export const tanh = (f: FunctionBuilder, x: Block): Block => {
  const farthest = constant(f, tanhFarthest, x)
  const u = x.map((v, i) => f.let(f32x4.pmin(f32x4.mul(v, v), farthest[i])))
  const p = polynomial(f, u, tanhP)
  const numerator = apply2(f, f32x4.mul, x, p)
  let q = apply2(f, f32x4.add, u, constant(f, tanhQ[0], u))
  for (const coefficient of tanhQ.slice(1)) {
    q = multiplyAdd(f, q, u, constant(f, coefficient, u))
  }
  const one = constant(f, 1, x)
  const minusOne = constant(f, -1, x)
  return numerator.map((v, i) => f.let(f32x4.pmax(f32x4.pmin(f32x4.div(v, q[i]), one[i]), minusOne[i])))
}

/** Computes eˣ = 2ⁿ · e^r with |r| ≤ ln 2 / 2. Multiplies by 2ⁿ in two steps, for correct overflow and denormals. */
export const exp = (f: FunctionBuilder, x: Block): Block => {
  const high = constant(f, expHigh, x)
  const low = constant(f, expLow, x)
  const t = x.map((v, i) => f.let(f32x4.pmax(f32x4.pmin(v, high[i]), low[i])))
  const magic = constant(f, roundingMagic, x)
  const shifted = multiplyAdd(f, t, constant(f, Math.LOG2E, x), magic)
  const n = apply2(f, f32x4.sub, shifted, magic)
  const reduced = multiplyAdd(f, n, constant(f, -ln2High, x), t)
  const r = multiplyAdd(f, n, constant(f, -ln2Low, x), reduced)
  const p = polynomial(f, r, expSeries)
  const one = constant(f, 1, x)
  const square = apply2(f, f32x4.mul, r, r)
  const fraction = apply2(f, f32x4.add, multiplyAdd(f, p, square, r), one)
  const exponent = apply2(f, i32x4.sub, shifted, word(f, roundingMagicBits, x))
  const half = apply(f, (v) => i32x4.shrS(v, 1), exponent)
  const oneBits = word(f, 0x3f800000, x)
  const first = half.map((v, i) => f.let(i32x4.add(i32x4.shl(v, 23), oneBits[i])))
  const second = half.map((v, i) => f.let(i32x4.add(i32x4.shl(i32x4.sub(exponent[i], v), 23), oneBits[i])))
  return fraction.map((v, i) => f.let(f32x4.mul(f32x4.mul(v, first[i]), second[i])))
}

/** Computes log x from x = 2ᵉ · (1 + s) with 1 + s between √½ and √2; denormals are scaled up first. */
export const log = (f: FunctionBuilder, x: Block): Block => {
  const tiny = apply2(f, f32x4.lt, x, constant(f, smallestNormal, x))
  const scaled = select(f, tiny, apply2(f, f32x4.mul, x, constant(f, 8388608, x)), x)
  const rootBits = word(f, rootHalfBits, x)
  const e = scaled.map((v, i) => f.let(i32x4.shrS(i32x4.sub(v, rootBits[i]), 23)))
  const mantissa = scaled.map((v, i) => f.let(i32x4.sub(v, i32x4.shl(e[i], 23))))
  const s = apply2(f, f32x4.sub, mantissa, constant(f, 1, x))
  const correction = apply2(f, v128.and, tiny, constant(f, 23, x))
  const exponent = e.map((v, i) => f.let(f32x4.sub(f32x4.convert(v), correction[i])))
  const p = polynomial(f, s, logarithmSeries)
  const square = apply2(f, f32x4.mul, s, s)
  const cubic = apply2(f, f32x4.mul, apply2(f, f32x4.mul, square, s), p)
  const withLow = multiplyAdd(f, exponent, constant(f, ln2Low, x), cubic)
  const tail = multiplyAdd(f, square, constant(f, -0.5, x), withLow)
  const value = multiplyAdd(f, exponent, constant(f, ln2High, x), apply2(f, f32x4.add, s, tail))
  const finite = apply2(f, f32x4.lt, x, constant(f, Infinity, x))
  const zero = constant(f, 0, x)
  const positive = select(f, finite, value, x) // the logarithm of +∞ is +∞, and of NaN it is NaN
  const nonNegative = select(f, apply2(f, f32x4.eq, x, zero), constant(f, -Infinity, x), positive)
  return select(f, apply2(f, f32x4.lt, x, zero), constant(f, NaN, x), nonNegative)
}

const negativeAbs = (f: FunctionBuilder, x: Block): Block => apply(f, (v) => f32x4.neg(f32x4.abs(v)), x)

/** Computes the sigmoid from e^(−|x|), so that it is accurate for negative and for positive x. */
export const sigmoid = (f: FunctionBuilder, x: Block): Block => {
  const e = exp(f, negativeAbs(f, x))
  const one = constant(f, 1, x)
  const numerator = select(f, apply2(f, f32x4.lt, x, constant(f, 0, x)), e, one)
  return numerator.map((v, i) => f.let(f32x4.div(v, f32x4.add(e[i], one[i]))))
}

/** Computes max(x, 0) + log(1 + e^(−|x|)); the logarithm is a series in s = e / (2 + e), where e = e^(−|x|). */
export const softplus = (f: FunctionBuilder, x: Block): Block => {
  const e = exp(f, negativeAbs(f, x))
  const two = constant(f, 2, x)
  const s = e.map((v, i) => f.let(f32x4.div(v, f32x4.add(v, two[i]))))
  const z = apply2(f, f32x4.mul, s, s)
  const p = polynomial(f, z, softplusSeries)
  const series = multiplyAdd(f, apply2(f, f32x4.mul, z, s), p, apply2(f, f32x4.add, s, s))
  const zero = constant(f, 0, x)
  return x.map((v, i) => f.let(f32x4.add(f32x4.pmax(v, zero[i]), series[i])))
}

/**
 * Computes sine (`shift` 0) or cosine (`shift` 1). The nearest multiple of π/2 is subtracted in double precision, which
 * is accurate for |x| < 10⁹. For larger |x| the result is in [−1, 1] and equal on every machine, but inaccurate.
 */
const sine =
  (shift: 0 | 1) =>
  (f: FunctionBuilder, x: Block): Block =>
    x.map((v) => {
      const half = (pair: V128): { readonly r: V128; readonly quadrant: V128 } => {
        const d = f.let(f64x2.promoteLow(pair))
        const n = f.let(f64x2.nearest(f64x2.mul(d, f64x2.splat(f64.const(2 / Math.PI)))))
        const r = f64x2.sub(
          f64x2.sub(d, f64x2.mul(n, f64x2.splat(f64.const(halfPiHigh)))),
          f64x2.mul(n, f64x2.splat(f64.const(halfPiLow))),
        )
        const turns = f64x2.mul(f64x2.floor(f64x2.mul(n, f64x2.splat(f64.const(0.25)))), f64x2.splat(f64.const(4)))
        return {
          r: f.let(f64x2.demoteZero(r)),
          quadrant: f.let(f64x2.truncSatZero(f64x2.sub(n, turns))),
        }
      }
      const low = half(v)
      const high = half(v128.shuffle(v, v, [2, 3, 2, 3]))
      const joined = v128.shuffle(low.r, high.r, [0, 1, 4, 5])
      // The remainder is within ±π/4 (0.785), except for |x| ≥ 10⁹, where clipping keeps the result within [−1, 1].
      const r = f.let(f32x4.pmax(f32x4.pmin(joined, f.constant(0.8)), f.constant(-0.8)))
      const q = f.let(i32x4.add(v128.shuffle(low.quadrant, high.quadrant, [0, 1, 4, 5]), f.word(shift)))
      const u = [f.let(f32x4.mul(r, r))]
      const s = polynomial(f, u, sineSeries)[0]
      const sinR = f.let(f32x4.add(r, f32x4.mul(f32x4.mul(r, u[0]), s)))
      const c = polynomial(f, u, cosineSeries)[0]
      const halved = f32x4.sub(f.constant(1), f32x4.mul(f.constant(0.5), u[0]))
      const cosR = f.let(f32x4.add(halved, f32x4.mul(f32x4.mul(u[0], u[0]), c)))
      const odd = f.let(i32x4.ne(v128.and(q, f.word(1)), f.word(0)))
      const sign = f.let(i32x4.shl(v128.and(q, f.word(2)), 30))
      return f.let(v128.xor(v128.bitselect(cosR, sinR, odd), sign))
    })

export const sin = sine(0)
export const cos = sine(1)

/** Computes powers, one lane after another: calls a function that takes and returns doubles (`pow.ts`). */
export const pow = (f: FunctionBuilder, x: Block, y: Block): Block => {
  const index = powFunction(f.target)
  return x.map((base, i) => {
    const result = f.let(base)
    for (let lane = 0; lane < 4; lane++) {
      const value = callFor("f64", index, [
        f64.promote(f32x4.extract(base, lane)),
        f64.promote(f32x4.extract(y[i], lane)),
      ])
      f.emit(result.set(f32x4.replace(result, lane, f32.demote(value))))
    }
    return result
  })
}

/** Computes the sign: −1 or 1. Zeros and NaN stay unchanged. */
export const sign = (f: FunctionBuilder, x: Block): Block => {
  const zero = constant(f, 0, x)
  const one = constant(f, 1, x)
  return x.map((v, i) => {
    const signed = v128.or(one[i], v128.and(v, f.word(-0x80000000)))
    const nonZero = v128.or(f32x4.lt(v, zero[i]), f32x4.gt(v, zero[i]))
    return f.let(v128.bitselect(signed, v, nonZero))
  })
}
