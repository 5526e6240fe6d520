/**
 * Logs the finished episodes of a batch: which env, when, and with what return.
 *
 * @example
 * ```ts
 * import { Batch, CartPole, EpisodeLog } from "effect-rl"
 *
 * const envs = EpisodeLog.record(Batch.make(CartPole.env, 8))
 * // after some steps:
 * for (let at = 0; at < envs.episodes.length; at++) console.log(envs.episodes.returns[at], envs.episodes.lengths[at])
 * envs.episodes.clear()
 * ```
 */
import type { BatchEnv, Snapshot } from "./BatchEnv.ts"
import { markResets, nestedRestore, nestedSnapshot } from "./internal/nested.ts"

/** Finished episodes in the order of their ends, until `clear`. The arrays may be longer than `length`. */
export interface EpisodeLog {
  readonly length: number
  /** The index of the env in the batch. */
  readonly envs: Int32Array
  /** The number of the episode of that env, from 0. */
  readonly episodes: Int32Array
  readonly returns: Float64Array
  readonly lengths: Int32Array
  /** The step of the batch in which the episode ended, from 1. */
  readonly steps: Float64Array
  readonly terminated: Uint8Array
  readonly truncated: Uint8Array
  readonly clear: () => void
}

export interface Recorded {
  readonly episodes: EpisodeLog
}

/**
 * Adds a log of finished episodes with their returns and lengths. The arrays of the log grow until they hold all episodes
 * that end between two clears. A snapshot doesn't contain the log.
 */
export const record = <B extends BatchEnv>(batch: B): B & Recorded => {
  const { numEnvs } = batch
  const running = new Float64Array(numEnvs)
  const lengths = new Int32Array(numEnvs)
  const numbers = new Int32Array(numEnvs)
  const steps = new Float64Array(1)
  const resetting = new Uint8Array(numEnvs)
  const log = makeLog(numEnvs)

  const forget = (index: number): void => {
    running[index] = 0
    lengths[index] = 0
  }

  const step = (actions: Float32Array | Int32Array): void => {
    markResets(batch, resetting)
    batch.step(actions)
    steps[0]++
    for (let index = 0; index < numEnvs; index++) {
      if (resetting[index] !== 0) continue
      running[index] += batch.rewards[index]
      lengths[index]++
      if ((batch.terminated[index] | batch.truncated[index]) === 0) continue
      const { terminated, truncated } = batch
      log.add(index, numbers[index], running[index], lengths[index], steps[0], terminated[index], truncated[index])
      numbers[index]++
      forget(index)
    }
  }

  const own = { running, lengths, numbers, steps }
  return {
    ...batch,
    episodes: log,
    reset: (seed, ...path) => {
      batch.reset(seed, ...path)
      for (const column of Object.values(own)) column.fill(0)
      log.clear()
    },
    restart: (mask) => {
      // An episode that `restart` abandons also takes a number.
      for (let index = 0; index < numEnvs; index++) {
        if (mask[index] === 0) continue
        if ((batch.terminated[index] | batch.truncated[index]) === 0 || batch.autoReset === "same-step")
          numbers[index]++
        forget(index)
      }
      batch.restart(mask)
    },
    step,
    snapshot: () => nestedSnapshot(batch, own),
    restore: (saved: Snapshot) => {
      nestedRestore(batch, own, saved)
      log.clear()
    },
  }
}

const makeLog = (initial: number) => {
  let capacity = Math.max(initial, 16)
  let length = 0
  let envs = new Int32Array(capacity)
  let episodes = new Int32Array(capacity)
  let returns = new Float64Array(capacity)
  let lengths = new Int32Array(capacity)
  let steps = new Float64Array(capacity)
  let terminated = new Uint8Array(capacity)
  let truncated = new Uint8Array(capacity)

  const grow = (): void => {
    capacity *= 2
    const longer = <A extends Int32Array | Float64Array | Uint8Array>(array: A, into: A): A => {
      into.set(array)
      return into
    }
    envs = longer(envs, new Int32Array(capacity))
    episodes = longer(episodes, new Int32Array(capacity))
    returns = longer(returns, new Float64Array(capacity))
    lengths = longer(lengths, new Int32Array(capacity))
    steps = longer(steps, new Float64Array(capacity))
    terminated = longer(terminated, new Uint8Array(capacity))
    truncated = longer(truncated, new Uint8Array(capacity))
  }

  return {
    get length() {
      return length
    },
    get envs() {
      return envs
    },
    get episodes() {
      return episodes
    },
    get returns() {
      return returns
    },
    get lengths() {
      return lengths
    },
    get steps() {
      return steps
    },
    get terminated() {
      return terminated
    },
    get truncated() {
      return truncated
    },
    add: (
      env: number,
      episode: number,
      total: number,
      stepsTaken: number,
      step: number,
      isTerminated: number,
      isTruncated: number,
    ): void => {
      if (length === capacity) grow()
      envs[length] = env
      episodes[length] = episode
      returns[length] = total
      lengths[length] = stepsTaken
      steps[length] = step
      terminated[length] = isTerminated
      truncated[length] = isTruncated
      length++
    },
    clear: (): void => {
      length = 0
    },
  }
}
