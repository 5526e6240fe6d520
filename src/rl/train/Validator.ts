/**
 * Declares the service by which your own code validates a training, instead of the built-in validator, which plays
 * `validation.episodes` in `validation.envs`. The settings still say when the training validates.
 *
 * @example
 * ```ts
 * // Plays ten episodes in each of two envs, in threads, and counts only the worse env.
 * const worse = Validator.layer({
 *   name: "the worse of two",
 *   make: Effect.fnUntraced(function* ({ player, env }) {
 *     const envs = [env, Wrapper.timeLimit(env, 100)]
 *     const players = yield* Effect.forEach(envs, (one) => player(one, { episodes: 10, workers: 2 }))
 *     const total = (episodes: ReadonlyArray<Validator.Episode>) => episodes.reduce((sum, one) => sum + one.return, 0)
 *     return (at) =>
 *       Effect.map(Effect.forEach(players, (play) => play(at)), ([first, second]) =>
 *         total(first) < total(second) ? first : second,
 *       )
 *   }),
 * })
 * const validated = Train.run({ env: CartPole.env, algorithm: Ppo.make(), totalSteps: 50_000, validation: { everySteps: 10_000 } })
 * validated.pipe(Effect.provide(worse))
 * ```
 */
import { Context, type Effect, Layer, type Scope } from "effect"
import type { Backend } from "../../tensor/backend/Backend.ts"
import type { Env } from "../env/Env.ts"
import type { EnvError } from "../../base/EnvError.ts"
import type { Learner, LearnerError, SetupError } from "../learner/Learner.ts"
import type { PlayedEpisode } from "../../run/record/RunEvent.ts"

/** An episode of a validation: its return, its length, and how it ended. */
export type Episode = PlayedEpisode

/** The seed and the step of a validation. Draw all random numbers from these and the number of the episode. */
export interface At {
  readonly seed: number
  /** The number of env steps of the training before the validation. */
  readonly step: number
}

/** Validates the current policy: returns the episodes that it played, at least one. */
export type Validate = (at: At) => Effect.Effect<ReadonlyArray<Episode>, LearnerError>

export interface PlayerOptions {
  /** The number of episodes, each in an env of its own. */
  readonly episodes: number
  /** The number of the first episode; an episode's random numbers depend on its number. Default: 0. */
  readonly first?: number
  /**
   * The number of threads that step the envs; 0 steps them in the run's own thread. Default: the training's setting.
   */
  readonly workers?: number
  /** Whether actions are sampled instead of taking the best ones. Default: the training's setting. */
  readonly sampled?: boolean
  /** The number of steps after which an episode is cut off. Default: the training's setting. */
  readonly maxSteps?: number
}

/** The parts of a training from which a validator is made. */
export interface Input {
  /** The env of the training. */
  readonly env: Env
  /** The envs of `validation.envs`; the training's env if there are none. */
  readonly envs: ReadonlyArray<Env>
  /**
   * Makes a function that plays whole episodes of an env with the current policy, which sees observations normalised as in
   * the training. The env must have the spaces of the training's env.
   */
  readonly player: (
    env: Env,
    options: PlayerOptions,
  ) => Effect.Effect<Validate, SetupError | EnvError, Backend | Scope.Scope>
  /** Compiles the policy for a number of envs, for a validator that steps envs itself. */
  readonly policy: NonNullable<Learner["policy"]>
}

export interface OwnValidator {
  /** The name in the records of the run. */
  readonly name: string
  /** Makes the validator, once, before the training begins. */
  readonly make: (input: Input) => Effect.Effect<Validate, SetupError | EnvError, Backend | Scope.Scope>
}

/** The user's own validator; undefined for the built-in one. */
export const Current = Context.Reference<OwnValidator | undefined>("effect-rl/train/Validator", {
  defaultValue: () => undefined,
})

/** Makes the Layer that provides your own validator. */
export const layer = (validator: OwnValidator): Layer.Layer<never> => Layer.succeed(Current, validator)
