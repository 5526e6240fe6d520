import { fail } from "./ops/core.ts"

/**
 * Learning rates as functions of progress, which goes from 0 to 1 and is cut off there.
 *
 * @example
 * ```ts
 * const rate = linear(1e-3)
 * rate(0) // 0.001
 * rate(0.1) // 0.0009
 * rate(2) // 0
 * ```
 */
export type Schedule = (progress: number) => number

const clamp = (progress: number): number => Math.min(Math.max(progress, 0), 1)

export const constant =
  (value: number): Schedule =>
  () =>
    value

/** From `start` down to `end` in a power's curve; power 1 is a straight line. It never goes up. */
export const polynomial = (start: number, end = 0, power = 1): Schedule => {
  if (!(end <= start)) fail("polynomial", `${end} is not below ${start}: a polynomial schedule never goes up`)
  return (progress) => end + (start - end) * (1 - clamp(progress)) ** power
}

export const linear = (start: number, end = 0): Schedule => polynomial(start, end, 1)

/** Up in a line over the first `warmUp` of the way, then down half a cosine. */
export const cosine =
  (peak: number, options: { readonly warmUp?: number; readonly end?: number } = {}): Schedule =>
  (progress) => {
    const { warmUp = 0, end = 0 } = options
    const at = clamp(progress)
    if (at < warmUp) return peak * (at / warmUp)
    return end + 0.5 * (peak - end) * (1 + Math.cos((Math.PI * (at - warmUp)) / (1 - warmUp)))
  }
