import { Context, Effect } from "effect"
import type { ValidationOutcome } from "./evaluation.ts"

/** The options of `validate`. */
export interface ValidationOptions {
  /** The name of a checkpoint, or `latest`. */
  readonly checkpoint: string
  /** Writes the folder of the checkpoint's step, too: episodes to watch, and the policy in every format. */
  readonly writesStepFolder?: boolean
}

/** A validation of a checkpoint. */
interface Validated<A> {
  /** The result of the run, as its checkpoint holds it. */
  readonly result: A
  readonly outcome: ValidationOutcome | undefined
}

/** How `validate` tells the training that it runs to validate instead. */
export const ValidationRequest = Context.Reference<
  (ValidationOptions & { readonly onPlayed: (outcome: ValidationOutcome) => void }) | undefined
>("effect-rl/run/ValidationRequest", { defaultValue: () => undefined })

/**
 * Validates what one of a run's checkpoints holds, as the training would have validated it then. The run's scores, logs
 * and results stay as they are.
 *
 * @example
 * ```ts
 * const { outcome } = yield* Train.validate(Train.run({ env: CartPole.env, algorithm: Ppo.make() }), { checkpoint: "latest" })
 * ```
 */
export const validate = <A, E, R>(
  training: Effect.Effect<A, E, R>,
  options: ValidationOptions,
): Effect.Effect<Validated<A>, E, R> =>
  Effect.suspend(() => {
    let outcome: ValidationOutcome | undefined
    const onPlayed = (played: ValidationOutcome): void => void (outcome = played)
    return training.pipe(
      Effect.provideService(ValidationRequest, { ...options, onPlayed }),
      Effect.map((result) => ({ result, outcome })),
    )
  })
