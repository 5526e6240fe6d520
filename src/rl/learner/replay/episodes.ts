/**
 * Remembers which steps of a replay buffer belong to one episode, for hindsight experience replay. A place is the index
 * of a step in the buffer.
 */

/**
 * Makes the memory of where episodes begin and end in rings of `stepsPerEnv` steps, one for each env. It is not saved:
 * to restore it, the caller calls `note` for all stored steps again, from the oldest one on.
 */
export const makeEpisodes = (numEnvs: number, stepsPerEnv: number) => {
  /** For each place, how many noted steps of its episode come before it. */
  const before = new Int32Array(numEnvs * stepsPerEnv)
  /** For each place, how many steps of its episode come after it; −1 if the episode has not ended. */
  const after = new Int32Array(numEnvs * stepsPerEnv)
  const current = new Int32Array(numEnvs)

  /** Returns the place that is `by` steps later in the same ring, or earlier if `by` is negative. */
  const shifted = (place: number, by: number): number => {
    const start = place - (place % stepsPerEnv)
    return start + ((((place - start + by) % stepsPerEnv) + stepsPerEnv) % stepsPerEnv)
  }

  return {
    shifted,
    /** Notes the next step of an env. `stored` is the number of the env's steps in the ring, this one among them. */
    note: (env: number, place: number, isLast: boolean, stored: number): void => {
      before[place] = current[env]
      after[place] = -1
      current[env] = isLast ? 0 : current[env] + 1
      if (!isLast) return
      const length = Math.min(before[place] + 1, stored)
      for (let back = 0; back < length; back++) after[shifted(place, -back)] = back
    },
    forget: (): void => {
      current.fill(0)
    },
    /**
     * Returns how many stored steps of its episode come before a place. `older` is the number of stored steps before
     * it.
     */
    before: (place: number, older: number): number => Math.min(before[place], older),
    /**
     * Returns how many stored steps of its episode come after a place. `newer` is the number of stored steps after it.
     */
    after: (place: number, newer: number): number => (after[place] < 0 ? newer : after[place]),
  }
}
