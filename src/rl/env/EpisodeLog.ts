/**
 * Logs the finished episodes of a batch in memory: the env, the step, the return and the length of each. Training reads
 * its metrics from such a log.
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
import { Struct } from "effect"
import { type AnyBatchEnv, type EpisodeLog, hasEpisodeEnded, type Snapshot, type Wait } from "./BatchEnv.ts"
import { afterwards, markResets, nestedRestore, nestedSnapshot } from "./internal/nested.ts"

export type { EpisodeLog } from "./BatchEnv.ts"

/** A log to which episodes are added. */
export interface GrowingLog extends EpisodeLog {
  /** Adds a row and returns its index; the caller writes the row into the arrays. */
  readonly next: () => number
}

const columnsOf = (capacity: number) => ({
  envs: new Int32Array(capacity),
  episodes: new Int32Array(capacity),
  returns: new Float64Array(capacity),
  lengths: new Int32Array(capacity),
  steps: new Float64Array(capacity),
  terminated: new Uint8Array(capacity),
  truncated: new Uint8Array(capacity),
  diverged: new Uint8Array(capacity),
})

/** Makes an empty log with room for `initial` episodes; it grows as needed. */
export const makeLog = (initial: number): GrowingLog => {
  const log = {
    length: 0,
    ...columnsOf(Math.max(initial, 16)),
    /** Adds a row and returns its index. If the arrays are full, replaces them by arrays of twice the length. */
    next: (): number => {
      if (log.length === log.envs.length) {
        const longer = columnsOf(2 * log.length)
        for (const key of Struct.keys(longer)) longer[key].set(log[key])
        Object.assign(log, longer)
      }
      return log.length++
    },
    clear: (): void => {
      log.length = 0
    },
  }
  return log
}

export interface Recorded {
  readonly episodes: EpisodeLog
}

/** Returns the batch with a log in `episodes`. `clear`, `reset` and `restore` empty it; snapshots don't contain it. */
export const record = <B extends AnyBatchEnv>(batch: B): B & Recorded => {
  const { numEnvs } = batch
  /** The return and the length so far of each env's current episode, and the number of this episode. */
  const running = new Float64Array(numEnvs)
  const lengths = new Int32Array(numEnvs)
  const numbers = new Int32Array(numEnvs)
  const steps = new Float64Array(1)
  const resetting = new Uint8Array(numEnvs)
  const log = makeLog(numEnvs)
  const scores = batch.scores ?? batch.rewards

  const clearEpisode = (index: number): void => {
    running[index] = 0
    lengths[index] = 0
  }

  const addStep = (): void => {
    steps[0]++
    for (let index = 0; index < numEnvs; index++) {
      if (resetting[index] !== 0) continue
      running[index] += scores[index]
      lengths[index]++
      if (!hasEpisodeEnded(batch, index)) continue
      const at = log.next()
      log.envs[at] = index
      log.episodes[at] = numbers[index]
      log.returns[at] = running[index]
      log.lengths[at] = lengths[index]
      log.steps[at] = steps[0]
      log.terminated[at] = batch.terminated[index]
      log.truncated[at] = batch.truncated[index]
      log.diverged[at] = batch.diverged?.[index] ?? 0
      numbers[index]++
      clearEpisode(index)
    }
  }

  const step = (actions: Float32Array | Int32Array): Wait => {
    markResets(batch, resetting)
    return afterwards(batch.step(actions), addStep)
  }

  const own = { running, lengths, numbers, steps }
  return {
    ...batch,
    episodes: log,
    reset: (seed: number, ...path: ReadonlyArray<string | number>) =>
      afterwards(batch.reset(seed, ...path), () => {
        for (const column of Object.values(own)) column.fill(0)
        log.clear()
      }),
    restart: (mask: Uint8Array) => {
      // Count the episode that `restart` abandons, so that its number is not used again. An episode that has ended was
      // counted by `step`, but with `same-step` the env is already in the next one, which is abandoned here.
      for (let index = 0; index < numEnvs; index++) {
        if (mask[index] === 0) continue
        if ((batch.terminated[index] | batch.truncated[index]) === 0 || batch.autoReset === "same-step")
          numbers[index]++
        clearEpisode(index)
      }
      return batch.restart(mask)
    },
    step,
    snapshot: () => nestedSnapshot(batch, own),
    restore: (saved: Snapshot) => afterwards(nestedRestore(batch, own, saved), log.clear),
  }
}
