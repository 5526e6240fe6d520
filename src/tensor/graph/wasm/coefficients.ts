/**
 * Holds the coefficients of the elementary functions, from the highest power down. `math.ts` and `pow.ts` emit the functions
 * as WebAssembly, and `tensor/c/functions.ts` writes the same arithmetic as C.
 */

/** tanh x = x · P(x²) / Q(x²); the highest coefficient of Q is 1. Beyond ±9.25, tanh rounds to ±1 in float32. */
export const tanhP = [0.017812181264162064, 25.75598907470703, 4214.75146484375, 158868.578125, 1182110.875]
export const tanhQ = [402.03887939453125, 30901.90625, 552905.5, 1182110.875]
export const tanhFarthest = 9.25 ** 2

/** 1.5 · 2²³: after adding it, the low bits of the float are the nearest integer. */
export const roundingMagic = 12582912
export const roundingMagicBits = 0x4b400000
/** ln 2 = ln2High + ln2Low, where n · ln2High is exact for the exponents n of floats. */
export const ln2High = 0.693359375
export const ln2Low = -2.1219444e-4
export const expSeries = [0.001395049155689776, 0.008368889801204205, 0.04166620597243309, 0.166665181517601, 0.5]
/** Above `expHigh` the result is ∞ in float32, and below `expLow` it is 0. */
export const expHigh = 89
export const expLow = -104

export const logarithmSeries = [
  -0.07859612256288528, 0.12881647050380707, -0.13128754496574402, 0.14181192219257355, -0.16624553501605988,
  0.2000228613615036, -0.25000810623168945, 0.33333316445350647,
]
export const smallestNormal = 1.1754943508222875e-38
/** The bits of √½ as a float32. */
export const rootHalfBits = 0x3f3504f3

export const softplusSeries = [
  0.24301671981811523, 0.21427477896213531, 0.28616899251937866, 0.3999887704849243, 0.6666667461395264,
]

/** The upper 33 bits of π/2, whose products with integers below 2²⁰ are exact, and the rest. */
export const halfPiHigh = 1.5707963267341256
export const halfPiLow = 6.077100506506192e-11
export const sineSeries = [-0.00019516977772582322, 0.008332176133990288, -0.16666655242443085]
export const cosineSeries = [2.4438089894829318e-5, -0.0013887364184483886, 0.04166664555668831]

/** The bits of √½ as a double. */
export const rootHalfBits64 = 0x3fe6a09e667f3bcdn
/** The coefficients of atanh(s), by which log m = 2 atanh(s) is computed: 1/15, 1/13, … 1. */
export const atanhSeries = [15, 13, 11, 9, 7, 5, 3, 1].map((k) => 1 / k)
/** The coefficients of 2ˣ, which are (ln 2)ⁿ / n!, from n = 11 down. */
export const exp2Series = ((): ReadonlyArray<number> => {
  const terms: Array<number> = []
  for (let n = 0, term = 1; n <= 11; n++) {
    terms.unshift(term)
    term = (term * Math.LN2) / (n + 1)
  }
  return terms
})()
