/** Validates a checkpoint of a training. On request it also returns its policy or pictures, or writes its step folder. */
import { Context, Effect } from "effect"
import type { TrainedPolicy } from "../learner/TrainedPolicy.ts"
import * as ValidationRequest from "../../run/ValidationRequest.ts"

/** The results of `validate` besides the outcome. */
export interface CheckpointExtras {
  /** Whether to also write the folder of the checkpoint's step: episodes to watch, and the policy in every format. */
  readonly writesStepFolder?: boolean
  /** Whether to also return the checkpoint's policy as a graph with its weights. */
  readonly exportsPolicy?: boolean
  /** How many episodes of the validation to also return as pictures. Default: 0. */
  readonly films?: number
}

/** A validation's episodes as pictures. */
export interface Film {
  readonly env: string
  /** The pictures of each episode, as SVG documents. They are empty if the env cannot be drawn. */
  readonly episodes: ReadonlyArray<ReadonlyArray<string>>
  /** The number of pictures per second, from the training's config. */
  readonly speed: number
}

/** The request for these results. A training that validates a checkpoint calls `onExported` and `onFilmed` with them. */
export const CheckpointRequest = Context.Reference<
  CheckpointExtras & {
    readonly onExported: (policy: TrainedPolicy) => void
    readonly onFilmed: (film: Film) => void
  }
>("effect-rl/train/CheckpointRequest", { defaultValue: () => ({ onExported: () => {}, onFilmed: () => {} }) })

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
  { checkpoint, ...wanted }: CheckpointExtras & { readonly checkpoint: string },
) =>
  Effect.suspend(() => {
    let policy: TrainedPolicy | undefined
    let film: Film | undefined
    const onExported = (exported: TrainedPolicy): void => void (policy = exported)
    const onFilmed = (filmed: Film): void => void (film = filmed)
    return ValidationRequest.validate(training, { checkpoint }).pipe(
      Effect.provideService(CheckpointRequest, { ...wanted, onExported, onFilmed }),
      Effect.map((validated) => ({ ...validated, policy, film })),
    )
  })
