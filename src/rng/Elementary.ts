/**
 * exp, log, sin and cos in nothing but +, −, ×, ÷ and bit casts of doubles: the same bits in every engine and on every
 * machine, which `Math.exp` and its kin do not promise. Accurate to about one unit in the last place.
 */

const bits = new DataView(new ArrayBuffer(8))

// π/2 in three parts; the first two have trailing zeros, so a whole number of up to 20 bits times them is exact.
const halfPi1 = 1.57079632673412561417
const halfPi2 = 6.07710050630396597660e-11
const halfPi3 = 2.02226624879595063154e-21
const twoOverPi = 0.63661977236758134308

/** sin on [−π/4, π/4]. */
const sinCore = (x: number): number => {
  const z = x * x
  const tail =
    8.33333333332248946124e-3 +
    z * (-1.98412698298579493134e-4 + z * (2.75573137070700676789e-6 + z * (-2.50507602534068634195e-8 + z * 1.58969099521155010221e-10)))
  return x + x * z * (-1.66666666666666324348e-1 + z * tail)
}

/** cos on [−π/4, π/4]. */
const cosCore = (x: number): number => {
  const z = x * x
  const tail =
    z *
    (4.16666666666666019037e-2 +
      z *
        (-1.38888888888741095749e-3 +
          z * (2.48015872894767294178e-5 + z * (-2.75573143513906633035e-7 + z * (2.08757232129817482790e-9 + z * -1.13596475577881948265e-11)))))
  const half = 0.5 * z
  const head = 1 - half
  return head + (1 - head - half + z * tail)
}

/** Sine, to 1e-15 or so for |x| up to a million. */
export const sin = (x: number): number => {
  if (x >= -0.785398163397448 && x <= 0.785398163397448) return sinCore(x)
  const n = Math.round(x * twoOverPi)
  const y = x - n * halfPi1 - n * halfPi2 - n * halfPi3
  const quadrant = n & 3
  const value = (quadrant & 1) === 0 ? sinCore(y) : cosCore(y)
  return quadrant > 1 ? -value : value
}

/** Cosine, to 1e-15 or so for |x| up to a million. */
export const cos = (x: number): number => {
  if (x >= -0.785398163397448 && x <= 0.785398163397448) return cosCore(x)
  const n = Math.round(x * twoOverPi)
  const y = x - n * halfPi1 - n * halfPi2 - n * halfPi3
  const quadrant = n & 3
  const value = (quadrant & 1) === 0 ? cosCore(y) : sinCore(y)
  return quadrant === 1 || quadrant === 2 ? -value : value
}

const ln2High = 6.93147180369123816490e-1
const ln2Low = 1.90821492927058770002e-10

/** 2 to a whole power between −1022 and 1023. */
const powerOfTwo = (exponent: number): number => {
  bits.setUint32(0, (exponent + 1023) << 20)
  bits.setUint32(4, 0)
  return bits.getFloat64(0)
}

/** e to the x. */
export const exp = (x: number): number => {
  if (x !== x) return x
  if (x > 709.782712893384) return Infinity
  if (x < -745.1332191019411) return 0
  const k = Math.round(x * 1.44269504088896338700)
  const high = x - k * ln2High
  const low = k * ln2Low
  const r = high - low
  const z = r * r
  const c =
    r -
    z *
      (1.66666666666666019037e-1 +
        z * (-2.77777777770155933842e-3 + z * (6.61375632143793436117e-5 + z * (-1.65339022054652515390e-6 + z * 4.13813679705723846039e-8))))
  const y = 1 + ((r * c) / (2 - c) - low + high)
  if (k > 1023) return y * 2 * powerOfTwo(k - 1)
  return k >= -1021 ? y * powerOfTwo(k) : y * powerOfTwo(k + 1000) * powerOfTwo(-1000)
}

/** Natural logarithm: −∞ at 0, NaN below. */
export const log = (x: number): number => {
  if (x === 0) return -Infinity
  if (!(x > 0) || x === Infinity) return x > 0 ? x : NaN
  let exponent = 0
  if (x < 2.2250738585072014e-308) {
    x *= 18014398509481984
    exponent = -54
  }
  bits.setFloat64(0, x)
  let high = bits.getUint32(0)
  exponent += (high >>> 20) - 1023
  // The mantissa between √½ and √2.
  high = (high & 0xfffff) | 0x3ff00000
  if ((high & 0xfffff) >= 0x6a09e) {
    high -= 0x100000
    exponent++
  }
  bits.setUint32(0, high)
  const f = bits.getFloat64(0) - 1
  const s = f / (2 + f)
  const z = s * s
  const w = z * z
  const even = w * (3.999999999940941908e-1 + w * (2.222219843214978396e-1 + w * 1.531383769920937332e-1))
  const odd = z * (6.666666666666735130e-1 + w * (2.857142874366239149e-1 + w * (1.818357216161805012e-1 + w * 1.479819860511658591e-1)))
  const half = 0.5 * f * f
  return exponent * ln2High - (half - (s * (half + even + odd) + exponent * ln2Low) - f)
}
