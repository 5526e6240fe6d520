/**
 * Estimates how much each parameter matters, with PED-ANOVA (Watanabe, Bansal and Hutter 2023, arXiv:2304.10255): it compares
 * the density of a parameter in the best trials with its density in all trials. A parameter does not matter if its values in
 * the best trials are distributed as in all trials. The measure uses only ranks, so it can also use pruned and failed trials.
 */
import { exp } from "../../base/rng/Elementary.ts"
import { logDensity, mixtureOf, type Mixture } from "./parzen.ts"
import { boundsOf, type Parameter, type SearchSpace } from "./Space.ts"
import { type MetricDirection, type EndedTrial, ranked } from "./Trial.ts"

/** The importance of a parameter; the shares of all parameters add up to 1. */
export interface Importance {
  readonly path: string
  readonly share: number
}

/** The share of all trials that count as the best. */
const bestShare = 0.25
/** The smallest number of trials with a parameter from which the parameter's importance is estimated. */
const leastTrials = 8
/** The number of points at which the two densities of a number parameter are compared. */
const points = 100

/** Returns the importance of each parameter, the most important first; an empty list if there are too few trials. */
export const importances = (
  space: SearchSpace,
  trials: ReadonlyArray<EndedTrial>,
  direction: MetricDirection,
): ReadonlyArray<Importance> => {
  const order = ranked(trials, direction)
  const distances = space.flatMap((parameter) => {
    const having = order.filter(({ params }) => Object.hasOwn(params, parameter.path))
    if (having.length < leastTrials) return []
    const best = having.slice(0, Math.ceil(bestShare * having.length))
    const [densityOfBest, densityOfAll] = [best, having].map((some) =>
      mixtureOf(
        [parameter],
        some.toSorted((one, other) => one.trial - other.trial).map(({ params }) => params),
        {
          priorWeight: 1,
          width: "dimensions",
        },
      ),
    )
    return [{ path: parameter.path, distance: distanceOf(parameter, densityOfBest, densityOfAll) }]
  })
  const total = distances.reduce((sum, { distance }) => sum + distance, 0)
  return distances
    .map(({ path, distance }) => ({ path, share: total > 0 ? distance / total : 0 }))
    .sort((one, other) => other.share - one.share)
}

/** Computes Pearson's divergence of two densities, the mean over x of all trials of (best(x) / all(x) − 1)². */
const distanceOf = (parameter: Parameter, best: Mixture, all: Mixture): number => {
  let sum = 0
  let total = 0
  for (const coordinate of coordinatesOf(parameter)) {
    const density = exp(logDensity(all, [coordinate]))
    const ratio = exp(logDensity(best, [coordinate])) / density
    sum += density * (ratio - 1) * (ratio - 1)
    total += density
  }
  return sum / total
}

/** Returns the indices of a choice, or points that are spaced evenly in the range of a number. */
const coordinatesOf = (parameter: Parameter): ReadonlyArray<number> => {
  if (parameter._tag === "Choice") return parameter.values.map((_, index) => index)
  const { low, high } = boundsOf(parameter)
  return Array.from({ length: points }, (_, at) => low + ((at + 0.5) / points) * (high - low))
}
