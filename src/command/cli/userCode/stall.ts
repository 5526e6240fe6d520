/** Detects a stall: one call of the user's code that blocks the event loop for too long. watch.ts uses it. */

/** The times and steps that the main thread has used so far. Only differences between two measurements count. */
export interface Measures {
  readonly cpuMillis: number
  readonly wallMillis: number
  /** The number of env steps so far. */
  readonly steps: number
}

/**
 * Limits how long one call of the user's code may block the event loop. CPU time counts, because a healthy call can
 * take any wall time on a busy machine; the limit of wall time is for code that blocks without computing.
 */
const stallLimits = { cpuMillis: 10_000, wallMillis: 120_000 }

interface StallMeter {
  /** Starts a new measurement. Call this at each turn of the event loop. */
  readonly turned: () => void
  /** Returns the wall time of the current call in milliseconds if the call has stalled; undefined if it hasn't. */
  readonly stalledMillis: () => number | undefined
}

/**
 * Measures the current call of the user's code. An env step restarts the measurement, so a slow env doesn't count as a stall.
 */
export const stallMeter = (measure: () => Measures): StallMeter => {
  let start = measure()
  return {
    turned: () => void (start = measure()),
    stalledMillis: () => {
      const now = measure()
      if (now.steps !== start.steps) start = now
      const wallMillis = now.wallMillis - start.wallMillis
      const isStalled = now.cpuMillis - start.cpuMillis >= stallLimits.cpuMillis || wallMillis >= stallLimits.wallMillis
      return isStalled ? wallMillis : undefined
    },
  }
}

/**
 * Returns a function that calls `ask`, unless the previous call has not been answered yet, because native code can delay an
 * answer.
 */
export const oneAtATime = (ask: (answered: () => void) => void): (() => void) => {
  let isWaiting = false
  return () => {
    if (isWaiting) return
    isWaiting = true
    ask(() => void (isWaiting = false))
  }
}
