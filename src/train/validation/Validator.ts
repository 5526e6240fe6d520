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
 * Plays a fixed number of whole episodes with the current policy, and returns their outcome. Each episode has an env of
 * its own in a batch, so short episodes count no more than long ones. The randomness of an episode depends only on the
 * seed, the validation's `index` (its step) and the episode's number, not on its batch.
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

/** A batch of envs that play one episode each. The episode of the first env has the number `first`. */
interface Lanes {
  readonly envs: BatchEnv
  readonly first: number
}

/** Makes a function that plays one episode in each env of a batch, until all have ended or have `maxSteps` steps. */
const playAll = ({ envs, first }: Lanes, policy: Policy, { maxSteps }: ValidatorOptions) =>
  Effect.fnUntraced(function* (seed: number, index: number) {
    yield* policy.refresh
    const { numEnvs } = envs
    const { program, noise } = policy
    const episodes = new Array<ValidationOutcome["episodes"][number] | undefined>(numEnvs)
    const returns = new Float64Array(numEnvs)
    const generators = Array.from({ length: noise === undefined ? 0 : numEnvs }, (_, lane) =>
      stream(seed, "validation", index, first + lane, "actions"),
    )
    const width = (noise?.length ?? 0) / numEnvs
    let running = numEnvs
    let step = 0

    const readObservations = (): void => {
      policy.observations.set(envs.observations)
      if (noise !== undefined)
        generators.forEach((random, lane) => random.fillUniform(noise, lane * width, (lane + 1) * width))
    }

    // After its first episode, an env goes on until the whole batch is done, but counts no more.
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
      Effect.forEach(players, (playBatch) => playBatch(seed, index), { concurrency: "unbounded" }).pipe(
        Effect.map((played) => outcomeOf(played.flat())),
      ),
  }
  return validator
})
