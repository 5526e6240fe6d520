/**
 * Wraps a batch so that its observations or rewards are normalised by running statistics, which each step updates.
 * `asGraph` adds the same normalisation of observations to an exported policy. Training and validation use it.
 *
 * @example
 * ```ts
 * import { Batch, Normalise, Pendulum } from "effect-rl"
 *
 * const train = Normalise.rewards(Normalise.observations(Batch.make(Pendulum.env, 16)))
 * // Validation uses the statistics of training, and doesn't update them:
 * const validation = Normalise.observations(Batch.make(Pendulum.env, 4), {
 *   moments: train.observationMoments,
 *   frozen: true,
 * })
 * ```
 */
import { Record } from "effect"
import { clip as clipped, constant, greater, mul, sub, where } from "../../tensor/graph/ops.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import type { AnyBatchEnv, Snapshot } from "./BatchEnv.ts"
import { invalid } from "../../base/EnvError.ts"
import { rewarding } from "./internal/mapped.ts"
import { afterwards, nestedRestore, nestedSnapshot } from "./internal/nested.ts"
import { wholeColumns } from "./internal/values.ts"
import { make, type RunningMoments } from "./RunningMoments.ts"
import { box, type RowSpace, type Space } from "./Space.ts"

export interface NormaliseOptions {
  /** The statistics to use, and to update unless frozen. Default: new ones. */
  readonly moments?: RunningMoments
  /**
   * For a game with several agents: the group number of each agent, in the order of its rows. Each group has its own
   * statistics. Default: all rows share one set.
   */
  readonly groups?: ReadonlyArray<number> | undefined
  /** Whether the statistics are used without being updated. Default: false. */
  readonly frozen?: boolean
  /** The limit of the results, which are clipped to −clip … clip. Default: 10. */
  readonly clip?: number
  /** The constant that is added to the variance before its square root is taken. Default: 1e-8. */
  readonly epsilon?: number
}

/** The default limit of normalised numbers. */
const usualClip = 10

/**
 * Returns the space of normalised observations. Its boxes have the bounds of the numbers that learners get, so that no network
 * scales bytes that are none any more.
 */
export const spaceOf = (space: RowSpace): RowSpace =>
  space._tag === "Masked" ? { ...space, space: normalisedSpace(space.space) } : normalisedSpace(space)

const normalisedSpace = (space: Space): Space => {
  if (space._tag === "Box") return box(-usualClip, usualClip, space.shape)
  if (space._tag === "Tuple") return { ...space, parts: space.parts.map(normalisedSpace) }
  return space._tag === "Dict" ? { ...space, parts: Record.map(space.parts, normalisedSpace) } : space
}

export interface NormalisedObservations {
  readonly observationMoments: RunningMoments
}

/**
 * Subtracts the running mean from observations and divides by the running standard deviation. Every observation of a
 * reset or a step is counted once. The final observations of episodes are normalised but not counted, since no step
 * follows them. Choices, switches and action masks stay as they are.
 */
export const observations = <B extends AnyBatchEnv>(
  batch: B,
  options: NormaliseOptions = {},
): B & NormalisedObservations => {
  const { frozen = false, clip = usualClip, epsilon = 1e-8 } = options
  const size = batch.observationSize
  const moments = options.moments ?? make(size, undefined, options.groups)
  const { groups } = moments
  // With a single group, skip the modulo that finds a row's group: it costs time in a loop over many rows.
  const isShared = groups.length === 1
  if (moments.size !== size) {
    throw invalid(batch.id, `Normalise.observations: moments of ${moments.size} numbers for observations of ${size}`)
  }
  const normalised = new Float32Array(batch.observations.length)
  const finals = new Float32Array(batch.observations.length)
  const factors = new Float64Array(moments.mean.length)
  const kept = wholeColumns(batch.observationSpace)

  const scale = (from: Float32Array, into: Float32Array, row: number): void => {
    const first = isShared ? 0 : groups[row % groups.length] * size
    for (let column = 0; column < size; column++) {
      const value = (from[row * size + column] - moments.mean[first + column]) * factors[first + column]
      into[row * size + column] = Math.min(Math.max(value, -clip), clip)
    }
    for (let index = 0; index < kept.length; index++) into[row * size + kept[index]] = from[row * size + kept[index]]
  }

  /** Updates the statistics and normalises the observations; with a mask, only those of envs whose entry is not 0. */
  const normalise = (mask?: Uint8Array): void => {
    if (!frozen) moments.update(batch.observations, mask)
    for (let at = 0; at < factors.length; at++) factors[at] = 1 / Math.sqrt(moments.variance[at] + epsilon)
    for (let row = 0; row < batch.numEnvs; row++) {
      if (mask === undefined || mask[row] !== 0) scale(batch.observations, normalised, row)
    }
  }

  const normaliseStep = (): void => {
    normalise()
    for (let row = 0; row < batch.numEnvs; row++) {
      if ((batch.terminated[row] | batch.truncated[row]) !== 0) scale(batch.finalObservations, finals, row)
    }
  }

  // Frozen statistics belong to another batch, the one that updates them, and are saved in the snapshot of that batch.
  const own = { normalised, finals, ...(frozen ? {} : columnsOf("observationMoments", moments)) }
  return {
    ...batch,
    observationMoments: moments,
    observations: normalised,
    finalObservations: finals,
    reset: (seed: number, ...path: ReadonlyArray<string | number>) => afterwards(batch.reset(seed, ...path), normalise),
    restart: (mask: Uint8Array) => afterwards(batch.restart(mask), () => normalise(mask)),
    step: (actions: Float32Array | Int32Array) => afterwards(batch.step(actions), normaliseStep),
    snapshot: () => nestedSnapshot(batch, own),
    restore: (saved: Snapshot) => nestedRestore(batch, own, saved),
  }
}

/** The numbers by which observations are normalised: (x − mean) · factor, clipped to −clip … clip. */
export interface Constants {
  readonly mean: Float64Array
  readonly factor: Float64Array
  readonly clip: number
  /** The columns of a row that stay as they are: choices, switches and action masks. */
  readonly kept: Int32Array
}

export interface ConstantsOptions extends Pick<NormaliseOptions, "clip" | "epsilon"> {
  /** The space of the batch's rows, whose real numbers are normalised. Default: a box. */
  readonly space?: RowSpace
}

/** Returns the numbers by which observations are normalised now, as a copy, for exports. */
export const constantsOf = (
  { mean, variance }: Pick<RunningMoments, "mean" | "variance">,
  { clip = usualClip, epsilon = 1e-8, space }: ConstantsOptions = {},
): Constants => ({
  mean: mean.slice(),
  factor: variance.map((value) => 1 / Math.sqrt(value + epsilon)),
  clip,
  kept: space === undefined ? new Int32Array(0) : wholeColumns(space),
})

/** Returns a function that normalises observations in the graph of an exported policy, by the current statistics. */
export const asGraph = (
  moments: Pick<RunningMoments, "mean" | "variance">,
  options?: ConstantsOptions,
): ((observations: Tensor) => Tensor) => {
  const { mean, factor, clip, kept } = constantsOf(moments, options)
  const scale = Float32Array.from(factor)
  const centre = Float32Array.from(mean)
  const isReal = new Float32Array(mean.length).fill(1)
  for (const column of kept) isReal[column] = 0
  return (observations) => {
    const normalised = clipped(mul(sub(observations, constant(centre)), constant(scale)), -clip, clip)
    return kept.length === 0 ? normalised : where(greater(constant(isReal), 0), normalised, observations)
  }
}

export interface RewardOptions extends NormaliseOptions {
  /** The discount factor of the agent, or one for each group. Default: 0.99. */
  readonly gamma?: number | ReadonlyArray<number>
}

export interface NormalisedRewards {
  readonly returnMoments: RunningMoments
}

/**
 * Divides rewards by the running standard deviation of the discounted sum of rewards, which starts at 0 in each
 * episode. The mean is kept: subtracting it would change which behaviour is best.
 */
export const rewards = <B extends AnyBatchEnv>(batch: B, options: RewardOptions = {}): B & NormalisedRewards => {
  const { frozen = false, clip = 10, epsilon = 1e-8, gamma = 0.99 } = options
  const moments = options.moments ?? make(1, undefined, options.groups)
  const { groups } = moments
  const isShared = groups.length === 1
  const groupOf = (row: number): number => (isShared ? 0 : groups[row % groups.length])
  const gammas = typeof gamma === "number" ? Array.from(moments.count, () => gamma) : gamma
  const factors = new Float64Array(moments.count.length)
  const normalised = new Float32Array(batch.numEnvs)
  const returns = new Float64Array(batch.numEnvs)
  /** Marks with 1 the envs whose reward counts, and with 0 those that the step only reset. */
  const counted = new Uint8Array(batch.numEnvs)

  const compute = (resetting: Uint8Array): void => {
    for (let index = 0; index < batch.numEnvs; index++) {
      counted[index] = 1 - resetting[index]
      returns[index] = returns[index] * gammas[groupOf(index)] + batch.rewards[index]
    }
    if (!frozen) moments.update(returns, counted)
    for (let group = 0; group < factors.length; group++)
      factors[group] = 1 / Math.sqrt(moments.variance[group] + epsilon)
    for (let index = 0; index < batch.numEnvs; index++) {
      const factor = factors[groupOf(index)]
      normalised[index] = Math.min(Math.max(batch.rewards[index] * factor, -clip), clip)
      if ((batch.terminated[index] | batch.truncated[index]) !== 0) returns[index] = 0
    }
  }

  const own = { normalised, returns, ...(frozen ? {} : columnsOf("returnMoments", moments)) }
  return {
    ...batch,
    returnMoments: moments,
    rewards: normalised,
    ...rewarding(batch, own, [normalised, returns], compute),
  }
}

const columnsOf = (name: string, { mean, variance, count }: RunningMoments) => ({
  [`${name}.mean`]: mean,
  [`${name}.variance`]: variance,
  [`${name}.count`]: count,
})
