/**
 * Compares algorithms over several envs as Agarwal et al. (2021, arXiv:2108.13264) recommend: by the interquartile mean of
 * normalised scores with its stratified bootstrap interval, by performance profiles, and by the probability of improvement.
 */
import { interquartileMean, stratifiedBootstrap } from "../../src/base/statistics/resampling.ts"
import { type Estimate, improvement, scaledTogether } from "../../src/base/statistics/unpaired.ts"
import type { Group } from "./rows.ts"
import { type ScoreResult, scoreOf } from "./ScoreResult.ts"

/** The normalised scores of an algorithm: a list for each env of the group, with a score for each training. */
export interface AlgorithmScores {
  readonly algorithm: string
  readonly scores: ReadonlyArray<ReadonlyArray<number>>
}

/** A value with its 95 % interval. */
interface WithInterval {
  readonly value: number
  readonly low: number
  readonly high: number
}

interface ProfilePoint extends WithInterval {
  /** The normalised score that a training must exceed to count. */
  readonly threshold: number
}

/** The chance that a training of the algorithm `better` scores higher than one of `than` in the same env. */
interface Improvement {
  readonly better: string
  readonly than: string
  readonly chance: Estimate
}

export interface GroupComparison {
  readonly group: Group
  readonly algorithms: ReadonlyArray<AlgorithmScores & { readonly mean: WithInterval }>
  readonly improvements: ReadonlyArray<Improvement>
}

/** An interval needs at least this many trainings in each env. */
const fewestRuns = 2

/** The thresholds of profiles: 0, 0.05 … 1. */
const thresholds = Array.from({ length: 21 }, (_, index) => index / 20)

/**
 * Maps scores linearly in each env, so that the lowest of all algorithms' trainings is 0 and the highest 1; all are 0.5 if they
 * are equal.
 */
export const normalisedScores = (all: ReadonlyArray<AlgorithmScores>): ReadonlyArray<AlgorithmScores> => {
  const envs = Array.from(all[0]?.scores.keys() ?? [])
  const scaled = envs.map((env) => scaledTogether(all.map(({ scores }) => scores[env])))
  return all.map(({ algorithm }, index) => ({ algorithm, scores: scaled.map((byAlgorithm) => byAlgorithm[index]) }))
}

/** Estimates a statistic with its stratified bootstrap interval. */
const estimated = (
  scores: ReadonlyArray<ReadonlyArray<number>>,
  statistic: (all: ReadonlyArray<number>) => number,
): WithInterval => {
  const [low, high] = stratifiedBootstrap(scores, (sampled) => statistic(sampled.flat()))
  return { value: statistic(scores.flat()), low, high }
}

/** Computes the share of an algorithm's trainings, over all envs, that score above each threshold. */
export const profileOf = (scores: ReadonlyArray<ReadonlyArray<number>>): ReadonlyArray<ProfilePoint> =>
  thresholds.map((threshold) => ({
    threshold,
    ...estimated(scores, (all) => all.filter((score) => score > threshold).length / all.length),
  }))

/** Compares two algorithms whose scores have the same envs. */
const improvementOf = (one: AlgorithmScores, other: AlgorithmScores): Improvement => ({
  better: one.algorithm,
  than: other.algorithm,
  chance: improvement(one.scores.map((right, env) => ({ left: other.scores[env], right }))),
})

/**
 * Compares the algorithms of a group that have at least two trainings in each of its envs. Undefined if fewer than two have.
 */
export const compareGroup = (group: Group, results: ReadonlyArray<ScoreResult>): GroupComparison | undefined => {
  const own = results.filter(({ trainer }) => trainer === "effect-rl")
  const scoresIn = (algorithm: string, env: string): ReadonlyArray<number> =>
    own.filter((result) => result.algorithm === algorithm && result.env === env).map(scoreOf)
  const trained = group.algorithms
    .map((algorithm) => ({ algorithm, scores: group.envs.map((env) => scoresIn(algorithm, env)) }))
    .filter(({ scores }) => scores.every(({ length }) => length >= fewestRuns))
  if (trained.length < 2) return undefined
  const normalised = normalisedScores(trained)
  return {
    group,
    algorithms: normalised.map((one) => ({ ...one, mean: estimated(one.scores, interquartileMean) })),
    improvements: normalised.flatMap((one, index) =>
      normalised.slice(index + 1).map((other) => improvementOf(one, other)),
    ),
  }
}
