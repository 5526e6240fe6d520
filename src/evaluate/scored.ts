import { Schema } from "effect"
import { Feedback } from "../task/Feedback.ts"
import { Ending, parseFailureOf, type Step } from "../episode/Rollout.ts"

/** A step as far as scores go: what the env made of an action, or what it cost to say none. */
export const ScoredStep = Schema.Struct({
  observation: Schema.String,
  /** Null where the model's words held none. */
  action: Schema.NullOr(Schema.String),
  feedback: Feedback,
  /** What the env gave; 0 where it wasn't stepped. */
  score: Schema.Finite,
  /** The score with what the parser gave or took; left out where that is nothing. */
  reward: Schema.optionalKey(Schema.Finite),
  nextObservation: Schema.NullOr(Schema.String),
  info: Schema.Record(Schema.String, Schema.Unknown),
  ...Ending.fields,
})
export type ScoredStep = typeof ScoredStep.Type

/**
 * What a step of a rollout scored; undefined of calls of the model that led to another one. The reward or penalty of a
 * parser is no part of the score, which stays within the range that the env gives.
 */
export const scored = (step: Step): ScoredStep | undefined => {
  const { reward, terminated, truncated, truncationReason } = step
  const ending = { terminated, truncated, truncationReason }
  const rewarded = (score: number): Pick<ScoredStep, "score" | "reward"> =>
    reward === score ? { score } : { score, reward }
  if (step._tag === "EnvironmentStep") {
    const { observation, action, feedback, nextObservation, info = {} } = step
    return { observation, action, feedback, ...rewarded(feedback.score), nextObservation, info, ...ending }
  }
  const { messages, incomplete } = step.call
  const failure = parseFailureOf(step)
  if (failure === null && reward === 0) return undefined
  const feedback = failure?.feedback ?? step.toolResults.at(-1)?.content ?? ""
  return {
    observation: messages.at(-1)?.content ?? "",
    action: null,
    feedback: { score: 0, target: null, message: feedback },
    ...rewarded(0),
    nextObservation: feedback,
    info: incomplete ? { parse_failed: true, incomplete_completion: true } : { parse_failed: true },
    ...ending,
  }
}
