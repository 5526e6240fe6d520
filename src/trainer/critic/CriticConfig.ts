/** Declares the config of a critic, for PPO on tokens: the value of each token's context, learned from the rewards of the run. */
import { Schema } from "effect"
import { bounded, fraction, positive, withDefault } from "../../base/config/fields.ts"
import { advantageEstimatorOf, type TokenObjective } from "../../rl/losses/Losses.ts"

export const CriticConfig = Schema.Struct({
  /** The factor by which a reward counts less for each token before it; 1 counts it the same for all tokens. */
  gamma: withDefault(fraction, 1),
  /** The λ of generalised advantage estimation: 1 uses only rewards, 0 only the values of the next tokens. */
  lambda: withDefault(fraction, 0.95),
  /** The learning rate of the values. */
  lr: withDefault(positive, 0.01),
  /** The number of passes over the tokens of a step. */
  epochs: withDefault(bounded("epochs"), 4),
  /** How far a value may move in a step before its loss is clipped; null never clips. */
  clip: withDefault(Schema.NullOr(positive), 0.2),
  /**
   * The value after the last token of an episode that a limit cut off: with `end` it is 0, with `bootstrap` it is that of the
   * context after that token. `end` fits limits that belong to the task, and `bootstrap` those that only save time.
   */
  truncated: withDefault(Schema.Literals(["end", "bootstrap"]), "end"),
})
export type CriticConfig = typeof CriticConfig.Type

/** Returns what in a run's settings does not fit its critic. */
export const criticProblem = ({
  critic,
  objective,
  teacher,
  rollouts,
}: {
  readonly critic: CriticConfig | null
  readonly objective: TokenObjective
  readonly teacher: object | null
  readonly rollouts: { readonly keep: number | null }
}) => {
  if (critic === null) return undefined
  if (advantageEstimatorOf(objective.type) === null)
    return { path: ["critic"], issue: `Expected no critic, because ${objective.type} has no advantages` }
  if (teacher !== null) return { path: ["critic"], issue: "Expected no critic beside a teacher" }
  return rollouts.keep === 0
    ? {
        path: ["rollouts", "keep"],
        issue: "Expected at least 1, because the critic is kept with the samples of a step",
      }
    : undefined
}
