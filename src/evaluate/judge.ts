import { Effect } from "effect"
import type { LmService } from "../lm/Lm.ts"
import { type LmConfig, request } from "../lm/LmConfig.ts"
import { type LmError, isFinal } from "../lm/LmError.ts"
import { lastOf, type Played } from "./Played.ts"
import type { Scorer } from "./Scorer.ts"

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

const transcript = (played: Played): string => {
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
