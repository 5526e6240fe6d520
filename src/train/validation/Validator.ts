import { Effect } from "effect"
import type { Learner, LearnerError, Policy } from "../../learner/Algorithm.ts"
import { drive } from "../../learner/drive.ts"
import type { BatchEnv } from "../../env/BatchEnv.ts"
import { outcomeOf, type ValidationOutcome } from "../../run/evaluation.ts"
import { stream } from "../../rng/Rng.ts"
import { attempt } from "../../config/attempt.ts"
import { EnvError } from "../../env/EnvError.ts"

/**
 * Plays a number of whole episodes and returns their scores. Each episode has an env of its own in a batch, so short episodes
 * count no more than long ones. Its randomness is addressed by its own number, so its outcome doesn't depend on the batch
 * that it is played in.
 */
export interface Validator {
  readonly validate: (seed: number, index: number) => Effect.Effect<ValidationOutcome, LearnerError>
}

/**
 * Divides episodes among envs as evenly as possible: the number of each env's first episode, and how many there are. The
 * larger shares come last: 7 episodes for 3 envs are 2, 2 and 3.
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

/** A batch of envs, one for each episode, whose first one has the number `first`. */
interface Lanes {
  readonly envs: BatchEnv
  readonly first: number
}

const playAll = ({ envs, first }: Lanes, policy: Policy, { maxSteps }: ValidatorOptions) =>
  Effect.fnUntraced(function* (seed: number, index: number) {
    yield* policy.refresh
    const { numEnvs } = envs
    const { program, noise } = policy
    const episodes = new Array<ValidationOutcome["episodes"][number] | undefined>(numEnvs)
    const returns = new Float64Array(numEnvs)
    const draws = Array.from({ length: noise === undefined ? 0 : numEnvs }, (_, lane) =>
      stream(seed, "validation", index, first + lane, "actions"),
    )
    const width = (noise?.length ?? 0) / numEnvs
    let running = numEnvs
    let step = 0

    const look = (): void => {
      policy.observations.set(envs.observations)
      if (noise !== undefined)
        draws.forEach((random, lane) => random.fillUniform(noise, lane * width, (lane + 1) * width))
    }

    const advance = (): void => {
      envs.step(policy.actions)
      step++
      for (let lane = 0; lane < numEnvs; lane++) {
        if (episodes[lane] !== undefined) continue
        returns[lane] += envs.rewards[lane]
        const terminated = envs.terminated[lane] === 1
        const truncated = envs.truncated[lane] === 1 || (!terminated && step >= maxSteps)
        if (!terminated && !truncated) continue
        episodes[lane] = { return: returns[lane], length: step, terminated, truncated }
        running--
      }
    }

    yield* attempt(() => envs.reset(seed, "validation", index), EnvError)
    while (running > 0) {
      // Play in short slices, so that an interruption does not have to wait for a long validation.
      yield* drive(function* () {
        for (let slice = 0; slice < 256 && running > 0; slice++) {
          look()
          yield program
          advance()
        }
      })
      yield* Effect.yieldNow
    }
    return episodes.filter((episode) => episode !== undefined)
  })

/** Makes a validator that plays its batches concurrently, each in a fiber with its own compiled policy. */
export const makeValidator = Effect.fnUntraced(function* (
  batches: ReadonlyArray<Lanes>,
  policyFor: NonNullable<Learner["policy"]>,
  options: ValidatorOptions,
) {
  const players = yield* Effect.forEach(batches, (lanes) =>
    Effect.map(policyFor(lanes.envs.numEnvs, { sampled: options.sampled }), (policy) =>
      playAll(lanes, policy, options),
    ),
  )
  const validator: Validator = {
    validate: (seed, index) =>
      Effect.forEach(players, (play) => play(seed, index), { concurrency: "unbounded" }).pipe(
        Effect.map((played) => outcomeOf(played.flat())),
      ),
  }
  return validator
})
