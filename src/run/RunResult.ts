/** The Schemas of the result of a training by reinforcement learning, which is the content of its `metrics.json`. */
import * as Schema from "effect/Schema"

/** The mean return of an agent of a game in a validation. */
export const AgentScore = Schema.Struct({ agent: Schema.String, meanReturn: Schema.Finite })
export type AgentScore = typeof AgentScore.Type

/** Summarises a validation: its step, its number of episodes, and the mean and standard deviation of their returns. */
export const ValidationSummary = Schema.Struct({
  step: Schema.Int,
  episodes: Schema.Int,
  meanReturn: Schema.Finite,
  stdReturn: Schema.Finite,
  /** The score of each agent of a game, including agents that do not count for the mean above. */
  agents: Schema.optionalKey(Schema.Array(AgentScore)),
})
export type ValidationSummary = typeof ValidationSummary.Type

/** The result of a training, which `effect run --json` prints. */
export const RunResult = Schema.Struct({
  runDir: Schema.String,
  steps: Schema.Int,
  /** The number of training episodes. For a multi-run trainer, the number of samples, including imitated answers. */
  episodes: Schema.Int,
  /** The mean return of all training episodes; null before the first episode ends. */
  meanScore: Schema.NullOr(Schema.Finite),
  /** The mean return of the last 100 training episodes; null before the first episode ends. */
  meanReturn: Schema.NullOr(Schema.Finite),
  /** The summary of the last validation; null if there was none. */
  validation: Schema.NullOr(ValidationSummary),
  /** The number of validations that failed; run.log has the reasons. */
  failedValidations: Schema.Int,
  /** The number of training episodes whose simulation diverged; left out if none did. */
  divergedEpisodes: Schema.optionalKey(Schema.Int),
  /** The SHA-256 over the final weights and all scores. Runs with equal digests have learned exactly the same. */
  digest: Schema.String,
  /** The seconds that all processes of the run took, including their starts. */
  wallSeconds: Schema.Finite,
  /**
   * The steps of the last process, divided by the seconds that it trained. Compiling programs at the start does not count.
   */
  stepsPerSecond: Schema.Finite,
})
export type RunResult = typeof RunResult.Type

/** Returns the mean number of steps per second, or 0 if no time has passed. */
export const speedOf = (steps: number, seconds: number): number => (seconds > 0 ? steps / seconds : 0)
