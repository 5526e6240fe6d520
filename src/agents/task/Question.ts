/**
 * Makes tasks of one step: the agent answers a question, and a scorer gives feedback on the answer.
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
import type { EnvError } from "../../base/EnvError.ts"
import type { AnswerKey } from "./answers/score.ts"
import type { FeedbackInput } from "./Feedback.ts"
import { type StepInput, make as makeEnv, type TextEnv } from "./TextEnv.ts"

/** Returns feedback on an answer; as an Effect if it needs the result of a program or a model. */
export type AnyScorer = (answer: string, key: AnswerKey) => FeedbackInput | Effect.Effect<FeedbackInput, EnvError>

export interface QuestionOptions {
  readonly id: string
  readonly type: string
  readonly metadata?: Readonly<Record<string, unknown>>
  /** The digest of a question without an id of its own; see `TextEnv`. */
  readonly content?: string | undefined
  /** The text that the agent gets: the question with its instructions. */
  readonly observation: string
  readonly key: AnswerKey
  readonly score: AnyScorer
}

const lastStep = (feedback: FeedbackInput): StepInput & { readonly state: null } => ({
  state: null,
  observation: null,
  feedback,
  terminated: true,
})

/** Makes an env of one step from a question. */
export const make = ({ id, type, metadata, content, observation, key, score }: QuestionOptions): TextEnv =>
  makeEnv<null>({
    id,
    type,
    ...(metadata === undefined ? {} : { metadata }),
    ...(content === undefined ? {} : { content }),
    maxSteps: 1,
    ...(key.targets.length > 0 && { target: key.targets[0] }),
    begin: () => ({ state: null, observation }),
    step: (_, answer) => {
      const feedback = score(answer, key)
      return Effect.isEffect(feedback) ? Effect.map(feedback, lastStep) : lastStep(feedback)
    },
  })
