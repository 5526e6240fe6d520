/** Keeps the episodes that ended in growing columns. */
import { Struct } from "effect"

/**
 * The episodes that finished since the last `clear`, in the order of their ends. Each array has one number per episode;
 * only the first `length` numbers count, since the arrays have room for more episodes.
 */
export interface EpisodeLog {
  readonly length: number
  /** The index of the env in the batch. */
  readonly envs: Int32Array
  /** The number of the episode, counted from 0 for each env. */
  readonly episodes: Int32Array
  readonly returns: Float64Array
  readonly lengths: Int32Array
  /** The step of the batch in which the episode ended, from 1. */
  readonly steps: Float64Array
  readonly terminated: Uint8Array
  readonly truncated: Uint8Array
  readonly clear: () => void
}

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
