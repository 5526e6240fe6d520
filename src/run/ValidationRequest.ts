/**
 * Validates a checkpoint of a run. `validate` runs the run's own Effect with a request as a service: trainings with numbers
 * and with words read the request, and then validate the checkpoint instead of training.
 */
import { Context, Effect } from "effect"
import type { ValidationOutcome } from "./evaluation.ts"

/**
 * The request that makes a training validate a checkpoint instead of training; undefined to train. The training calls
 * `onPlayed` with the outcome of the validation.
 */
export const ValidationRequest = Context.Reference<
  | {
      /** The name of the checkpoint to validate, or `latest`. */
      readonly checkpoint: string
      readonly onPlayed: (outcome: ValidationOutcome) => void
    }
  | undefined
>("effect-rl/run/ValidationRequest", { defaultValue: () => undefined })

/**
 * Validates a checkpoint of a run, as the run itself would have validated at that step. The run's scores, logs and results do
 * not change.
 *
 * @example
 * ```ts
 * const { outcome } = yield* Runtime.validate(training, { checkpoint: "latest" })
 * ```
 */
export const validate = <A, E, R>(
  training: Effect.Effect<A, E, R>,
  { checkpoint }: { readonly checkpoint: string },
): Effect.Effect<{ readonly result: A; readonly outcome: ValidationOutcome | undefined }, E, R> =>
  Effect.suspend(() => {
    let outcome: ValidationOutcome | undefined
    const onPlayed = (played: ValidationOutcome): void => void (outcome = played)
    return training.pipe(
      Effect.provideService(ValidationRequest, { checkpoint, onPlayed }),
      // The result has the metrics of the run at the checkpoint; `outcome` has the episodes of this validation.
      Effect.map((result) => ({ result, outcome })),
    )
  })
