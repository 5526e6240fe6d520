/** How one episode of an evaluation went, as plain data: what scorers look at, and what is kept to go on from. */
import { Schema } from "effect"
import { Failure } from "../episode/rollouts/Outcome.ts"
import { Ending, Rollout } from "../episode/Rollout.ts"
import { ScoredStep } from "./scored.ts"

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

export const Played = Schema.Struct({
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
export type Played = typeof Played.Type

/** What was done last, and what would have been right, where there is such a thing. */
export const lastOf = ({
  steps,
}: Pick<Played, "steps">): { readonly answer: string | null; readonly target: string | null } => ({
  answer: steps.findLast(({ action }) => action !== null)?.action ?? null,
  target: steps.findLast(({ feedback }) => feedback.target !== null)?.feedback.target ?? null,
})
