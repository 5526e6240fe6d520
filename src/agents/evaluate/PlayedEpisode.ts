/**
 * Defines the Schema of an episode that a language-model agent played in an evaluation. Tables, scores and events are made
 * from it. `scored` converts a step of a rollout (the record of an episode) to a scored step; trainings of agents use it,
 * too. These are pure functions.
 */
import { Schema } from "effect"
import { RolloutFailure } from "../episode/rollouts/Outcome.ts"
import { RolloutEnding, parseFailureOf, Rollout, type RolloutStep } from "../episode/Rollout.ts"
import { Feedback } from "../task/Feedback.ts"

/**
 * A step with a score: an env step, or an answer of the model without an action, whose score is 0 and whose reward is the
 * penalty.
 */
const ScoredStep = Schema.Struct({
  observation: Schema.String,
  /** The action; null if the model's answer contained no action. */
  action: Schema.NullOr(Schema.String),
  feedback: Feedback,
  /** The env's score; 0 if the env did not take a step. */
  score: Schema.Finite,
  /** The score plus the parser's bonus or penalty; left out if there is no bonus or penalty. */
  reward: Schema.optionalKey(Schema.Finite),
  nextObservation: Schema.NullOr(Schema.String),
  info: Schema.Record(Schema.String, Schema.Unknown),
  ...RolloutEnding.fields,
})
type ScoredStep = typeof ScoredStep.Type

/** A scored step with the times at which it began and ended. */
export const TimedStep = Schema.Struct({
  ...ScoredStep.fields,
  startedAtMillis: Schema.Finite,
  endedAtMillis: Schema.Finite,
})
export type TimedStep = typeof TimedStep.Type

/** Identifies a task, with the metadata that the data set has about it. */
export const TaskInfo = Schema.Struct({
  id: Schema.String,
  type: Schema.String,
  metadata: Schema.Record(Schema.String, Schema.Unknown),
  /** Identifies the content of a question whose id is only its position. */
  content: Schema.optionalKey(Schema.String),
})
export type TaskInfo = typeof TaskInfo.Type

export const EpisodeToScore = Schema.Struct({
  /** The position among all episodes, counted from 0; the episodes of a task are adjacent. */
  index: Schema.Int,
  /** The position of the task in the data set, counted from 0. */
  task: Schema.Int,
  /** The position of the episode among those of its task, counted from 0. */
  repeat: Schema.Int,
  env: TaskInfo,
  /** The scored steps of the first player. If the episode failed, the steps before the failure. */
  steps: Schema.Array(TimedStep),
  totalScore: Schema.Finite,
  ending: RolloutEnding,
  /** The rollouts: first the agent's own, then those of other players and sub-agents. Empty if the episode failed. */
  rollouts: Schema.Array(Rollout),
  error: Schema.NullOr(RolloutFailure),
  startedAtMillis: Schema.Finite,
  endedAtMillis: Schema.Finite,
})
export type EpisodeToScore = typeof EpisodeToScore.Type

/** Returns the last action (`answer`) and right answer (`target`) of an episode, each null if there is none. */
export const lastOf = ({ steps }: Pick<EpisodeToScore, "steps">) => ({
  answer: steps.findLast(({ action }) => action !== null)?.action ?? null,
  target: steps.findLast(({ feedback }) => feedback.target !== null)?.feedback.target ?? null,
})

/**
 * Converts a step of a rollout to a scored step. Returns undefined for a call of the model that led to an env step or another
 * call, because only that one is scored. The bonus or penalty of the agent's parser is part of `reward` but not of `score`,
 * so that the score stays within the env's range.
 */
export const scored = (step: RolloutStep): ScoredStep | undefined => {
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
