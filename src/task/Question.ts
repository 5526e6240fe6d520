/**
 * A task of one turn: something is asked, the answer is scored, and that is all.
 *
 * @example
 * ```ts
 * const env = Question.make({
 *   id: "capital-1",
 *   type: "qa",
 *   metadata: {},
 *   observation: "What is the capital of France?",
 *   key: { targets: ["Paris"] },
 *   score: Scoring.exact,
 * })
 * ```
 */
import { Effect } from "effect"
import type { EnvError } from "../env/EnvError.ts"
import type { Key } from "./answers/score.ts"
import type { FeedbackInput } from "./Feedback.ts"
import { type GivenStep, make as makeEnv, type TextEnv } from "./TextEnv.ts"

/** A scorer that may have to wait: for a program to run, or for a model to judge. */
export type AnyScorer = (answer: string, key: Key) => FeedbackInput | Effect.Effect<FeedbackInput, EnvError>

export interface Question {
  readonly id: string
  readonly type: string
  readonly metadata?: Readonly<Record<string, unknown>>
  /** What the agent sees. */
  readonly observation: string
  readonly key: Key
  readonly score: AnyScorer
}

const over = (feedback: FeedbackInput): GivenStep & { readonly state: null } => ({
  state: null,
  observation: null,
  feedback,
  terminated: true,
})

/** The question as an env of one step. */
export const make = ({ id, type, metadata, observation, key, score }: Question): TextEnv =>
  makeEnv<null>({
    id,
    type,
    ...(metadata === undefined ? {} : { metadata }),
    maxSteps: 1,
    begin: () => ({ state: null, observation }),
    step: (_, answer) => {
      const feedback = score(answer, key)
      return Effect.isEffect(feedback) ? Effect.map(feedback, over) : over(feedback)
    },
  })
