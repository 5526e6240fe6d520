/** Stores the episodes that have ended, in arrays that grow. */
import { Struct } from "effect"
import type { EpisodeLog } from "../BatchEnv.ts"

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
