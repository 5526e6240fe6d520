/**
 * Estimates the density of good (or of bad) settings with Parzen estimators. Such an estimator is a mixture with one
 * component at each setting that was tried, and a wide component for the whole range (the prior). The widths and weights are
 * computed as in Optuna's TPE sampler. These are pure functions; `samplers.ts` and `importance.ts` call them.  ¶  A component
 * has a normal distribution for each number, cut off at the bounds, and a probability for each choice. In a mixture over
 * several parameters, a component is the product over its parameters.
 */
import { exp, log } from "../../base/rng/Elementary.ts"
import type { Stream } from "../../base/rng/Rng.ts"
import { normalBelow } from "../../base/statistics/intervals.ts"
import { type CoordinateRange, boundsOf, cellOf, coordinateOf, type Parameter, type Params } from "./Space.ts"

export interface ParzenOptions {
  /** The weight of the prior; a recent trial has the weight 1. */
  readonly priorWeight: number
  /**
   * How the widths of the normal distributions are computed: `neighbours` uses the distance to the neighbouring trials, for a
   * single parameter; `dimensions` uses Scott's rule, with the number of parameters.
   */
  readonly width: "neighbours" | "dimensions"
}

/**
 * The normal distributions of all components for one parameter, or the probabilities that each component gives to the
 * choices.
 */
type Marginal =
  | {
      readonly _tag: "Normal"
      readonly parameter: Extract<Parameter, { readonly _tag: "Number" }>
      readonly bounds: CoordinateRange
      readonly means: Float64Array
      readonly widths: Float64Array
      /** The probability mass of each normal distribution that is within the bounds. */
      readonly inside: Float64Array
    }
  | { readonly _tag: "Choices"; readonly shares: ReadonlyArray<Float64Array> }

export interface Mixture {
  /** The weights of the components, whose sum is 1. The last component is the prior. */
  readonly weights: Float64Array
  readonly marginals: ReadonlyArray<Marginal>
}

/** The number of newest trials that have the full weight. If there are no more trials than this, all have the same weight. */
const recent = 25

/**
 * Returns the weights of trials, the oldest first. If there are more than `recent`, the weights of the older ones increase
 * from 1/n to 1.
 */
export const weightsOf = (trials: number): ReadonlyArray<number> => {
  const older = Math.max(0, trials - recent)
  const rise = (at: number): number => (older === 1 ? 1 / trials : 1 / trials + (at * (1 - 1 / trials)) / (older - 1))
  return Array.from({ length: trials }, (_, at) => (at < older ? rise(at) : 1))
}

/** Makes the mixture of these parameters over the trials, the oldest first. Each trial must have all of the parameters. */
export const mixtureOf = (
  parameters: ReadonlyArray<Parameter>,
  trials: ReadonlyArray<Params>,
  options: ParzenOptions,
): Mixture => {
  const weights = Float64Array.from([...weightsOf(trials.length), options.priorWeight])
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  return {
    weights: weights.map((weight) => weight / total),
    marginals: parameters.map((parameter) => {
      const values = trials.map((params) => coordinateOf(parameter, params[parameter.path]))
      return parameter._tag === "Choice"
        ? choicesOf(parameter.values.length, values, options.priorWeight)
        : normalsOf(parameter, values, options.width === "neighbours" ? undefined : parameters.length)
    }),
  }
}

/**
 * Returns the probabilities of the choices in each component: a high one for the choice of the component's trial, and a low
 * one for each other choice.
 */
const choicesOf = (count: number, values: ReadonlyArray<number>, priorWeight: number): Marginal => {
  const components = values.length + 1
  const little = priorWeight / components
  const shares = [...values, -1].map((value) => {
    const share = new Float64Array(count).fill(little)
    if (value >= 0) share[value] += 1
    const total = share.reduce((sum, one) => sum + one, 0)
    return total > 0 ? share.map((one) => one / total) : share.fill(1 / count)
  })
  return { _tag: "Choices", shares }
}

const normalsOf = (
  parameter: Extract<Parameter, { readonly _tag: "Number" }>,
  values: ReadonlyArray<number>,
  dimensions: number | undefined,
): Marginal => {
  const bounds = boundsOf(parameter)
  const { low, high } = bounds
  const range = high - low
  const means = Float64Array.from([...values, (low + high) / 2])
  const components = means.length
  const widths =
    dimensions === undefined
      ? gapsOf(means, bounds)
      : means.map(() => 0.2 * range * exp(-log(Math.max(values.length, 1)) / (dimensions + 4)))
  const narrowest = range / Math.min(100, 1 + components)
  for (let at = 0; at < components; at++) widths[at] = Math.min(range, Math.max(narrowest, widths[at]))
  widths[components - 1] = range
  const inside = means.map((mean, at) => normalBetween(low, high, mean, widths[at]))
  return { _tag: "Normal", parameter, bounds, means, widths, inside }
}

/**
 * Returns, for each number, the distance to its farther neighbour. The smallest and the largest number have only one
 * neighbour.
 */
const gapsOf = (values: Float64Array, { low, high }: CoordinateRange): Float64Array => {
  const order = Array.from(values, (_, index) => index).sort((a, b) => values[a] - values[b] || a - b)
  const gaps = new Float64Array(values.length)
  order.forEach((index, place) => {
    const before = place === 0 ? low : values[order[place - 1]]
    const after = place === order.length - 1 ? high : values[order[place + 1]]
    const [left, right] = [values[index] - before, after - values[index]]
    // The bounds count as neighbours only if there is no other number.
    if (values.length === 1) gaps[index] = Math.max(left, right)
    else gaps[index] = place === 0 ? right : place === order.length - 1 ? left : Math.max(left, right)
  })
  return gaps
}

/** Computes the probability that a normal variable lies between two numbers. */
const normalBetween = (low: number, high: number, mean: number, width: number): number =>
  below((high - mean) / width) - below((low - mean) / width)

/** At eight standard deviations or more, the probability is rounded to 0 or 1. */
const below = (x: number): number => (x <= -8 ? 0 : x >= 8 ? 1 : normalBelow(x))

const logOfRootOfTwoPi = 0.9189385332046727

/** Computes the logarithm of a component's density, or of its probability for a choice or a number with a step. */
const logIn = (marginal: Marginal, component: number, coordinate: number): number => {
  if (marginal._tag === "Choices") return log(marginal.shares[component][coordinate])
  const { parameter, means, widths, inside } = marginal
  const [mean, width] = [means[component], widths[component]]
  const cell = cellOf(parameter, coordinate)
  if (cell !== undefined) return log(normalBetween(cell.low, cell.high, mean, width) / inside[component])
  const distance = (coordinate - mean) / width
  return -0.5 * distance * distance - logOfRootOfTwoPi - log(width * inside[component])
}

/** Computes the logarithm of a mixture's density at a point, which has a coordinate for each parameter. */
export const logDensity = ({ weights, marginals }: Mixture, point: ReadonlyArray<number>): number => {
  const terms = Array.from(weights, (weight, component) =>
    marginals.reduce((sum, marginal, at) => sum + logIn(marginal, component, point[at]), log(weight)),
  )
  const largest = terms.reduce((most, term) => Math.max(most, term), -Infinity)
  if (largest === -Infinity) return -Infinity
  return largest + log(terms.reduce((sum, term) => sum + exp(term - largest), 0))
}

/** Draws a point from a mixture. */
export const draw = ({ weights, marginals }: Mixture, random: Stream): ReadonlyArray<number> => {
  const component = random.categorical(weights)
  return marginals.map((marginal) => {
    if (marginal._tag === "Choices") return random.categorical(marginal.shares[component])
    const { bounds, means, widths } = marginal
    // The mean is within the bounds, and the range is at least as wide as the distribution, so few draws are rejected.
    for (;;) {
      const coordinate = means[component] + widths[component] * random.normal()
      if (coordinate >= bounds.low && coordinate <= bounds.high) return coordinate
    }
  })
}
