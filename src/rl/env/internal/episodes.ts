/**
 * Implements auto-reset for a batch of envs: `same-step` starts the next episode in the step that ends one, `next-step`
 * starts it in the following step, whose action is ignored and whose reward is 0, and `disabled` waits for `restart`.
 * Also applies the time limit, gives each episode its own random stream, and takes snapshots. The built-in envs and
 * `Batch.make` call `batchOf` with a kernel, which holds the states of the envs.
 */
import { EnvError, invalid } from "../../../base/EnvError.ts"
import type { Stream } from "../../../base/rng/Rng.ts"
import type { BatchArrays, BatchEnv, EnvBatchOptions, Snapshot } from "../BatchEnv.ts"
import { type Env, rowSpaceOf } from "../Env.ts"
import { sizeOf } from "../Space.ts"
import { type ActionCheck, actionCheckOf, actionProblem } from "./actionCheck.ts"
import { type EpisodeSeeds, originOf, restoreSeed, saveSeed, seedsFor, setSeed } from "./episodeSeeds.ts"
import { stepsTaken } from "./stepsTaken.ts"

/** The arrays that a kernel writes, and the progress of each env. */
export interface KernelArrays extends Omit<BatchArrays, "finalObservations"> {
  readonly diverged: Uint8Array
  readonly numEnvs: number
  /** The number of each env's current episode, from 0. */
  readonly episodes: Int32Array
  /** The number of steps in each env's current episode. */
  readonly elapsed: Int32Array
}

/** The part of a batch that holds and steps the states; `batchOf` adds the rest, such as resets. */
export interface EnvKernel {
  /** Starts an episode of an env and writes its first observation. */
  readonly start: (index: number, random: Stream) => void
  /**
   * Steps each env whose `waiting` is 0 (1 means that its episode has ended): writes its observation, reward and
   * `terminated`, and sets `truncated` (0 before the call) if the env itself cuts the episode off.
   */
  readonly advance: (actions: Float32Array | Int32Array, waiting: Uint8Array) => void
  /** Returns copies of the states, as typed arrays. */
  readonly save: () => Snapshot
  /** Copies saved states back; `streamOf` returns the random stream of an env's current episode. */
  readonly load: (snapshot: Snapshot, streamOf: (index: number) => Stream) => void
  /** Returns the state of one env, for rendering. */
  readonly stateAt: (index: number) => unknown
}

/** Stands for no time limit: the largest number that `elapsed`, an Int32Array, can count to. */
export const noLimit = 0x7fffffff

/** The state of a batch: its arrays, and the progress of each env. */
interface BatchEpisodes extends KernelArrays, Omit<BatchArrays, "diverged"> {
  readonly env: Env
  readonly observationSize: number
  readonly autoReset: EnvBatchOptions["autoReset"]
  /** The number of steps after which an episode is truncated. */
  readonly limit: number
  readonly actionCheck: ActionCheck
  readonly seeds: EpisodeSeeds
  /** Marks with 1 the envs whose episode has ended and whose next one has not begun. */
  readonly waiting: Uint8Array
  readonly kernel: EnvKernel
}

/** Makes the state before the first reset. */
const episodesOf = (
  env: Env,
  numEnvs: number,
  { autoReset, firstIndex, maxSteps, arrays }: EnvBatchOptions,
  kernelOf: (columns: KernelArrays) => EnvKernel,
): BatchEpisodes => {
  const observationSize = sizeOf(rowSpaceOf(env))
  const results = arraysFor(numEnvs, observationSize, arrays)
  const { observations, finalObservations, rewards, terminated, truncated } = results
  const { diverged = new Uint8Array(numEnvs) } = results
  const episodes = new Int32Array(numEnvs)
  const elapsed = new Int32Array(numEnvs)
  const columns = { numEnvs, observations, rewards, terminated, truncated, diverged, episodes, elapsed }
  return {
    ...columns,
    finalObservations,
    env,
    observationSize,
    autoReset,
    limit: maxSteps ?? noLimit,
    actionCheck: actionCheckOf(env),
    seeds: seedsFor(numEnvs, firstIndex),
    waiting: new Uint8Array(numEnvs),
    kernel: kernelOf(columns),
  }
}

/** Makes a batch of an env. `kernelOf` makes the kernel, which writes its results to the arrays that it receives. */
export const batchOf = (
  env: Env,
  numEnvs: number,
  options: EnvBatchOptions,
  kernelOf: (columns: KernelArrays) => EnvKernel,
): BatchEnv => {
  const batch = episodesOf(env, numEnvs, options, kernelOf)
  const { kernel, observationSize, observations, rewards, terminated, truncated, diverged, finalObservations } = batch
  return {
    id: env.id,
    numEnvs,
    autoReset: batch.autoReset,
    observationSpace: rowSpaceOf(env),
    actionSpace: env.actionSpace,
    observationSize,
    actionSize: batch.actionCheck.actionSize,
    observations,
    rewards,
    terminated,
    truncated,
    diverged,
    finalObservations,
    reset: (seed, ...path) => reset(batch, seed, path),
    restart: (mask) => restart(batch, mask),
    step: stepOf(batch),
    stateAt: kernel.stateAt,
    ...(env.renderText && { renderText: (index: number) => env.renderText?.(kernel.stateAt(index)) ?? "" }),
    ...(env.renderSvg && { renderSvg: (index: number) => env.renderSvg?.(kernel.stateAt(index)) ?? "" }),
    snapshot: () => snapshotOf(batch),
    restore: (saved) => restore(batch, saved),
  }
}

/** Begins the current episode of an env. */
const begin = ({ kernel, seeds, episodes, elapsed, waiting }: BatchEpisodes, index: number): void => {
  elapsed[index] = 0
  waiting[index] = 0
  kernel.start(index, seeds.parents[index].child(episodes[index]))
}

/** Ends the current episode of an env: keeps its last observation, and resets the env or marks it as waiting. */
const end = (batch: BatchEpisodes, index: number): void => {
  const { observationSize, observations, finalObservations } = batch
  for (let at = index * observationSize; at < (index + 1) * observationSize; at++) {
    finalObservations[at] = observations[at]
  }
  if (batch.autoReset === "same-step") {
    batch.episodes[index]++
    begin(batch, index)
  } else {
    batch.waiting[index] = 1
  }
}

/** Returns why a step can't be taken; undefined if it can. */
const stepProblem = (batch: BatchEpisodes, actions: Float32Array | Int32Array): EnvError | undefined => {
  const { env, numEnvs, autoReset, seeds, actionCheck, observations, waiting } = batch
  if (seeds.seed === undefined) return invalid(env.id, "step before reset")
  if (autoReset === "disabled") {
    const ended = waiting.indexOf(1)
    const problem = "its episode has ended and auto-reset is disabled: restart it first"
    if (ended >= 0) return errorInStep(batch, ended, problem)
  }
  const { actionSize } = actionCheck
  if (actions.length !== numEnvs * actionSize) return wrongLength(env.id, numEnvs, actionSize, actions)
  const wrong = actionProblem(actionCheck, observations, actions, waiting)
  return wrong && errorInStep(batch, wrong.index, wrong.problem)
}

const errorInStep = ({ env, episodes, elapsed }: BatchEpisodes, index: number, message: string): EnvError =>
  errorAt(env.id, index, episodes[index], elapsed[index] + 1, message)

/**
 * Makes the function that takes a step of all envs, or throws an `EnvError`. It keeps the arrays in local variables:
 * reading them from the state would make a step 5 % slower.
 */
const stepOf = (batch: BatchEpisodes): BatchEnv["step"] => {
  const { kernel, numEnvs, limit, rewards, terminated, truncated, diverged, episodes, elapsed, waiting } = batch
  return (actions) => {
    const problem = stepProblem(batch, actions)
    if (problem !== undefined) throw problem
    truncated.fill(0)
    diverged.fill(0)
    stepsTaken[0]++
    kernel.advance(actions, waiting)
    for (let index = 0; index < numEnvs; index++) {
      // Only with `next-step`: the episode ended in the previous step, so this step only starts the next one.
      if (waiting[index] !== 0) {
        rewards[index] = 0
        terminated[index] = 0
        episodes[index]++
        begin(batch, index)
        continue
      }
      const steps = elapsed[index] + 1
      elapsed[index] = steps
      if (steps >= limit) truncated[index] = 1
      if ((terminated[index] | truncated[index]) !== 0) end(batch, index)
    }
  }
}

const clear = ({ rewards, terminated, truncated }: BatchEpisodes, index: number): void => {
  rewards[index] = 0
  terminated[index] = 0
  truncated[index] = 0
}

/** Starts the first episode of all envs. */
const reset = (batch: BatchEpisodes, seed: number, path: ReadonlyArray<string | number>): void => {
  setSeed(batch.seeds, seed, path)
  batch.episodes.fill(0)
  for (let index = 0; index < batch.numEnvs; index++) {
    clear(batch, index)
    begin(batch, index)
  }
}

/** Abandons the episodes of the envs whose `mask` is 1, and starts their next ones. */
const restart = (batch: BatchEpisodes, mask: Uint8Array): void => {
  const { env, numEnvs, seeds, episodes } = batch
  if (seeds.seed === undefined) throw invalid(env.id, "restart before reset")
  if (mask.length !== numEnvs) throw invalid(env.id, `restart got a mask of ${mask.length} for ${numEnvs} envs`)
  for (let index = 0; index < numEnvs; index++) {
    if (mask[index] === 0) continue
    clear(batch, index)
    episodes[index]++
    begin(batch, index)
  }
}

/** Returns the arrays that a snapshot copies. */
const savedColumns = ({
  observations,
  finalObservations,
  rewards,
  terminated,
  truncated,
  episodes,
  elapsed,
  waiting,
}: BatchEpisodes) =>
  Object.entries({ observations, finalObservations, rewards, terminated, truncated, episodes, elapsed, waiting })

const snapshotOf = (batch: BatchEpisodes): Snapshot => {
  const copies = savedColumns(batch).map(([key, column]) => [key, column.slice()] as const)
  const states = batch.seeds.seed === undefined ? {} : batch.kernel.save()
  return { origin: saveSeed(batch.seeds), ...Object.fromEntries(copies), ...states }
}

const restore = (batch: BatchEpisodes, saved: Snapshot): void => {
  const { env, seeds, episodes, kernel } = batch
  const origin = originOf(env.id, saved)
  for (const [key, column] of savedColumns(batch)) copyFrom(env.id, saved, key, column)
  if (!restoreSeed(seeds, origin)) return
  kernel.load(saved, (index) => seeds.parents[index].child(episodes[index]))
}

/**
 * Returns the caller's arrays. Makes new ones if they don't fit, as inside a wrapper that changes the observation's
 * size.
 */
export const arraysFor = (numEnvs: number, size: number, arrays: BatchArrays | undefined): BatchArrays =>
  arrays !== undefined && arrays.observations.length === numEnvs * size && arrays.rewards.length === numEnvs
    ? arrays
    : {
        observations: new Float32Array(numEnvs * size),
        finalObservations: new Float32Array(numEnvs * size),
        rewards: new Float32Array(numEnvs),
        terminated: new Uint8Array(numEnvs),
        truncated: new Uint8Array(numEnvs),
      }

export const wrongLength = (
  env: string,
  numEnvs: number,
  actionSize: number,
  { length }: ArrayLike<number>,
): EnvError =>
  invalid(
    env,
    `step: expected ${numEnvs * actionSize} numbers as actions (${numEnvs} envs × ${actionSize}), found ${length}`,
  )

/** Makes an error whose message begins with env, episode and step. Step 0 is the reset. */
export const errorAt = (
  env: string,
  index: number,
  episode: number,
  step: number,
  message: string,
  userStack?: string,
): EnvError =>
  new EnvError({
    env,
    index,
    episode,
    step,
    message: `${env}: env ${index}, episode ${episode}, ${step === 0 ? "reset" : `step ${step}`}: ${message}`,
    ...(userStack === undefined ? {} : { userStack }),
  })

/** Copies the array `key` of a snapshot to `into`; if it is missing or of another length or type, throws. */
export const copyFrom = (
  env: string,
  saved: Snapshot,
  key: string,
  into: Float64Array | Float32Array | Int32Array | Uint8Array,
): void => {
  const column = saved[key]
  if (column === undefined || column.length !== into.length || column.constructor !== into.constructor) {
    const found = column === undefined ? "nothing" : `${column.length} × ${column.constructor.name}`
    const expected = `${into.length} × ${into.constructor.name}`
    throw invalid(env, `the snapshot doesn't fit: "${key}" should be ${expected}, found ${found}`)
  }
  into.set(column)
}

/**
 * Returns a list for the random streams of a batch's envs, with functions that save and restore the streams' positions.
 */
export const streamsOf = (env: string, numEnvs: number) => {
  const streams: Array<Stream> = []
  return {
    streams,
    save: () => ({ positions: Float64Array.from(streams, ({ position }) => position) }),
    load: (saved: Snapshot, streamOf: (index: number) => Stream): void => {
      const positions = new Float64Array(numEnvs)
      copyFrom(env, saved, "positions", positions)
      for (let index = 0; index < numEnvs; index++) {
        streams[index] = streamOf(index)
        streams[index].position = positions[index]
      }
    },
  }
}
