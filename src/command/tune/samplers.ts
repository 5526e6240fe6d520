/**
 * Suggests the settings of the next trial, at random or with the tree-structured Parzen estimator (TPE). These are pure
 * functions of the trials with results and of a stream of random numbers, so a repeated study gets the same suggestions.
 */
import type { Stream } from "../../base/rng/Rng.ts"
import { draw, logDensity, mixtureOf, type ParzenOptions } from "./parzen.ts"
import {
  coordinateOf,
  drawCoordinate,
  isActive,
  type Parameter,
  type Params,
  type SearchSpace,
  valueAt,
} from "./Space.ts"
import { type MetricDirection, type EndedTrial, ranked } from "./Trial.ts"

/** Draws every parameter independently. */
export const randomParams = (space: SearchSpace, random: Stream): Params => {
  const params: Record<string, unknown> = {}
  for (const parameter of space) {
    if (!isActive(parameter, params)) continue
    params[parameter.path] = valueAt(parameter, drawCoordinate(parameter, random.child(parameter.path)))
  }
  return params
}

interface TpeOptions {
  /** The number of trials with results that are needed; until then, suggestions are random. */
  readonly startup: number
  /** The number of candidates from which the best is suggested. */
  readonly candidates: number
  /** The share of the trials with results that count as good; at most 25 trials do. */
  readonly gamma: number
  readonly priorWeight: number
  /** Whether the parameters are modelled together, instead of independently. */
  readonly multivariate: boolean
}

/** The information that a sampler has when it suggests a trial. */
interface SamplerInputs {
  readonly space: SearchSpace
  readonly direction: MetricDirection
  readonly ended: ReadonlyArray<EndedTrial>
  /** The settings of earlier trials whose results are not known yet. They count as bad, so that other settings are tried. */
  readonly pending: ReadonlyArray<Params>
}

const mostGood = 25

/**
 * Divides trials into good ones, whose share is `gamma`, and the others. Both lists are in the order of the trials' numbers.
 */
const split = (ended: ReadonlyArray<EndedTrial>, direction: MetricDirection, gamma: number) => {
  const count = Math.min(Math.ceil(gamma * ended.length), mostGood)
  const good = new Set(ranked(ended, direction).slice(0, count))
  const inOrder = [...ended].sort((one, other) => one.trial - other.trial)
  return { good: inOrder.filter((one) => good.has(one)), bad: inOrder.filter((one) => !good.has(one)) }
}

/**
 * Suggests settings with the tree-structured Parzen estimator (Bergstra et al. 2011, "Algorithms for Hyper-Parameter
 * Optimization"). It estimates the density l(x) of the good trials and g(x) of all others, draws candidates from l, and
 * suggests the candidate with the largest l(x) / g(x), which has the largest expected improvement.
 */
export const tpeParams = (known: SamplerInputs, options: TpeOptions, random: Stream): Params => {
  const { space, direction, ended, pending } = known
  if (ended.length < options.startup) return randomParams(space, random)
  const { good, bad } = split(ended, direction, options.gamma)
  const goodParams = good.map(({ params }) => params)
  const badParams = [...bad.map(({ params }) => params), ...pending]
  const params: Record<string, unknown> = {}
  for (const group of groupsOf(space, options.multivariate)) {
    if (!group.every((parameter) => isActive(parameter, params))) continue
    const point = bestPoint(group, goodParams, badParams, options, random.child(...group.map(({ path }) => path)))
    group.forEach((parameter, at) => (params[parameter.path] = valueAt(parameter, point[at])))
  }
  return inOrderOf(space, params)
}

/**
 * Divides the parameters into groups that are modelled together. With `multivariate`, the parameters without a condition are
 * one group; every other parameter is a group of its own.
 */
const groupsOf = (space: SearchSpace, multivariate: boolean): ReadonlyArray<ReadonlyArray<Parameter>> => {
  if (!multivariate) return space.map((parameter) => [parameter])
  const free = space.filter(({ when }) => when.length === 0)
  return [...(free.length === 0 ? [] : [free]), ...space.filter(({ when }) => when.length > 0).map((one) => [one])]
}

const inOrderOf = (space: SearchSpace, params: Params): Params =>
  Object.fromEntries(space.flatMap(({ path }) => (Object.hasOwn(params, path) ? [[path, params[path]] as const] : [])))

/** Draws candidates from the density of the good trials, and returns the one with the largest l(x) / g(x). */
const bestPoint = (
  group: ReadonlyArray<Parameter>,
  goodParams: ReadonlyArray<Params>,
  badParams: ReadonlyArray<Params>,
  options: TpeOptions,
  random: Stream,
): ReadonlyArray<number> => {
  const parzen: ParzenOptions = {
    priorWeight: options.priorWeight,
    width: options.multivariate ? "dimensions" : "neighbours",
  }
  const good = mixtureOf(group, withAll(group, goodParams), parzen)
  const bad = mixtureOf(group, withAll(group, badParams), parzen)
  let best: { readonly point: ReadonlyArray<number>; readonly gain: number } | undefined
  for (let candidate = 0; candidate < options.candidates; candidate++) {
    const point = draw(good, random)
    const gain = logDensity(good, point) - logDensity(bad, point)
    if (best === undefined || gain > best.gain) best = { point, gain }
  }
  return best?.point ?? group.map((parameter) => drawCoordinate(parameter, random))
}

/** Returns the settings of the trials that have a usable value for each of the parameters. */
const withAll = (group: ReadonlyArray<Parameter>, trials: ReadonlyArray<Params>): ReadonlyArray<Params> =>
  trials.filter((params) =>
    group.every(({ path }, at) => Object.hasOwn(params, path) && !Number.isNaN(coordinateOf(group[at], params[path]))),
  )
