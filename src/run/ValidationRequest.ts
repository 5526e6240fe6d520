/**
 * Validates a checkpoint of a training. `validate` runs the training's own Effect with a request as a service:
 * `Train.ts` and the runtime of agents read the request, and then validate the checkpoint instead of training.
 */
import { Context, Effect } from "effect"
import type { ValidationOutcome } from "./evaluation.ts"
import type { TrainedPolicy } from "./TrainedPolicy.ts"

/** The options of `validate`. */
export interface ValidationOptions {
  /** The name of the checkpoint to validate, or `latest`. */
  readonly checkpoint: string
  /** Whether to also write the folder of the checkpoint's step: episodes to watch, and the policy in every format. */
  readonly writesStepFolder?: boolean
  /** Whether to also return the checkpoint's policy as a graph with its weights. */
  readonly exportsPolicy?: boolean
  /** How many episodes of the validation to also return as pictures. Default: 0. */
  readonly films?: number
}

/** The pictures of a validation's episodes. */
export interface Film {
  readonly env: string
  /** The pictures of each episode, as SVG documents. They are empty if the env cannot be drawn. */
  readonly episodes: ReadonlyArray<ReadonlyArray<string>>
  /** The number of pictures in a second that the training's config wants. */
  readonly speed: number
}

/**
 * The request that makes a training validate a checkpoint instead of training; undefined to train. The training calls
 * `onPlayed` with the outcome of the validation, and `onExported` and `onFilmed` if the request asks for a policy or pictures.
 */
export const ValidationRequest = Context.Reference<
  | (ValidationOptions & {
      readonly onPlayed: (outcome: ValidationOutcome) => void
      readonly onExported: (policy: TrainedPolicy) => void
      readonly onFilmed: (film: Film) => void
    })
  | undefined
>("effect-rl/run/ValidationRequest", { defaultValue: () => undefined })

/**
 * Validates the policy or agent in one of a run's checkpoints, as the training would have validated it at that step. The
 * run's scores, logs and results do not change.
 *
 * @example
 * ```ts
 * const { outcome } = yield* Train.validate(Train.run({ env: CartPole.env, algorithm: Ppo.make() }), { checkpoint: "latest" })
 * ```
 */
export const validate = <A, E, R>(training: Effect.Effect<A, E, R>, options: ValidationOptions) =>
  Effect.suspend(() => {
    let outcome: ValidationOutcome | undefined
    let policy: TrainedPolicy | undefined
    let film: Film | undefined
    const onPlayed = (played: ValidationOutcome): void => void (outcome = played)
    const onExported = (exported: TrainedPolicy): void => void (policy = exported)
    const onFilmed = (filmed: Film): void => void (film = filmed)
    return training.pipe(
      Effect.provideService(ValidationRequest, { ...options, onPlayed, onExported, onFilmed }),
      // The result has the metrics of the run at the checkpoint; `outcome` has the episodes of this validation.
      Effect.map((result) => ({ result, outcome, policy, film })),
    )
  })
