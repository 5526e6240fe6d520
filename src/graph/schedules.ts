import { fail } from "./ops/core.ts"

/**
 * A number that changes over a run, such as a learning rate: a function of the run's progress, which goes from 0 to 1.
 * Progress below 0 counts as 0, and progress above 1 as 1.
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

/** Goes from `start` to `end` along a straight line. */
export const linear =
  (start: number, end = 0): Schedule =>
  (progress) =>
    end + (start - end) * (1 - clamp(progress))

/** Falls from `start` to `end` as (1 − progress) to the power `power`. `end` cannot be greater than `start`. */
export const polynomial = (start: number, end = 0, power = 1): Schedule => {
  if (!(end <= start)) fail("polynomial", `${end} is not below ${start}: a polynomial schedule never goes up`)
  return (progress) => end + (start - end) * (1 - clamp(progress)) ** power
}

/** Rises linearly over the first part of the run (`warmUp`, from 0 to 1), then falls to `end` as half a cosine. */
export const cosine =
  (peak: number, options: { readonly warmUp?: number; readonly end?: number } = {}): Schedule =>
  (progress) => {
    const { warmUp = 0, end = 0 } = options
    const at = clamp(progress)
    if (at < warmUp) return peak * (at / warmUp)
    return end + 0.5 * (peak - end) * (1 + Math.cos((Math.PI * (at - warmUp)) / (1 - warmUp)))
  }

/**
 * Compresses a schedule to the first part of the run (`share`, from 0 to 1), and keeps the schedule's last value after
 * that. With a share of 0, it is always the last value.
 */
export const within =
  (share: number, schedule: Schedule): Schedule =>
  (progress) =>
    schedule(share === 0 ? 1 : progress / share)
