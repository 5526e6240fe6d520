/** Learning rates as functions of progress, which goes from 0 to 1. */
export type Schedule = (progress: number) => number

const clamp = (progress: number): number => Math.min(Math.max(progress, 0), 1)

export const constant =
  (value: number): Schedule =>
  () =>
    value

/** From `start` down to `end` in a power's curve; power 1 is a straight line. */
export const polynomial =
  (start: number, end = 0, power = 1): Schedule =>
  (progress) =>
    end + (start - end) * (1 - clamp(progress)) ** power

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
