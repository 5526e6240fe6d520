/**
 * A task of one turn: the agent answers a question, and the answer is scored.
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
import { type StepInput, make as makeEnv, type TextEnv } from "./TextEnv.ts"

/** A scorer that may need to wait, for a program to run or a model to judge. */
export type AnyScorer = (answer: string, key: Key) => FeedbackInput | Effect.Effect<FeedbackInput, EnvError>

export interface Question {
  readonly id: string
  readonly type: string
  readonly metadata?: Readonly<Record<string, unknown>>
  /** The observation of the agent. */
  readonly observation: string
  readonly key: Key
  readonly score: AnyScorer
}

const over = (feedback: FeedbackInput): StepInput & { readonly state: null } => ({
  state: null,
  observation: null,
  feedback,
  terminated: true,
})

/** Makes an env of one step from a question. */
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
