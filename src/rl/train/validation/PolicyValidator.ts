/** Validates a policy: plays whole episodes in batches of envs. It touches no files. `setUp.ts` makes a validator. */
import { Effect } from "effect"
import type { Learner, LearnerError, Policy } from "../../learner/Learner.ts"
import { drive, settled, waitFor } from "../../learner/drive.ts"
import type { AnyBatchEnv } from "../../env/BatchEnv.ts"
import type { Env } from "../../env/Env.ts"
import { outcomeOf, type ValidationOutcome } from "../../../run/evaluation.ts"
import type { Chunk } from "../../../spread/cluster/sent/chunks.ts"
import { stream } from "../../../base/rng/Rng.ts"

/**
 * Plays a fixed number of whole episodes with the current policy, and returns their returns and lengths. Each episode
 * has an env of its own in a batch, so that short episodes do not count more often than long ones. The randomness of an
 * episode depends only on the seed, on `index` (the training's step) and on the episode's number, not on its batch.
 */
export interface PolicyValidator {
  /** The name of the user's own validator; undefined for the built-in one. */
  readonly name?: string
  readonly validate: (seed: number, index: number) => Effect.Effect<ValidationOutcome, LearnerError>
  /** The batches, each with the number of its first episode, its size, and the device that computes its policy. */
  readonly batches: ReadonlyArray<{ readonly first: number; readonly size: number; readonly device: string }>
  /** Plays a part of a batch, with the same results as `validate`. Only one part of a batch can be played at a time. */
  readonly playPart: (
    batch: number,
    part: BatchPart,
    seed: number,
    index: number,
  ) => Effect.Effect<ValidationOutcome["episodes"], LearnerError>
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

/** The smallest number of episodes in a part, and the largest number of parts for the episodes of one env. */
const leastInPart = 32
const mostParts = 64

/** Some adjacent episodes of a validation, with the index of their env. */
interface Part extends Chunk {
  readonly env: number
}

/**
 * Divides the episodes of a validation into parts. Each is played as one batch, in this process or on another machine: the
 * last bits of what a policy computes may depend on the size of the batch, so the parts are the same everywhere. With
 * worker threads, which share a batch, an env's episodes are one part.
 */
export const partsOf = (
  { episodes, workers }: { readonly episodes: number; readonly workers: number },
  envs: ReadonlyArray<Pick<Env, "agents">>,
): ReadonlyArray<Part> =>
  shares(episodes, envs.length).flatMap(({ first, count }, env) => {
    const parts = workers > 0 ? 1 : Math.min(mostParts, Math.max(1, Math.floor(count / leastInPart)))
    const together = togetherIn(envs[env], count)
    return shares(count / together, Math.min(parts, count / together)).map((part) => ({
      env,
      from: first + part.first * together,
      to: first + (part.first + part.count) * together,
    }))
  })

/** Returns how many consecutive episodes must stay in the same part: in a game, one for each agent; otherwise 1. */
export const togetherIn = ({ agents = [""] }: Pick<Env, "agents">, count: number): number =>
  count % agents.length === 0 ? agents.length : 1

interface ValidatorOptions {
  readonly maxSteps: number
  readonly sampled: boolean
  /** The agents of a game whose episodes count for the score; all, if there are none. */
  readonly agents: ReadonlyArray<string>
}

/** A batch of envs that play one episode each. The episode of the first env has the number `first`. */
export interface EpisodeBatch {
  /** The id of the env. The id of `batch` can differ, since a wrapper may use the inner env's own batch. */
  readonly envId: string
  readonly envs: AnyBatchEnv
  readonly first: number
  /** The names of the agents of a game, each of which has a row for every game. */
  readonly agents?: ReadonlyArray<string> | undefined
}

/** Some adjacent envs of a batch, in a batch of their own; `at` is the position of the first one in the whole batch. */
interface BatchPart extends EpisodeBatch {
  readonly at: number
}

type Episodes = ValidationOutcome["episodes"]

/**
 * Makes a function that plays one episode, of at most `maxSteps` steps, in each env of a part of a batch, and returns them.
 * The policy computes as many rows as the whole batch has, and each env uses its own row: then the actions have the same bits
 * whether the batch is played as a whole or in parts.
 */
const playWith = (policy: Policy, batchSize: number, { maxSteps, agents: counted }: ValidatorOptions) =>
  Effect.fnUntraced(function* (
    { envId, envs, first, agents, at }: BatchPart,
    seed: number,
    index: number,
  ): Effect.fn.Return<Episodes, LearnerError> {
    yield* policy.refresh
    const { numEnvs, scores = envs.rewards } = envs
    const { program, noise } = policy
    const episodes = new Array<Episodes[number] | undefined>(numEnvs)
    const returns = new Float64Array(numEnvs)
    const generators = Array.from({ length: noise === undefined ? 0 : numEnvs }, (_, env) =>
      stream(seed, "validation", index, first + env, "actions"),
    )
    const width = (noise?.length ?? 0) / batchSize
    const observationsBefore = at * envs.observationSize
    const actionSize = policy.actions.length / batchSize
    const actions = policy.actions.subarray(at * actionSize, (at + numEnvs) * actionSize)
    const players = agents?.map((agent) => ({
      agent,
      ...(counted.length === 0 || counted.includes(agent) ? {} : { counts: false }),
    }))
    let running = numEnvs
    let step = 0

    const readObservations = (): void => {
      policy.observations.set(envs.observations, observationsBefore)
      if (noise !== undefined)
        generators.forEach((random, env) => random.fillUniform(noise, (at + env) * width, (at + env + 1) * width))
    }

    // An env whose episode has ended is stepped until all episodes have ended, but its steps no longer count.
    const count = (): void => {
      step++
      for (let env = 0; env < numEnvs; env++) {
        if (episodes[env] !== undefined) continue
        returns[env] += scores[env]
        const terminated = envs.terminated[env] === 1 && envs.livesLost?.[env] !== 1
        const truncated = envs.truncated[env] === 1 || (!terminated && step >= maxSteps)
        if (!terminated && !truncated) continue
        const player = players === undefined ? {} : players[env % players.length]
        episodes[env] = { env: envId, ...player, return: returns[env], length: step, terminated, truncated }
        running--
      }
    }

    yield* settled(() => envs.reset(seed, "validation", index))
    while (running > 0) {
      // Play in short slices, so that an interruption does not have to wait for a long validation.
      yield* drive(function* () {
        for (let slice = 0; slice < 256 && running > 0; slice++) {
          readObservations()
          if (policy.search === undefined) yield program
          else yield* policy.search(envs, at)
          const wait = envs.step(actions)
          if (wait !== undefined) yield waitFor(wait)
          count()
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
    Effect.map(policyFor(batch.envs.numEnvs, { sampled: options.sampled }), (policy) => ({
      batch: { first: batch.first, size: batch.envs.numEnvs, device: policy.program.device },
      whole: { ...batch, at: 0 },
      play: playWith(policy, batch.envs.numEnvs, options),
    })),
  )
  const validator: PolicyValidator = {
    batches: players.map(({ batch }) => batch),
    validate: (seed, index) =>
      Effect.forEach(players, ({ play, whole }) => play(whole, seed, index), { concurrency: "unbounded" }).pipe(
        Effect.map((played) => outcomeOf(played.flat())),
      ),
    playPart: (batch, part, seed, index) => players[batch].play(part, seed, index),
  }
  return validator
})
