/**
 * Computes x to the power y in double precision, as 2^(y · log₂ x), with one scalar function that is added to a module when
 * it is needed. Its parameters and its result are doubles; rounded to single precision, the result is off by less than one
 * unit in the last place.
 */
import { atanhSeries, exp2Series, rootHalfBits64 } from "./coefficients.ts"
import { FunctionBuilder, type FunctionTarget } from "./function.ts"
import { choose, type F64, f64, i32, i64 } from "../../wasm/instructions.ts"

const horner = (f: FunctionBuilder, x: F64, coefficients: ReadonlyArray<number>): F64 => {
  const sum = f.let(f64.const(coefficients[0]))
  for (const coefficient of coefficients.slice(1)) f.emit(sum.set(f64.add(f64.mul(sum, x), f64.const(coefficient))))
  return sum
}

/** Returns the index of the power function in the module; the first call adds the function. */
export const powFunction = (target: FunctionTarget): number => {
  const existing = target.shared.get("pow")
  if (existing !== undefined) return existing
  const f = new FunctionBuilder(target, { params: ["f64", "f64"], results: ["f64"] }, "pow")
  const x = f.param("f64", 0)
  const y = f.param("f64", 1)
  const zero = f64.const(0)
  const infinity = f64.const(Infinity)
  const a = f.let(f64.abs(x))

  // Split a = 2^e · m, with m between √½ and √2, by its bits (no float32 is denormal as a double); s = (m−1) / (m+1).
  const bits = f.let(i64.reinterpret(a))
  const e = f.let(i64.shrS(i64.sub(bits, i64.const(rootHalfBits64)), i64.const(52n)))
  const m = f.let(f64.reinterpret(i64.sub(bits, i64.shl(e, i64.const(52n)))))
  const s = f.let(f64.div(f64.sub(m, f64.const(1)), f64.add(m, f64.const(1))))
  const series = horner(f, f.let(f64.mul(s, s)), atanhSeries)
  const log2 = f64.add(f64.convertS(e), f64.mul(f64.mul(s, series), f64.const(2 * Math.LOG2E)))

  // The result is 2^t. Clip t to ±400, which is beyond all exponents of float32: bases of 0 and ∞ make t infinite.
  const t = f.let(f64.mul(y, log2))
  const towards = (positive: boolean): F64 =>
    choose(f64.gt(y, zero), f64.const(positive ? 400 : -400), f64.const(positive ? -400 : 400))
  f.emit(t.set(choose(f64.eq(a, infinity), towards(true), t)))
  f.emit(t.set(choose(f64.eq(a, zero), towards(false), t)))
  f.emit(t.set(f64.max(f64.min(t, f64.const(400)), f64.const(-400))))
  const n = f.let(f64.nearest(t))
  const r = f.let(f64.sub(t, n))
  const scale = f64.reinterpret(i64.shl(i64.add(i64.truncSat(n), i64.const(1023n)), i64.const(52n)))
  const result = f.let(f64.mul(horner(f, r, exp2Series), scale))

  // A negative base (or −0) keeps its sign for an odd exponent. A finite one gives NaN for a fraction.
  const whole = f64.eq(f64.floor(y), y)
  const halfY = f64.mul(y, f64.const(0.5))
  const odd = i32.and(whole, f64.ne(f64.floor(halfY), halfY))
  const negative = i64.reinterpret(x)
  const isNegative = i32.wrap(i64.shrU(negative, i64.const(63n)))
  f.emit(result.set(choose(i32.and(isNegative, odd), f64.neg(result), result)))
  const finite = f64.ne(a, infinity)
  const undefinedBase = i32.and(i32.and(f64.lt(x, zero), finite), i32.eqz(whole))
  f.emit(result.set(choose(undefinedBase, f64.const(NaN), result)))

  f.emit(result.set(choose(f64.ne(x, x), x, result)))
  f.emit(result.set(choose(f64.ne(y, y), y, result)))
  const index = f.finish(choose(f64.eq(y, zero), f64.const(1), result))
  target.shared.set("pow", index)
  return index
}
