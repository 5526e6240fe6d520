/** How one episode of an evaluation went, as plain data: what scorers look at, and what is kept to go on from. */
import { Schema } from "effect"
import { Failure } from "../episode/rollouts/Outcome.ts"
import { Ending, parseFailureOf, Rollout, type Step } from "../episode/Rollout.ts"
import { Feedback } from "../task/Feedback.ts"

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

/** A step, and when it was made. */
export const TimedStep = Schema.Struct({
  ...ScoredStep.fields,
  startedAtMillis: Schema.Finite,
  endedAtMillis: Schema.Finite,
})
export type TimedStep = typeof TimedStep.Type

/** What is known of a task before it is played. */
export const About = Schema.Struct({
  id: Schema.String,
  type: Schema.String,
  metadata: Schema.Record(Schema.String, Schema.Unknown),
})
export type About = typeof About.Type

export const PlayedEpisode = Schema.Struct({
  /** Among all episodes, from 0: those of a task follow one another. */
  index: Schema.Int,
  task: Schema.Int,
  repeat: Schema.Int,
  env: About,
  /** As far as it went; those of the first player where several play. */
  steps: Schema.Array(TimedStep),
  totalScore: Schema.Finite,
  ending: Ending,
  /** None where it failed; the first one is the agent's own, others are of whom it played with or delegated to. */
  rollouts: Schema.Array(Rollout),
  error: Schema.NullOr(Failure),
  startedAtMillis: Schema.Finite,
  endedAtMillis: Schema.Finite,
})
export type PlayedEpisode = typeof PlayedEpisode.Type

/** What was done last, and what would have been right, where there is such a thing. */
export const lastOf = ({
  steps,
}: Pick<PlayedEpisode, "steps">): { readonly answer: string | null; readonly target: string | null } => ({
  answer: steps.findLast(({ action }) => action !== null)?.action ?? null,
  target: steps.findLast(({ feedback }) => feedback.target !== null)?.feedback.target ?? null,
})

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
