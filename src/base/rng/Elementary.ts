/**
 * Computes exp, log, sin and cos with only +, −, ×, ÷, rounding and bit casts of doubles. The results have the same bits in
 * every engine and on every machine, which `Math.exp` and the like do not guarantee. `Rng.ts` and envs use them.
 *
 * Each function reduces its argument to a short interval and evaluates a polynomial there. The polynomial was fitted in 60
 * digits at the Chebyshev nodes of the interval, with a relative error below 2⁻⁵⁵. Results are within two units in the last
 * place of the true ones.
 *
 * @example
 * ```ts
 * import { Elementary } from "effect-rl"
 *
 * Elementary.exp(1) // 2.718281828459045
 * Elementary.log(10) // 2.302585092994046
 * Elementary.sin(1) ** 2 + Elementary.cos(1) ** 2 // 1
 * ```
 */

// Holds a double while its bits are read. A DataView is big-endian on every machine, so the upper word comes first.
const bits = new DataView(new ArrayBuffer(8))

// π/2 and ln 2 in parts. All parts but the last have 33 bits, so the product with an integer of 20 bits is exact.
const halfPi1 = 1.5707963267341256
const halfPi2 = 6.077100506303966e-11
const halfPi3 = 2.0222662487959506e-21
const ln2High = 0.6931471804855391
const ln2Low = 7.440617110012397e-11

const ln2 = 0.6931471805599453

const halfPi = 1.5707963267948966
const quarterPi = 0.7853981633974483
const twoOverPi = 0.6366197723675814
const tau = 6.283185307179586
/** 2²⁰ · π/2. For |x| up to this number, the products with the parts of π/2 in `sinShifted` are exact. */
const reach = 1_647_099

/** Computes sin x for |x| ≤ π/4. */
const sinCore = (x: number): number => {
  const z = x * x
  return (
    x +
    x *
      z *
      (-0.16666666666666666 +
        z *
          (0.008333333333330946 +
            z *
              (-0.00019841269836753985 +
                z * (2.755731610017207e-6 + z * (-2.5051131348960252e-8 + z * 1.5918093561437795e-10)))))
  )
}

/** Computes cos x for |x| ≤ π/4. */
const cosCore = (x: number): number => {
  const z = x * x
  const half = 0.5 * z
  const head = 1 - half
  const tail =
    z *
    z *
    (0.041666666666666664 +
      z *
        (-0.0013888888888887395 +
          z *
            (2.4801587298762816e-5 +
              z * (-2.755731727024068e-7 + z * (2.087614595808494e-9 + z * -1.1382610070998325e-11)))))
  // 1 − head − half is the rounding error of head.
  return head + (1 - head - half + tail)
}

/** Computes sin(x + shift · π/2). It reduces x to |y| ≤ π/4 by whole quarter turns. */
const sinShifted = (x: number, shift: 0 | 1): number => {
  // Reduce a larger x by whole turns first. `%` is exact, and the error of `tau` matters less than the rounding of x.
  const near = x >= -reach && x <= reach ? x : x % tau
  const n = Math.floor(near * twoOverPi + 0.5)
  const y = near - n * halfPi1 - n * halfPi2 - n * halfPi3
  const quadrant = n + shift
  const value = (quadrant & 1) === 0 ? sinCore(y) : cosCore(y)
  return (quadrant & 2) === 0 ? value : -value
}

/** Computes the sine of x. It is fastest for |x| ≤ π/4, where the argument needs no reduction. */
export const sin = (x: number): number => (x >= -quarterPi && x <= quarterPi ? sinCore(x) : sinShifted(x, 0))

/** Computes the cosine of x. It is fastest for |x| ≤ π/4, where the argument needs no reduction. */
export const cos = (x: number): number => (x >= -quarterPi && x <= quarterPi ? cosCore(x) : sinShifted(x, 1))

/** The sine of n quarter turns, for n from 0 to 4. */
const sinOfQuarters = Float64Array.of(0, 1, 0, -1, 0)

/**
 * Computes cos 2πu. It is made for random angles, whose quadrant a processor cannot predict: it evaluates both polynomials
 * and multiplies each by 0 or ±1, which costs less than a branch.
 */
export const cosOfTurns = (u: number): number => {
  const n = Math.floor(4 * u + 0.5)
  const y = (4 * u - n) * halfPi
  const quadrant = n & 3
  return cosCore(y) * sinOfQuarters[quadrant + 1] - sinCore(y) * sinOfQuarters[quadrant]
}

/** `powersOfTwo[i]` is 2^(i − 1024), made by exact doubling and halving: a look-up is faster than composing bits. */
const powersOfTwo = new Float64Array(2048)
powersOfTwo[1024] = 1
for (let at = 1025; at < 2048; at++) powersOfTwo[at] = 2 * powersOfTwo[at - 1]
for (let at = 1023; at >= 0; at--) powersOfTwo[at] = powersOfTwo[at + 1] / 2

/** Computes e to the power x. */
export const exp = (x: number): number => {
  if (x !== x) return x
  // Above the first bound e^x is too large for a double; below the second it rounds to 0.
  if (x > 709.782712893384) return Infinity
  if (x < -745.1332191019411) return 0
  // e^x = 2^k · e^r with |r| ≤ ½ ln 2, and e^r = 1 + r + r² · even + r³ · odd, where both are polynomials of r².
  const k = Math.floor(x * 1.4426950408889634 + 0.5)
  const r = x - k * ln2High - k * ln2Low
  const z = r * r
  const even =
    0.5000000000000001 +
    z * (0.041666666666624066 + z * (0.0013888888917245787 + z * (2.4801521246131495e-5 + z * 2.7620112139572367e-7)))
  const odd =
    0.16666666666666669 +
    z * (0.008333333333330056 + z * (0.0001984126986307828 + z * (2.7557268421682613e-6 + z * 2.510040371657669e-8)))
  const y = 1 + (r + z * (even + r * odd))
  // 2^1024 and 2^−1023 are not normal doubles, so multiply in two steps, of which the first is exact.
  if (k > 1023) return y * 2 * powersOfTwo[k + 1023]
  return k >= -1021 ? y * powersOfTwo[k + 1024] : y * powersOfTwo[k + 2024] * powersOfTwo[24]
}

/** Computes the natural logarithm of x: −∞ for 0, and NaN for negative numbers. */
export const log = (x: number): number => {
  if (x === 0) return -Infinity
  if (!(x > 0) || x === Infinity) return x > 0 ? x : NaN
  // x is too small for a normal double (subnormal), so it has fewer bits: multiply it by 2⁵⁴ first.
  if (x < 2.2250738585072014e-308) return log(x * 18_014_398_509_481_984) - 54 * ln2
  bits.setFloat64(0, x)
  const high = bits.getUint32(0)
  // x = 2^k · (1 + f), with 1 + f between √½ and √2: adding 0x95f62 raises the exponent if the mantissa is above √2.
  const k = ((high + 0x95f62) >>> 20) - 1023
  const f = x * powersOfTwo[1024 - k] - 1
  // log(1 + f) = 2 artanh(s) = 2s + s · rest = f − (half − s · (half + rest)), in which the large part f is exact.
  const s = f / (2 + f)
  const z = s * s
  const rest =
    z *
    (0.666666666666667 +
      z *
        (0.3999999999989827 +
          z *
            (0.2857142862653362 +
              z *
                (0.22222211043776857 + z * (0.18182895750119193 + z * (0.1533150161114533 + z * 0.1461916613488797))))))
  const half = 0.5 * f * f
  return k * ln2High - (half - (s * (half + rest) + k * ln2Low) - f)
}
