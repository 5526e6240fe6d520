/**
 * Batches with observations and rewards brought to a common scale by statistics of what was seen so far.
 *
 * @example
 * ```ts
 * import { Batch, Normalise, Pendulum } from "effect-rl"
 *
 * const train = Normalise.rewards(Normalise.observations(Batch.make(Pendulum.env, 16)))
 * // Validation sees with the same eyes, and changes nothing:
 * const validation = Normalise.observations(Batch.make(Pendulum.env, 4), {
 *   moments: train.observationMoments,
 *   frozen: true,
 * })
 * ```
 */
import { clip as clipped, constant, mul, sub } from "../graph/ops.ts"
import type { Tensor } from "../graph/Tensor.ts"
import type { BatchEnv } from "./BatchEnv.ts"
import { EnvError } from "./EnvError.ts"
import { markResets, nestedRestore, nestedSnapshot } from "./internal/nested.ts"
import { make, type RunningMoments } from "./RunningMoments.ts"

export interface Options {
  /** Statistics to use, and to keep up to date unless frozen; fresh ones when left out. */
  readonly moments?: RunningMoments
  /** Uses the statistics without changing them. */
  readonly frozen?: boolean
  /** Results are cut off at ± this. 10 by default. */
  readonly clip?: number
  /** Added to the variance. 1e-8 by default. */
  readonly epsilon?: number
}

export interface NormalisedObservations {
  readonly observationMoments: RunningMoments
}

/**
 * Observations minus their running mean, by their running standard deviation. Every observation handed out by a reset
 * or a step counts once; the final ones of episodes are normalised too, but don't count, since no step follows them.
 */
export const observations = <B extends BatchEnv>(batch: B, options: Options = {}): B & NormalisedObservations => {
  const { frozen = false, clip = 10, epsilon = 1e-8 } = options
  const size = batch.observationSize
  const moments = options.moments ?? make(size)
  if (moments.size !== size) {
    const message = `${batch.id}: Normalise.observations: moments of ${moments.size} numbers for observations of ${size}`
    throw new EnvError({ env: batch.id, message })
  }
  const normalised = new Float32Array(batch.observations.length)
  const finals = new Float32Array(batch.observations.length)
  const factors = new Float64Array(size)

  const scale = (from: Float32Array, into: Float32Array, row: number): void => {
    for (let column = 0; column < size; column++) {
      const value = (from[row * size + column] - moments.mean[column]) * factors[column]
      into[row * size + column] = Math.min(Math.max(value, -clip), clip)
    }
  }

  const look = (mask?: Uint8Array): void => {
    if (!frozen) moments.update(batch.observations, mask)
    for (let column = 0; column < size; column++) factors[column] = 1 / Math.sqrt(moments.variance[column] + epsilon)
    for (let row = 0; row < batch.numEnvs; row++) {
      if (mask === undefined || mask[row] !== 0) scale(batch.observations, normalised, row)
    }
  }

  // Statistics that somebody else keeps up to date are theirs to restore.
  const own = { normalised, finals, ...(frozen ? {} : columnsOf("observationMoments", moments)) }
  return {
    ...batch,
    observationMoments: moments,
    observations: normalised,
    finalObservations: finals,
    reset: (seed, ...path) => {
      batch.reset(seed, ...path)
      look()
    },
    restart: (mask) => {
      batch.restart(mask)
      look(mask)
    },
    step: (actions) => {
      batch.step(actions)
      look()
      for (let row = 0; row < batch.numEnvs; row++) {
        if ((batch.terminated[row] | batch.truncated[row]) !== 0) scale(batch.finalObservations, finals, row)
      }
    },
    snapshot: () => nestedSnapshot(batch, own),
    restore: (saved) => nestedRestore(batch, own, saved),
  }
}

/** What `observations` does with statistics as they are now, as graph: for a policy that is to go without them. */
export const asGraph = (
  { mean, variance }: RunningMoments,
  { clip = 10, epsilon = 1e-8 }: Options = {},
): ((observations: Tensor) => Tensor) => {
  const scale = Float32Array.from(variance, (value) => 1 / Math.sqrt(value + epsilon))
  const centre = Float32Array.from(mean)
  return (observations) => clipped(mul(sub(observations, constant(centre)), constant(scale)), -clip, clip)
}

export interface RewardOptions extends Options {
  /** The agent's discount. 0.99 by default. */
  readonly gamma?: number
}

export interface NormalisedRewards {
  readonly returnMoments: RunningMoments
}

/**
 * Rewards by the running standard deviation of the discounted sum of rewards so far in each episode, which starts
 * anew when an episode ends. The mean is left where it is: taking it away would change what is worth doing.
 */
export const rewards = <B extends BatchEnv>(batch: B, options: RewardOptions = {}): B & NormalisedRewards => {
  const { frozen = false, clip = 10, epsilon = 1e-8, gamma = 0.99 } = options
  const moments = options.moments ?? make(1)
  const normalised = new Float32Array(batch.numEnvs)
  const returns = new Float64Array(batch.numEnvs)
  const resetting = new Uint8Array(batch.numEnvs)
  /** The envs whose reward is one: not those that were only reset. */
  const counted = new Uint8Array(batch.numEnvs)

  const step = (actions: Float32Array | Int32Array): void => {
    markResets(batch, resetting)
    batch.step(actions)
    for (let index = 0; index < batch.numEnvs; index++) {
      counted[index] = 1 - resetting[index]
      returns[index] = returns[index] * gamma + batch.rewards[index]
    }
    if (!frozen) moments.update(returns, counted)
    const factor = 1 / Math.sqrt(moments.variance[0] + epsilon)
    for (let index = 0; index < batch.numEnvs; index++) {
      normalised[index] = Math.min(Math.max(batch.rewards[index] * factor, -clip), clip)
      if ((batch.terminated[index] | batch.truncated[index]) !== 0) returns[index] = 0
    }
  }

  const own = { normalised, returns, ...(frozen ? {} : columnsOf("returnMoments", moments)) }
  return {
    ...batch,
    returnMoments: moments,
    rewards: normalised,
    reset: (seed, ...path) => {
      batch.reset(seed, ...path)
      normalised.fill(0)
      returns.fill(0)
    },
    restart: (mask) => {
      batch.restart(mask)
      for (let index = 0; index < batch.numEnvs; index++) {
        if (mask[index] === 0) continue
        normalised[index] = 0
        returns[index] = 0
      }
    },
    step,
    snapshot: () => nestedSnapshot(batch, own),
    restore: (saved) => nestedRestore(batch, own, saved),
  }
}

const columnsOf = (name: string, { mean, variance, count }: RunningMoments) => ({
  [`${name}.mean`]: mean,
  [`${name}.variance`]: variance,
  [`${name}.count`]: count,
})
