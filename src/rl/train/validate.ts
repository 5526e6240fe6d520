/** Validates a checkpoint of a training, and gives what it is asked for besides: the policy, pictures, the folder of the step. */
import { Context, Effect } from "effect"
import type { TrainedPolicy } from "../learner/TrainedPolicy.ts"
import * as ValidationRequest from "../../run/ValidationRequest.ts"

/** What `validate` is asked for besides the outcome. */
export interface WantedFromCheckpoint {
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

/** What a training that validates a checkpoint is asked for besides; it calls `onExported` and `onFilmed` with it. */
export const CheckpointWishes = Context.Reference<
  WantedFromCheckpoint & {
    readonly onExported: (policy: TrainedPolicy) => void
    readonly onFilmed: (film: Film) => void
  }
>("effect-rl/train/CheckpointWishes", { defaultValue: () => ({ onExported: () => {}, onFilmed: () => {} }) })

/**
 * Validates the policy in one of a run's checkpoints, as the training would have validated it at that step. The run's scores,
 * logs and results do not change.
 *
 * @example
 * ```ts
 * const { outcome } = yield* Train.validate(Train.run({ env: CartPole.env, algorithm: Ppo.make() }), { checkpoint: "latest" })
 * ```
 */
export const validate = <A, E, R>(
  training: Effect.Effect<A, E, R>,
  { checkpoint, ...wanted }: WantedFromCheckpoint & { readonly checkpoint: string },
) =>
  Effect.suspend(() => {
    let policy: TrainedPolicy | undefined
    let film: Film | undefined
    const onExported = (exported: TrainedPolicy): void => void (policy = exported)
    const onFilmed = (filmed: Film): void => void (film = filmed)
    return ValidationRequest.validate(training, { checkpoint }).pipe(
      Effect.provideService(CheckpointWishes, { ...wanted, onExported, onFilmed }),
      Effect.map((validated) => ({ ...validated, policy, film })),
    )
  })
