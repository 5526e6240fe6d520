/** Holds the state of a batch whose envs run elsewhere, and sends their commands to the kernel. */
import { Effect } from "effect"
import type { EnvError } from "../../../base/EnvError.ts"
import type { BatchArrays, EnvBatchOptions } from "../BatchEnv.ts"
import { type Env, rowSpaceOf } from "../Env.ts"
import { maskSizeOf, optionsOf, sizeOf } from "../Space.ts"
import { type ActionCheck, actionCheckOf } from "./actionCheck.ts"
import type { AsyncColumns, AsyncKernel } from "./asyncKernel.ts"
import { type EpisodeSeeds, seedsFor } from "./episodeSeeds.ts"
import { arraysFor, noLimit } from "./episodes.ts"
import { rowsOfGame } from "./games.ts"
import { givenMaskWriter } from "./rows.ts"
import { stepsTaken } from "./stepsTaken.ts"

/** Keeps the actions of the current episode of one env. */
class Actions {
  private taken: Float32Array | Int32Array
  private readonly size: number

  constructor(isDiscrete: boolean, size: number) {
    this.taken = isDiscrete ? new Int32Array(16 * size) : new Float32Array(16 * size)
    this.size = size
  }

  /** Stores the action of the step with this number, from 0; `from` is the index of its first number in `actions`. */
  put(step: number, actions: ArrayLike<number>, from: number): void {
    const at = step * this.size
    if (at + this.size > this.taken.length) {
      const larger = this.taken instanceof Int32Array ? Int32Array : Float32Array
      const before = this.taken
      this.taken = new larger(2 * before.length)
      this.taken.set(before)
    }
    for (let element = 0; element < this.size; element++) this.taken[at + element] = actions[from + element]
  }

  copyTo(step: number, into: Float32Array | Int32Array, at: number): void {
    for (let element = 0; element < this.size; element++) into[at + element] = this.taken[step * this.size + element]
  }

  of(steps: number): Float32Array | Int32Array {
    return this.taken.subarray(0, steps * this.size)
  }
}

/** The state of a batch, without the envs themselves, which only the kernel reaches. */
export interface AsyncState extends BatchArrays {
  readonly env: Env
  readonly numEnvs: number
  readonly observationSize: number
  readonly maskSize: number
  readonly actionSize: number
  readonly isDiscrete: boolean
  /** The number of rows of one game, one for each agent, whose episodes begin and end together. */
  readonly together: number
  /** The number of steps after which an episode is truncated. */
  readonly limit: number
  readonly actionCheck: ActionCheck
  /** Checks a mask that an env sent; undefined if the rows have none. */
  readonly writeMask: ReturnType<typeof givenMaskWriter> | undefined
  readonly seeds: EpisodeSeeds
  /** The number of each env's current episode, and (`elapsed`) the number of its steps so far. */
  readonly episodes: Int32Array
  readonly elapsed: Int32Array
  readonly commands: Uint8Array
  /** The number of the episode that each env starts in the current exchange, if it starts one. */
  readonly starts: Int32Array
  /** Marks with 1 the envs whose episode could not be continued after `restore`; the next step truncates it. */
  readonly lost: Uint8Array
  /** The actions of each env's current episode. */
  readonly taken: ReadonlyArray<Actions>
  /** The actions to pass when no env takes a step. */
  readonly noActions: Float32Array | Int32Array
}

/** A batch whose kernel is open. */
export interface OpenBatch extends AsyncState {
  readonly kernel: AsyncKernel
}

/** Makes the state before the first reset. Throws an `EnvError` if the agents of a game don't fill the batch. */
export const stateOf = (env: Env, numEnvs: number, options: EnvBatchOptions): AsyncState => {
  const space = rowSpaceOf(env)
  const observationSize = sizeOf(space)
  const actionSize = sizeOf(env.actionSpace)
  const isDiscrete = optionsOf(env.actionSpace) !== undefined
  return {
    ...arraysFor(numEnvs, observationSize, options.arrays),
    env,
    numEnvs,
    observationSize,
    maskSize: maskSizeOf(space),
    actionSize,
    isDiscrete,
    together: rowsOfGame(env, numEnvs),
    limit: options.maxSteps ?? noLimit,
    actionCheck: actionCheckOf(env),
    writeMask: space._tag === "Masked" ? givenMaskWriter(space.choices) : undefined,
    seeds: seedsFor(numEnvs, options.firstIndex),
    episodes: new Int32Array(numEnvs),
    elapsed: new Int32Array(numEnvs),
    commands: new Uint8Array(numEnvs),
    starts: new Int32Array(numEnvs),
    lost: new Uint8Array(numEnvs),
    taken: Array.from({ length: numEnvs }, () => new Actions(isDiscrete, actionSize)),
    noActions: isDiscrete ? new Int32Array(numEnvs * actionSize) : new Float32Array(numEnvs * actionSize),
  }
}

/** Returns the part of the state that the kernel reads and writes. */
export const columnsFor = (state: AsyncState): AsyncColumns => {
  const { observations, finalObservations, rewards, terminated, truncated } = state
  const { numEnvs, episodes, elapsed, commands, starts, seeds } = state
  return {
    observations,
    finalObservations,
    rewards,
    terminated,
    truncated,
    numEnvs,
    episodes,
    elapsed,
    commands,
    nextEpisode: (index) => seeds.parents[index].child(starts[index]),
  }
}

/** Sends the commands to the kernel. An interrupt waits for the answer, so that no later exchange receives it. */
export const exchange = ({ kernel }: OpenBatch, actions: Float32Array | Int32Array): Effect.Effect<void, EnvError> =>
  Effect.suspend(() => {
    stepsTaken[0]++
    return Effect.uninterruptible(kernel.exchange(actions))
  })
