/** The measures of the main thread, each counted from any beginning. */
export interface Measures {
  readonly cpuMillis: number
  readonly wallMillis: number
  /** Steps of envs. */
  readonly steps: number
}

/**
 * How long a single call of the user's code may keep the event loop from turning. CPU time counts, because a healthy call
 * takes any time on a busy machine; the limit of wall time is for code that blocks without computing.
 */
export const stallLimits = { cpuMillis: 10_000, wallMillis: 120_000 }

export interface StallMeter {
  /** The event loop has turned. */
  readonly turned: () => void
  /** For how many milliseconds of wall time the present call has not returned, if that is a stall; else undefined. */
  readonly stalledMillis: () => number | undefined
}

/** Measures how long the present call takes. It begins anew where a step was taken: slow envs don't hang. */
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

/** Skips a question while the last one has no answer yet: code outside of JavaScript lets none through. */
export const oneAtATime = (ask: (answered: () => void) => void): (() => void) => {
  let isOpen = false
  return () => {
    if (isOpen) return
    isOpen = true
    ask(() => void (isOpen = false))
  }
}
