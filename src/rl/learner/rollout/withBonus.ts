/**
 * Adds a bonus to the rewards of an on-policy algorithm after each rollout: for surprising transitions (Curiosity,
 * RND), or for transitions that resemble an expert's (GAIL).
 */
import { Effect } from "effect"
import { Backend } from "../../../tensor/backend/Backend.ts"
import type { AnyBatchEnv } from "../../env/BatchEnv.ts"
import { make as makeMoments, type RunningMoments } from "../../env/RunningMoments.ts"
import { wholeColumns } from "../../env/internal/values.ts"
import { isWhole, sizeOf } from "../../env/Space.ts"
import type { ProgramSpec } from "../../../tensor/graph/Program.ts"
import type { Tensor } from "../../../tensor/graph/Tensor.ts"
import type { Declarations, Weights } from "../../model/trunk.ts"
import { gae } from "../../returns/gae.ts"
import { stream } from "../../../base/rng/Rng.ts"
import type { Task } from "../Learner.ts"
import { type Arrays, type Batch, type Columns, type F32, f32 } from "../Batch.ts"
import { batchSpec } from "../batchProgram.ts"
import { type Steps, waitFor } from "../drive.ts"
import { build, netOf } from "../graphs.ts"
import { floatsOf, vectorsOf } from "../learnerState.ts"
import { randomActions } from "../exploration.ts"
import type { Experience, Feature, FeatureInput } from "./Experience.ts"
import { copy } from "./Rollout.ts"
import type { BaseColumns, Rollout } from "./RolloutData.ts"

/** Describes a reward that the learner itself computes for each transition, such as its surprise. */
export interface Bonus<C> {
  readonly parameters: Declarations
  /** The learning rate of `parameters` as a share of the common learning rate; 1 by default. */
  readonly learningRateShare?: number
  /** Weights that are drawn once and never learned. */
  readonly fixed?: Declarations
  /** Computes the surprise, one number for each row, such as the error of a prediction. */
  readonly surprise: (rows: BonusRows<C>) => Tensor
  /** Says whether the surprise is added to the env's reward, replaces it, or is a separate reward with its own critic. */
  readonly reward: AddedReward | ReplacedReward | SeparateReward<C>
}

/** The rows for which the surprise is computed, such as a minibatch. */
export interface BonusRows<C> {
  readonly batch: Batch<C>
  readonly weights: Weights
  readonly fixed: Weights
}

interface AddedReward {
  readonly kind: "added"
  /** The factor of the surprise. */
  readonly coefficient: number
}

/** The surprise replaces the env's rewards, which are not read. */
interface ReplacedReward {
  readonly kind: "replaced"
}

/**
 * A second stream of rewards, with its own critic and discount. The bonuses are divided by the standard deviation of
 * their discounted sums, so that a coefficient means the same in every env.
 */
interface SeparateReward<C> {
  readonly kind: "separate"
  readonly gamma: number
  readonly lambda: number
  /** The weight of the bonus' advantages in the sum that the policy learns from. */
  readonly coefficient: number
  /** The weight of the advantages of the env's rewards in that sum. */
  readonly extrinsicCoefficient: number
  /** Whether the returns of the bonus end with the episode. */
  readonly episodic: boolean
  /**
   * Returns the values that the bonus critic gives the rows, the observations after the last rows, and the final
   * observations of truncated episodes.
   */
  readonly critic: (rollout: Rollout<C>) => Readonly<Record<"values" | "lastValues" | "truncatedValues", Float32Array>>
  /** The share of rows from which the bonus learns; the column `predicted` is 1 in these rows. */
  readonly predictedShare: number
  /** The number of random steps of each env before the first rollout, for a first mean and variance of observations. */
  readonly warmUpSteps: number
}

/** The columns that a bonus can read. A column that is not read costs nothing. */
export type BonusColumns = {
  /** The observation after each step; where the episode ended, it is the final observation. */
  readonly nextObservations: F32
  /** The next observations with mean 0 and standard deviation 1, clipped to ±5; only a separate reward has this column. */
  readonly normalisedObservations: F32
  /** 1 in a random share of the rows, which the bonus learns from, else 0; only a separate reward has this column. */
  readonly predicted: F32
  /** The returns that the bonus' critic learns; only a separate reward has this column. */
  readonly bonusTargets: F32
}

/**
 * Adds a bonus to an experience. The algorithm's own loss must train the bonus' parameters, if it has any.
 *
 * @example
 * ```ts
 * const plain = Learner.experience({ name: "counting", task, actor: network, steps: 5, returns: () => {} })
 * withBonus(plain, {
 *   parameters: {},
 *   // How far the last action went: the mean squared change of the observation.
 *   surprise: ({ batch }) => Graph.mean(Graph.square(Graph.sub(batch.nextObservations, batch.observations)), 1),
 *   reward: { kind: "added", coefficient: 0.1 },
 * })
 * ```
 */
export const withBonus = <C extends BaseColumns & Columns>(
  experience: Experience<C>,
  bonus: Bonus<C & BonusColumns>,
): Experience<C & BonusColumns> => {
  const { parameters, learningRateShare = 1, fixed = {} } = bonus
  const size = sizeOf(experience.task.observationSpace)
  const shares = Object.fromEntries(Object.keys(parameters).map((name) => [name, learningRateShare]))
  const columns: BonusColumns = {
    nextObservations: f32(size),
    normalisedObservations: f32(size),
    predicted: f32(),
    bonusTargets: f32(),
  }
  return {
    ...experience,
    columns: { ...experience.columns, ...columns },
    parameters: { ...experience.parameters, ...parameters },
    fixed: { ...experience.fixed, ...fixed },
    learningRateShares: { ...experience.learningRateShares, ...(learningRateShare === 1 ? {} : shares) },
    features: [...experience.features, bonusFeature(bonus)],
  }
}

/** A bonus whose rewards a learner computes after each rollout. */
interface RunningBonus<C> {
  readonly task: Task
  readonly rollout: Rollout<C>
  readonly columns: Arrays<BonusColumns & BaseColumns>
  /** The surprise of each row of the last rollout. */
  readonly surprises: Float32Array
  /** The mean and variance of the observations, and the columns of choices, switches and masks, which are not normalised. */
  readonly observationMoments: RunningMoments
  readonly wholes: Int32Array
  /** The discounted sum of each env's bonuses so far, and the mean and variance of those sums over all rollouts. */
  readonly returns: Float64Array
  readonly returnMoments: RunningMoments
  /** The advantages of a separate reward. */
  readonly advantages: Float32Array
}

const runningBonusOf = <C extends BonusColumns & BaseColumns & Columns>(
  { task, rollout }: FeatureInput<C>,
  surprises: Float32Array,
): RunningBonus<C> => ({
  task,
  rollout,
  columns: rollout.columns,
  surprises,
  observationMoments: makeMoments(sizeOf(task.observationSpace)),
  wholes: wholeColumns(task.observationSpace),
  returns: new Float64Array(rollout.numEnvs),
  returnMoments: makeMoments(1),
  advantages: new Float32Array(rollout.steps * rollout.numEnvs),
})

/** Describes the program that computes the surprise of all rows of a rollout. */
const bonusSpec = <C extends BonusColumns & BaseColumns & Columns>(
  { name, columns, parameters, fixed, rollout }: FeatureInput<C>,
  surprise: Bonus<C>["surprise"],
): ProgramSpec =>
  batchSpec({
    name: `${name}.bonus`,
    columns,
    sequences: rollout.steps * rollout.numEnvs,
    build: ({ batch }) => {
      const net = netOf(parameters, "theta")
      const constants = netOf(fixed, "fixed")
      return {
        states: {
          theta: { tensor: net.theta },
          ...(fixed.size > 0 ? { fixed: { tensor: constants.theta } } : {}),
        },
        outputs: { surprise: surprise({ batch, weights: net.weights, fixed: constants.weights }) },
      }
    },
  })

/**
 * Makes the feature that computes the bonus. After a rollout, one program computes the surprise of all rows. The surprise is
 * then added to the rewards, or replaces them, or gives its own advantages, which are added to those of the env's rewards.
 */
const bonusFeature =
  <C extends BonusColumns & BaseColumns & Columns>({ surprise, reward }: Bonus<C>): Feature<C> =>
  (input) =>
    Effect.gen(function* () {
      const { task, fixed, rollout, updates } = input
      const spec = yield* build(() => bonusSpec(input, surprise))
      const { compile } = yield* Backend
      const program = yield* compile(spec)
      const bonus = runningBonusOf(input, floatsOf(program.results, "surprise"))
      const arrays: Readonly<Record<string, Float32Array | Int32Array>> = rollout.columns
      const saved = savedPartOf(bonus)
      let mean = 0
      return {
        program,
        initialise: () => {
          const constants = fixed.initialise(stream(task.seed, "fixed"))
          const readers = fixed.size === 0 ? [] : [...updates, program]
          return Effect.forEach(readers, (reader) => reader.write("fixed", constants), { discard: true })
        },
        beforeFirstRollout: function* (envs) {
          if (reward.kind !== "separate") return
          yield* observeRandomSteps(envs, task, reward.warmUpSteps, bonus.observationMoments)
        },
        afterStep: (envs, t) => keepNext(bonus, envs, t),
        beforeReturns: function* (iteration) {
          if (reward.kind === "separate") prepareSeparate(bonus, reward, iteration)
          for (const key of Object.keys(spec.inputs)) program.feeds[key].set(arrays[key])
          yield program
          mean = meanSurprise(bonus.surprises)
          giveRewards(bonus, reward)
        },
        afterReturns: () => {
          if (reward.kind === "separate") addAdvantages(bonus, reward)
        },
        metrics: () => ({ "charts/intrinsic_reward": mean }),
        state: Effect.sync(() => ({ learner: saved.state() })),
        restore: (files) => files.use("learner", saved.restore),
      }
    })

/** Returns the vectors of a bonus that are saved in a checkpoint. */
const savedPartOf = <C>({ returns, observationMoments, returnMoments }: RunningBonus<C>) =>
  vectorsOf({
    "bonus.returns": returns,
    "bonus.mean": observationMoments.mean,
    "bonus.variance": observationMoments.variance,
    "bonus.count": observationMoments.count,
    "bonus.return.mean": returnMoments.mean,
    "bonus.return.variance": returnMoments.variance,
    "bonus.return.count": returnMoments.count,
  })

/** Stores the observations after step t; if an episode ended, its final observation. */
const keepNext = <C>({ columns, rollout }: RunningBonus<C>, envs: AnyBatchEnv, t: number): void => {
  const size = envs.observationSize
  for (let env = 0; env < rollout.numEnvs; env++) {
    const ended = (envs.terminated[env] | envs.truncated[env]) !== 0
    const next = ended ? envs.finalObservations : envs.observations
    copy(next, env * size, columns.nextObservations, (t * rollout.numEnvs + env) * size, size)
  }
}

/** Fills the columns that only a separate reward has: normalised observations, and the rows that the bonus learns from. */
const prepareSeparate = <C>(bonus: RunningBonus<C>, reward: SeparateReward<C>, iteration: number): void => {
  const { task, columns, observationMoments, wholes } = bonus
  const { nextObservations, normalisedObservations, predicted } = columns
  observationMoments.update(nextObservations)
  normalise(nextObservations, observationMoments, normalisedObservations)
  keepColumns(nextObservations, wholes, normalisedObservations, observationMoments.size)
  stream(task.seed, "bonus", iteration).fillUniform(predicted)
  for (let row = 0; row < predicted.length; row++) predicted[row] = predicted[row] < reward.predictedShare ? 1 : 0
}

const meanSurprise = (surprises: Float32Array): number => {
  let mean = 0
  for (let row = 0; row < surprises.length; row++) mean += surprises[row] / surprises.length
  return mean
}

/** Changes the rewards of the rollout, or estimates the advantages of the bonus as a reward of its own. */
const giveRewards = <C>(bonus: RunningBonus<C>, reward: Bonus<C>["reward"]): void => {
  const { surprises } = bonus
  const { rewards } = bonus.rollout
  if (reward.kind === "separate") estimateSeparately(bonus, reward)
  else if (reward.kind === "replaced") rewards.set(surprises)
  else for (let row = 0; row < rewards.length; row++) rewards[row] += reward.coefficient * surprises[row]
}

const estimateSeparately = <C>(
  bonus: RunningBonus<C>,
  { gamma, lambda, episodic, critic }: SeparateReward<C>,
): void => {
  const { rollout, columns, surprises, returns, returnMoments } = bonus
  const { numEnvs, steps } = rollout
  const { truncatedValues, ...values } = critic(rollout)
  for (let t = 0; t < steps; t++) {
    for (let env = 0; env < numEnvs; env++) returns[env] = returns[env] * gamma + surprises[t * numEnvs + env]
    returnMoments.update(returns)
  }
  // Divided by the standard deviation of their discounted sums, bonuses have a similar scale in every env.
  const scale = 1 / Math.sqrt(returnMoments.variance[0] + 1e-8)
  gae({
    rewards: surprises.map((surprise) => surprise * scale),
    ...values,
    terminated: episodic ? rollout.terminated : new Uint8Array(steps * numEnvs),
    ...(episodic ? { truncated: rollout.truncated, truncatedValues } : {}),
    gamma,
    lambda,
    out: bonus.advantages,
    targets: columns.bonusTargets,
  })
}

/** Adds the advantages of the bonus to those of the env's rewards. */
const addAdvantages = <C>(bonus: RunningBonus<C>, { extrinsicCoefficient, coefficient }: SeparateReward<C>): void => {
  const { advantages } = bonus.columns
  for (let row = 0; row < advantages.length; row++) {
    advantages[row] = extrinsicCoefficient * advantages[row] + coefficient * bonus.advantages[row]
  }
}

/** Takes random steps in all envs, adds the observations to `moments` (mean and variance), and undoes these steps. */
const observeRandomSteps = function* (
  envs: AnyBatchEnv,
  task: Task,
  steps: number,
  moments: RunningMoments,
): Steps<void> {
  if (steps === 0) return
  const before = envs.snapshot()
  const random = stream(task.seed, "warm-up")
  const size = task.numEnvs * envs.actionSize
  const actions = isWhole(task.actionSpace) ? new Int32Array(size) : new Float32Array(size)
  for (let step = 0; step < steps; step++) {
    randomActions(task, envs.observations, random, actions)
    const wait = envs.step(actions)
    if (wait !== undefined) yield waitFor(wait)
    moments.update(envs.observations)
  }
  const wait = envs.restore(before)
  if (wait !== undefined) yield waitFor(wait)
}

/** The bound to which normalised observations are clipped. */
const bound = 5

/** Normalises observations to (x − mean) / √(variance + 1e-8), clipped to ±5. */
const normalise = (observations: Float32Array, { mean, variance, size }: RunningMoments, out: Float32Array): void => {
  for (let column = 0; column < size; column++) {
    const scale = 1 / Math.sqrt(variance[column] + 1e-8)
    for (let at = column; at < observations.length; at += size) {
      out[at] = Math.min(Math.max((observations[at] - mean[column]) * scale, -bound), bound)
    }
  }
}

/** Copies the columns of choices, switches and masks as they are. */
const keepColumns = (from: Float32Array, columns: Int32Array, into: Float32Array, size: number): void => {
  for (const column of columns) {
    for (let at = column; at < from.length; at += size) into[at] = from[at]
  }
}
