import type { BatchEnv, Snapshot } from "../env/BatchEnv.ts"

/** An episode that ended, as the trainer counts it. */
export interface FinishedEpisode {
  /** Steps of the batch since the last `drain`, up to and with the one that ended it. */
  readonly row: number
  readonly env: number
  readonly return: number
  readonly length: number
  readonly terminated: boolean
  readonly truncated: boolean
  readonly truncationReason: "max_steps" | "env" | null
  readonly lastReward: number
}

export interface TrackedEnvs extends BatchEnv {
  /** The episodes that ended since the last call, in the order of (step, env). */
  readonly drain: () => ReadonlyArray<FinishedEpisode>
}

/** The same envs, with each episode's return and length summed up as it goes. */
export const track = (inner: BatchEnv, maxSteps = Infinity): TrackedEnvs => {
  const { numEnvs, rewards, terminated, truncated } = inner
  const returns = new Float64Array(numEnvs)
  const lengths = new Int32Array(numEnvs)
  let finished: Array<FinishedEpisode> = []
  let row = 0

  const step = (actions: Float32Array | Int32Array): void => {
    inner.step(actions)
    row++
    for (let env = 0; env < numEnvs; env++) {
      returns[env] += rewards[env]
      lengths[env]++
      if ((terminated[env] | truncated[env]) !== 0) end(env)
    }
  }

  const end = (env: number): void => {
    finished.push({
      row,
      env,
      return: returns[env],
      length: lengths[env],
      terminated: terminated[env] === 1,
      truncated: truncated[env] === 1,
      truncationReason: truncated[env] === 0 ? null : lengths[env] >= maxSteps ? "max_steps" : "env",
      lastReward: rewards[env],
    })
    returns[env] = 0
    lengths[env] = 0
  }

  return {
    id: inner.id,
    numEnvs,
    observationSpace: inner.observationSpace,
    actionSpace: inner.actionSpace,
    observationSize: inner.observationSize,
    actionSize: inner.actionSize,
    observations: inner.observations,
    rewards,
    terminated,
    truncated,
    finalObservations: inner.finalObservations,
    step,
    reset: (seed, ...path) => {
      returns.fill(0)
      lengths.fill(0)
      finished = []
      row = 0
      inner.reset(seed, ...path)
    },
    drain: () => {
      const ended = finished
      finished = []
      row = 0
      return ended
    },
    snapshot: () => ({ ...inner.snapshot(), "episode.returns": returns.slice(), "episode.lengths": lengths.slice() }),
    restore: (snapshot: Snapshot) => {
      inner.restore(snapshot)
      returns.set(snapshot["episode.returns"])
      lengths.set(snapshot["episode.lengths"])
    },
  }
}
