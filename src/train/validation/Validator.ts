/** Validates a policy: plays whole episodes in batches of envs. It touches no files. `setUp.ts` makes a validator. */
import { Effect } from "effect"
import type { Learner, LearnerError, Policy } from "../../learner/Algorithm.ts"
import { drive } from "../../learner/drive.ts"
import type { BatchEnv } from "../../env/BatchEnv.ts"
import { outcomeOf, type ValidationOutcome } from "../../run/evaluation.ts"
import { stream } from "../../rng/Rng.ts"
import { attempt } from "../../config/attempt.ts"
import { EnvError } from "../../env/EnvError.ts"

/**
 * Plays a fixed number of whole episodes with the current policy, and gives their returns and lengths. Each episode
 * has an env of its own in a batch, so that short episodes do not count more often than long ones. The randomness of an
 * episode depends only on the seed, on `index` (the training's step) and on the episode's number, not on its batch.
 */
export interface Validator {
  readonly validate: (seed: number, index: number) => Effect.Effect<ValidationOutcome, LearnerError>
}

/**
 * Divides episodes among envs as evenly as possible. Returns for each env the number of its first episode, and the
 * count of its episodes. The larger counts come last: 7 episodes for 3 envs are 2, 2 and 3.
 */
export const shares = (
  episodes: number,
  envs: number,
): ReadonlyArray<{ readonly first: number; readonly count: number }> => {
  const each = Math.floor(episodes / envs)
  const extra = episodes % envs
  return Array.from({ length: envs }, (_, index) => {
    const before = Math.max(0, index - (envs - extra))
    return { first: index * each + before, count: each + (index >= envs - extra ? 1 : 0) }
  })
}

interface ValidatorOptions {
  readonly maxSteps: number
  readonly sampled: boolean
}

/** A batch of envs that play one episode each. The episode of the first env has the number `first`. */
interface EpisodeBatch {
  readonly envs: BatchEnv
  readonly first: number
}

/** Makes a function that plays one episode, of at most `maxSteps` steps, in each env of a batch, and returns them. */
const playAll = ({ envs, first }: EpisodeBatch, policy: Policy, { maxSteps }: ValidatorOptions) =>
  Effect.fnUntraced(function* (seed: number, index: number) {
    yield* policy.refresh
    const { numEnvs } = envs
    const { program, noise } = policy
    const episodes = new Array<ValidationOutcome["episodes"][number] | undefined>(numEnvs)
    const returns = new Float64Array(numEnvs)
    const generators = Array.from({ length: noise === undefined ? 0 : numEnvs }, (_, env) =>
      stream(seed, "validation", index, first + env, "actions"),
    )
    const width = (noise?.length ?? 0) / numEnvs
    let running = numEnvs
    let step = 0

    const readObservations = (): void => {
      policy.observations.set(envs.observations)
      if (noise !== undefined)
        generators.forEach((random, env) => random.fillUniform(noise, env * width, (env + 1) * width))
    }

    // An env whose episode has ended is stepped until all episodes have ended, but its steps no longer count.
    const advance = (): void => {
      envs.step(policy.actions)
      step++
      for (let env = 0; env < numEnvs; env++) {
        if (episodes[env] !== undefined) continue
        returns[env] += envs.rewards[env]
        const terminated = envs.terminated[env] === 1
        const truncated = envs.truncated[env] === 1 || (!terminated && step >= maxSteps)
        if (!terminated && !truncated) continue
        episodes[env] = { return: returns[env], length: step, terminated, truncated }
        running--
      }
    }

    yield* attempt(() => envs.reset(seed, "validation", index), EnvError)
    while (running > 0) {
      // Play in short slices, so that an interruption does not have to wait for a long validation.
      yield* drive(function* () {
        for (let slice = 0; slice < 256 && running > 0; slice++) {
          readObservations()
          yield program
          advance()
        }
      })
      yield* Effect.yieldNow
    }
    return episodes.filter((episode) => episode !== undefined)
  })

/** Makes a validator that plays its batches at the same time, each in a fiber with a compiled policy of its own. */
export const makeValidator = Effect.fnUntraced(function* (
  batches: ReadonlyArray<EpisodeBatch>,
  policyFor: NonNullable<Learner["policy"]>,
  options: ValidatorOptions,
) {
  const players = yield* Effect.forEach(batches, (batch) =>
    Effect.map(policyFor(batch.envs.numEnvs, { sampled: options.sampled }), (policy) =>
      playAll(batch, policy, options),
    ),
  )
  const validator: Validator = {
    validate: (seed, index) =>
      Effect.forEach(players, (playBatch) => playBatch(seed, index), { concurrency: "unbounded" }).pipe(
        Effect.map((played) => outcomeOf(played.flat())),
      ),
  }
  return validator
})
