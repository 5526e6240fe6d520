import { Effect } from "effect"
import type { LearnerError, Policy } from "../algorithm/Algorithm.ts"
import { attempt } from "../algorithm/drive.ts"
import type { BatchEnv } from "../env/BatchEnv.ts"

export interface ValidationEpisode {
  readonly return: number
  readonly length: number
  readonly terminated: boolean
  readonly truncated: boolean
}

export interface ValidationOutcome {
  readonly episodes: ReadonlyArray<ValidationEpisode>
  readonly meanReturn: number
  /** Population standard deviation. */
  readonly stdReturn: number
}

export interface Validator {
  /** Plays one whole episode in every env of the batch, so short episodes count no more than long ones. */
  readonly validate: (seed: number, index: number) => Effect.Effect<ValidationOutcome, LearnerError>
}

/** A validator over a batch with one env an episode and the learner's policy compiled for as many. */
export const makeValidator = (envs: BatchEnv, policy: Policy, options: { readonly maxSteps: number }): Validator => ({
  validate: Effect.fnUntraced(function* (seed: number, index: number) {
    yield* policy.refresh
    const { numEnvs } = envs
    const episodes = new Array<ValidationEpisode | undefined>(numEnvs)
    const returns = new Float64Array(numEnvs)
    let running = numEnvs
    let step = 0

    const advance = (): void => {
      envs.step(policy.actions)
      step++
      for (let env = 0; env < numEnvs; env++) {
        if (episodes[env] !== undefined) continue
        returns[env] += envs.rewards[env]
        const terminated = envs.terminated[env] === 1
        const truncated = envs.truncated[env] === 1 || (!terminated && step >= options.maxSteps)
        if (!terminated && !truncated) continue
        episodes[env] = { return: returns[env], length: step, terminated, truncated }
        running--
      }
    }

    yield* attempt(() => envs.reset(seed, "validation", index))
    const { runSync } = policy.program
    if (runSync !== undefined) {
      // In slices, so that an interruption need not wait for a long validation.
      while (running > 0) {
        yield* attempt(() => {
          for (let slice = 0; slice < 256 && running > 0; slice++) {
            policy.observations.set(envs.observations)
            runSync()
            advance()
          }
        })
        yield* Effect.yieldNow
      }
    } else {
      while (running > 0) {
        policy.observations.set(envs.observations)
        yield* policy.program.run
        yield* attempt(advance)
      }
    }
    return summarise(episodes.filter((episode) => episode !== undefined))
  }),
})

const summarise = (episodes: ReadonlyArray<ValidationEpisode>): ValidationOutcome => ({
  episodes,
  ...spreadOf(episodes.map((episode) => episode.return)),
})

/** Mean and population deviation. */
export const spreadOf = (
  returns: ReadonlyArray<number>,
): { readonly meanReturn: number; readonly stdReturn: number } => {
  const mean = returns.reduce((sum, value) => sum + value, 0) / returns.length
  const variance = returns.reduce((sum, value) => sum + (value - mean) ** 2, 0) / returns.length
  return { meanReturn: mean, stdReturn: Math.sqrt(variance) }
}
