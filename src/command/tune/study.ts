/**
 * Decides the settings of a trial, and the limits at which its runs stop early. Both depend only on the study's settings and
 * on the earlier trials whose results are known when it starts. These are pure functions.
 */
import { stream } from "../../base/rng/Rng.ts"
import { type Limit, limitsOf } from "./asha.ts"
import { randomParams, tpeParams } from "./samplers.ts"
import type { Params, SearchSpace } from "./Space.ts"
import type { Study } from "./StudySettings.ts"
import type { EndedTrial } from "./Trial.ts"

/**
 * Returns the number of trials that must have ended before a trial starts. They are the first trials of the study; the
 * `parallel` − 1 trials before this one may still run.
 */
export const knownAt = (trial: number, parallel: number): number => Math.max(0, trial - parallel + 1)

/** The information with which a trial starts. */
interface Before {
  /** The trials 0 to `knownAt(trial)` − 1. */
  readonly ended: ReadonlyArray<EndedTrial>
  /** The settings of the later trials before this one, which may still run. */
  readonly pending: ReadonlyArray<Params>
}

/** Suggests the settings of a trial. */
export const suggest = ({ settings, space }: Study, trial: number, { ended, pending }: Before): Params => {
  const random = stream(settings.seed, "tune", trial)
  const { sampler, direction } = settings
  return sampler.name === "random"
    ? randomParams(space, random)
    : tpeParams({ space, direction, ended, pending }, sampler, random)
}

/** Returns the limits at which the runs of a trial stop early, in a training of `totalSteps`. */
export const limitsFor = (
  { settings }: Study,
  ended: ReadonlyArray<EndedTrial>,
  totalSteps: number,
): ReadonlyArray<Limit> => {
  const { name, minSteps, reduction, warmup } = settings.pruner
  return name === "none"
    ? []
    : limitsOf(ended, { minSteps: minSteps ?? Math.ceil(totalSteps / reduction ** 2), reduction, warmup }, totalSteps)
}

/**
 * Returns assignments that together contain every bound and every choice of a space, so that all can be checked before a
 * study starts.
 */
export const extremes = (space: SearchSpace): ReadonlyArray<{ readonly path: string; readonly params: Params }> =>
  space.flatMap((parameter) => {
    const values = parameter._tag === "Choice" ? parameter.values : [parameter.low, parameter.high]
    // These are the first values that satisfy the conditions, which concern choices earlier in the list.
    const needed = neededFor(space, parameter.path)
    return values.map((value) => ({ path: parameter.path, params: { ...needed, [parameter.path]: value } }))
  })

const neededFor = (space: SearchSpace, path: string): Params => {
  const parameter = space.find((one) => one.path === path)
  return Object.assign(
    {},
    ...(parameter?.when ?? []).map((condition) => ({
      ...neededFor(space, condition.path),
      [condition.path]: condition.values[0],
    })),
  )
}
