import * as Schema from "effect/Schema"
import { bounded, fraction, nonNegative, withDefault } from "../../base/config/fields.ts"
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

/** Returns how much of the time after the warm-up has passed, from 0 to 1; 0 if the warm-up takes the whole run. */
const afterWarmUp = (at: number, warmUp: number): number => (warmUp < 1 ? (at - warmUp) / (1 - warmUp) : 0)

/** Rises linearly over the first part of the run (`warmUp`, from 0 to 1), then falls to `end` as half a cosine. */
export const cosine =
  (peak: number, options: { readonly warmUp?: number; readonly end?: number } = {}): Schedule =>
  (progress) => {
    const { warmUp = 0, end = 0 } = options
    const at = clamp(progress)
    if (at < warmUp) return peak * (at / warmUp)
    return end + 0.5 * (peak - end) * (1 + Math.cos(Math.PI * afterWarmUp(at, warmUp)))
  }

/**
 * Compresses a schedule to the first part of the run (`share`, from 0 to 1), and keeps the schedule's last value after
 * that. With a share of 0, it is always the last value.
 */
export const within =
  (share: number, schedule: Schedule): Schedule =>
  (progress) =>
    schedule(share === 0 ? 1 : progress / share)

/**
 * The Schema of the course of a learning rate over a run: a name, or a name with options. `warmUp` is the share of the
 * run over which the rate rises from 0, and `end` is the share of the learning rate at which a linear or cosine course
 * ends.
 */
export const ScheduleCourse = Schema.Union([
  Schema.Literals(["constant", "linear", "cosine"]),
  Schema.Struct({
    type: Schema.Literals(["constant", "linear", "cosine"]),
    warmUp: Schema.optionalKey(fraction),
    end: Schema.optionalKey(fraction),
  }),
])
export type ScheduleCourse = typeof ScheduleCourse.Type

/**
 * Returns a course as a function of the run's progress, whose values are factors of the learning rate.
 *
 * @example
 * ```ts
 * const rate = course({ type: "linear", warmUp: 0.1, end: 0.5 })
 * rate(0.05) // 0.5
 * rate(0.1) // 1
 * rate(1) // 0.5
 * ```
 */
export const course = (setting: ScheduleCourse): Schedule => {
  const { type, warmUp = 0, end = 0 } = typeof setting === "string" ? { type: setting } : setting
  if (type === "cosine") return cosine(1, { warmUp, end })
  const after = type === "linear" ? linear(1, end) : constant(1)
  if (warmUp === 0) return after
  return (progress) => {
    const at = clamp(progress)
    return at < warmUp ? at / warmUp : after(afterWarmUp(at, warmUp))
  }
}

/** The Schema of a learning rate that changes with the number of updates: see `byStep`. */
export const ScheduleConfig = Schema.Struct({
  /** Whether the learning rate stays the same after the warm-up, or falls in a line or along a cosine. */
  type: withDefault(Schema.Literals(["constant", "linear", "cosine"]), "constant"),
  /** The number of steps over which the learning rate rises from near 0. */
  warmupSteps: withDefault(bounded("countOrNone"), 0),
  /**
   * The number of steps, up to the last one, over which a linear or cosine schedule falls; null: all steps after the
   * warm-up. In a run that has no last step, these steps begin right after the warm-up.
   */
  decaySteps: withDefault(Schema.NullOr(bounded("count")), null),
  /** The learning rate at the end of a linear or cosine schedule. */
  minLr: withDefault(nonNegative, 0),
})
export type ScheduleConfig = typeof ScheduleConfig.Type

/** The smallest share of the learning rate that a schedule returns, so that no step is lost at a rate of 0. */
const smallestShare = 1e-8

/** The settings of a run on which its schedule depends. */
export interface ScheduledRun {
  readonly learningRate: number
  /** The number of steps of the whole run; null if it has no end. */
  readonly maxSteps: number | null
}

/**
 * Returns the key of a schedule's setting that does not fit the run, with what was expected: `minLr` must not be above
 * the learning rate, the length of a decay must be known, and warm-up and decay must fit into `maxSteps`. Returns
 * undefined if all fits.
 */
export const scheduleProblem = (
  { type, warmupSteps, decaySteps, minLr }: ScheduleConfig,
  { learningRate, maxSteps }: ScheduledRun,
): { readonly key: keyof ScheduleConfig; readonly expected: string } | undefined => {
  if (type === "constant") return undefined
  if (minLr > learningRate) return { key: "minLr", expected: `at most the learning rate, which is ${learningRate}` }
  if (maxSteps === null)
    return decaySteps === null
      ? { key: "decaySteps", expected: `the length of the ${type} decay, because the run has no max_steps` }
      : undefined
  if (warmupSteps + (decaySteps ?? 1) <= maxSteps) return undefined
  const key = decaySteps === null ? "warmupSteps" : "decaySteps"
  return { key, expected: `warm-up and decay within the ${maxSteps} steps of the run` }
}

/**
 * Returns the learning rate of each step; `step` is the number of steps before it. The rate rises along a line over the
 * first `warmupSteps`, stays at `learningRate`, and falls over the last `decaySteps` to `minLr`, along a line or half a
 * cosine. It is never below 1e-8 of `learningRate`. It depends only on the step, so a resumed run uses the same rates
 * as one that was never stopped.
 *
 * Throws a `GraphError` if `scheduleProblem` finds a problem.
 *
 * @example
 * ```ts
 * const config = { type: "linear", warmupSteps: 10, decaySteps: 50, minLr: 0 } as const
 * const rate = byStep(config, { learningRate: 1e-3, maxSteps: 100 })
 * rate(5) // 0.0005
 * rate(10) // 0.001, until step 50
 * rate(75) // 0.0005
 * ```
 */
export const byStep = (config: ScheduleConfig, run: ScheduledRun): ((step: number) => number) => {
  const { type, warmupSteps, decaySteps, minLr } = config
  const { learningRate, maxSteps } = run
  const problem = scheduleProblem(config, run)
  if (problem !== undefined) fail("schedule", `${problem.key}: expected ${problem.expected}`)
  const smallest = smallestShare * learningRate
  const rise = linear(smallest, learningRate)
  const warmedUp = (rate: (step: number) => number) => (step: number) =>
    step < warmupSteps ? rise(step / warmupSteps) : rate(step)
  if (type === "constant") return warmedUp(() => learningRate)
  const length = decaySteps ?? (maxSteps ?? Infinity) - warmupSteps
  const start = maxSteps === null ? warmupSteps : maxSteps - length
  const end = Math.max(minLr, smallest)
  const fall = type === "linear" ? linear(learningRate, end) : cosine(learningRate, { end })
  return warmedUp((step) => fall((step - start) / length))
}
