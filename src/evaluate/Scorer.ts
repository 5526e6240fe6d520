/**
 * What is looked at in an episode that was played: a function of it, or an Effect where somebody must be asked. Null says
 * that there is nothing to score, such as an answer where no target is known; that episode is in no mean then.
 *
 * @example
 * ```ts
 * const short = Scorer.make("short", ({ steps }) => (steps.length <= 3 ? 1 : 0))
 * const liked = Scorer.judge({ lm, config: LmConfig.make({ model: "gpt-4.1-mini" }), rubric: "Is it polite?" })
 * ```
 */
import { Effect, Schema } from "effect"
import { exact as sameText, f1 as sameWords, type Scorer as AnswerScorer } from "../task/answers/score.ts"
import { messageOf } from "../config/text.ts"
import { normalise, unboxed } from "../task/answers/text.ts"
import type { LmService } from "../lm/Lm.ts"
import { type LmConfig, request } from "../lm/LmConfig.ts"
import { type LmError, isFinal } from "../lm/LmError.ts"
import { lastOf, type PlayedEpisode } from "./PlayedEpisode.ts"
import { usageOf } from "../episode/Rollout.ts"

/** A scorer of the user's own that threw. */
export class ScorerError extends Schema.TaggedError<ScorerError>()("ScorerError", {
  scorer: Schema.String,
  message: Schema.String,
  /** Where the user's own code threw. */
  userStack: Schema.optionalKey(Schema.String),
}) {}

export interface Scorer {
  readonly name: string
  /** It measures time, so it is in nothing that is the same in every run of a seed. */
  readonly timed: boolean
  /** Of an episode that didn't fail. */
  readonly score: (played: PlayedEpisode) => Effect.Effect<number | null, LmError | ScorerError>
}

type Score = number | null

/** Makes a scorer of a function. What it throws is a `ScorerError`. */
export const make = (
  name: string,
  score: (played: PlayedEpisode) => Score | Effect.Effect<Score, LmError>,
): Scorer => ({
  name,
  timed: false,
  score: (played) =>
    Effect.suspend(() => {
      const found = score(played)
      return Effect.isEffect(found) ? found : Effect.succeed(found)
    }).pipe(
      Effect.catchDefect((error) =>
        Effect.fail(
          new ScorerError({
            scorer: name,
            message: `scorers: ${name} threw for episode ${played.index + 1}: ${messageOf(error)}; expected a number or null`,
            ...(error instanceof Error && error.stack !== undefined ? { userStack: error.stack } : {}),
          }),
        ),
      ),
    ),
})

/** What the env gave in all. */
export const score = (name = "score"): Scorer => make(name, ({ totalScore }) => totalScore)

/** 1 where what the env gave in all is at least so much, else 0. */
export const solved = ({ name = "solved", threshold = 1 } = {}): Scorer =>
  make(name, ({ totalScore }) => (totalScore >= threshold ? 1 : 0))

export const steps = (name = "steps"): Scorer => make(name, (played) => played.steps.length)

const answered = (name: string, compare: AnswerScorer): Scorer =>
  make(name, (played) => {
    const { answer, target } = lastOf(played)
    // Who says nothing is never told what was right, and wasn't right.
    if (answer === null) return 0
    return target === null ? null : compare(answer, { targets: [target] }).score
  })

/** 1 where the last action is the target, apart from case, spaces, quotes, a full stop and a box around it. */
export const exact = (name = "exact"): Scorer => answered(name, sameText)

/** How many words the last action and the target have in common. */
export const f1 = (name = "f1"): Scorer => answered(name, sameWords)

/** 1 where the target is somewhere in the last action. */
export const contains = (name = "contains"): Scorer =>
  make(name, (played) => {
    const { answer, target } = lastOf(played)
    if (answer === null) return 0
    if (target === null) return null
    return normalise(answer).includes(normalise(unboxed(target))) ? 1 : 0
  })

/** Of all prompts and answers. */
export const tokens = (name = "tokens"): Scorer =>
  make(name, ({ rollouts }) => {
    const { inputTokens, outputTokens } = usageOf(rollouts)
    return inputTokens + outputTokens
  })

/** How often the model was asked. */
export const calls = (name = "calls"): Scorer => make(name, ({ rollouts }) => usageOf(rollouts).calls)

/** Seconds from the episode's beginning to its end. */
export const latency = (name = "latency"): Scorer => ({
  ...make(name, ({ startedAtMillis, endedAtMillis }) => (endedAtMillis - startedAtMillis) / 1000),
  timed: true,
})

export interface Judge {
  readonly name?: string
  readonly lm: LmService
  readonly config: LmConfig
  /** What makes a good answer. */
  readonly rubric: string
}

/**
 * A language model reads the episode and gives from 0 to 1 by a rubric. Where it doesn't, or gives no answer at all, the
 * episode has no such score.
 */
export const judge = ({ name = "judge", lm, config, rubric }: Judge): Scorer => ({
  name,
  timed: false,
  score: (played) =>
    lm
      .complete(
        request(config, [
          { role: "system", content: `${instruction}\n\nRUBRIC: ${rubric}` },
          { role: "user", content: transcript(played) },
        ]),
      )
      .pipe(
        Effect.map(({ content }) => verdictOf(content)),
        Effect.catch((error): Effect.Effect<null, LmError> =>
          isFinal(error) ? Effect.fail(error) : Effect.succeed(null),
        ),
      ),
})

const instruction = [
  "You judge what somebody did in a task by the rubric below, and by nothing else.",
  "Say in a sentence or two what speaks for it and against it.",
  "Then end with a line SCORE: x, where x is a number from 0 (fails the rubric) to 1 (meets it in full).",
].join(" ")

const transcript = (played: PlayedEpisode): string => {
  const { target } = lastOf(played)
  const lines = played.steps.flatMap(({ observation, action }) => [
    `OBSERVATION: ${observation}`,
    `ACTION: ${action ?? "(none)"}`,
  ])
  return [...lines, ...(target === null ? [] : [`A RIGHT ANSWER: ${target}`])].join("\n")
}

/** The last score that was named; null where there is none from 0 to 1. */
export const verdictOf = (text: string): number | null => {
  const said = [...text.matchAll(/\bscore\b[*"']*\s*[:=]\s*[*"']*\s*(\d+(?:\.\d+)?|\.\d+)(\s*\/\s*\d)?/gi)].at(-1)
  if (said === undefined || said[2] !== undefined) return null
  const value = Number(said[1])
  return value <= 1 ? value : null
}
