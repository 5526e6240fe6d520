/** Declares the setting of networks that compute the distribution of an action's return, and makes such networks. */
import * as Schema from "effect/Schema"
import { bounds } from "../../base/config/bounds.ts"
import { bounded, intBetween, real, withDefault } from "../../base/config/fields.ts"
import { withoutForbidden } from "../../tensor/graph/distributions.ts"
import { constant, exp, logSoftmax, mean, mul, reshape, sum } from "../../tensor/graph/ops.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import { maskOf } from "./observations.ts"
import { type ActionHeadsOptions, actionHeads, type QNetwork } from "./qNetwork.ts"
import type { Weights } from "./trunk.ts"

/** The distribution by quantiles: `count` returns that are equally probable. */
export interface QuantilesOptions {
  readonly type: "quantiles"
  /** The number of quantiles. @default 200 */
  readonly count?: number
}

/** The distribution by categories: the probabilities of `count` returns from `min` to `max`, at equal distances. */
export interface CategoriesOptions {
  readonly type: "categories"
  /** The number of categories. @default 51 */
  readonly count?: number
  /** The smallest discounted return; lower returns count as this one. */
  readonly min: number
  /** The largest discounted return; higher returns count as this one. */
  readonly max: number
}

const most: number = bounds.atoms.most

const Quantiles = Schema.Struct({ type: Schema.Literal("quantiles"), count: withDefault(bounded("atoms"), 200) })

const CategoriesSetting = Schema.Struct({
  type: Schema.Literal("categories"),
  count: withDefault(intBetween(2, most), 51),
  min: real,
  max: real,
}).check(
  Schema.makeFilter(({ count, min, max }) => {
    if (min >= max) return [{ path: ["max"], issue: `Expected more than min, ${min}` }]
    // Networks compute in float32, in which no two categories may be the same number.
    const tooLarge = (
      [
        ["min", min],
        ["max", max],
      ] as const
    ).find(([, bound]) => !Number.isFinite(Math.fround(bound)))
    if (tooLarge !== undefined) return [{ path: [tooLarge[0]], issue: "Expected a number that float32 can hold" }]
    if (!Number.isFinite(Math.fround(max - min)))
      return [{ path: ["max"], issue: "Expected a distance from min that float32 can hold" }]
    const returns = Float32Array.from({ length: count }, (_, index) => min + (index * (max - min)) / (count - 1))
    return returns.every((value, index) => index === 0 || value > returns[index - 1])
      ? []
      : [{ path: ["max"], issue: `Expected ${count} different numbers in float32 from min, ${min}` }]
  }),
)

/** The Schema of the setting. */
export const ValueDistribution = Schema.Union([Quantiles, CategoriesSetting])
export type ValueDistribution = typeof ValueDistribution.Type

/** The returns that categories stand for: `count` returns from `min` to `max`, at equal distances. */
export interface Categories {
  readonly count: number
  readonly min: number
  readonly max: number
}

/** Returns the returns that categories stand for, as a tensor of shape [count]. */
export const returnsOf = ({ count, min, max }: Categories): Tensor =>
  constant(
    Float32Array.from({ length: count }, (_, index) => min + (index * (max - min)) / (count - 1)),
    [count],
  )

/**
 * Computes the mean of each distribution, of shape [..., count] without the last axis: the mean of the quantiles, or,
 * for log probabilities of categories, Σ pᵢ zᵢ.
 *
 * @example
 * ```ts
 * expectedReturn({ type: "quantiles", count: 2 }, Graph.constant([1, 3], [1, 2])) // [2]
 * ```
 */
export const expectedReturn = (distribution: ValueDistribution, outputs: Tensor): Tensor =>
  distribution.type === "quantiles" ? mean(outputs, -1) : sum(mul(exp(outputs), returnsOf(distribution)), -1)

/** A network that computes the distribution of the return of each action. Its action values are the means. */
export interface DistributionalQNetwork extends QNetwork {
  /** Computes quantiles, or log probabilities of categories, of shape [rows, actions, count], for forbidden actions too. */
  readonly distributions: (weights: Weights, observations: Tensor) => Tensor
  /** Computes the values of actions from the result of `distributions` for the same observations. */
  readonly valuesOf: (distributions: Tensor, observations: Tensor) => Tensor
}

/**
 * Makes a distributional Q-network. It has the layers of `qNetwork`, but computes `count` numbers for each action; a
 * dueling network adds `count` numbers of the state to those of each action.
 *
 * @example
 * ```ts
 * const { observationSpace } = CartPole.env
 * const options = { ...networkConfig, observationSpace, actions: 2, dueling: true }
 * distributionalQNetwork(options, { type: "categories", count: 51, min: 0, max: 100 })
 * ```
 */
export const distributionalQNetwork = (
  options: ActionHeadsOptions,
  distribution: ValueDistribution,
): DistributionalQNetwork => {
  const heads = actionHeads(options, distribution.count)
  const { observationSpace, actions } = options
  const distributions: DistributionalQNetwork["distributions"] = (weights, observations) => {
    const outputs = reshape(heads.apply(weights, observations), [observations.shape[0], actions, distribution.count])
    return distribution.type === "quantiles" ? outputs : logSoftmax(outputs)
  }
  const valuesOf: DistributionalQNetwork["valuesOf"] = (outputs, observations) =>
    withoutForbidden(expectedReturn(distribution, outputs), maskOf(observationSpace, observations))
  return {
    parameters: heads.parameters,
    apply: (weights, observations) => valuesOf(distributions(weights, observations), observations),
    distributions,
    valuesOf,
  }
}
