/**
 * Defines scorers, and makes the built-in ones. A scorer computes a number from a played episode, or null if there is nothing
 * to score, for instance because the task has no right answer. Means leave out an episode with null. Only the judge calls a
 * language model; the others are pure functions. `Scorers.ts` makes scorers from configs, `rows.ts` applies them.
 *
 * @example
 * ```ts
 * const short = Scorer.make("short", ({ steps }) => (steps.length <= 3 ? 1 : 0))
 * const liked = Scorer.judge({ lm, config: LmConfig.make({ model: "gpt-4.1-mini" }), rubric: "Is it polite?" })
 * ```
 */
import { Effect } from "effect"
import { exact as sameText, f1 as sameWords, type AnswerScorer } from "../task/answers/score.ts"
import { messageOf } from "../../base/text/text.ts"
import { AgentError } from "../agent/AgentError.ts"
import { normalise, unboxed } from "../task/answers/text.ts"
import type { LmService } from "../lm/Lm.ts"
import { type LmConfig, request } from "../lm/LmConfig.ts"
import { type LmError, isFinal } from "../lm/LmError.ts"
import { type ScoreDirection, usualDirection } from "./report/direction.ts"
import type { ScorerLabel } from "./report/judgeAgreement.ts"
import { lastOf, type EpisodeToScore } from "./PlayedEpisode.ts"
import { usageOf } from "../episode/Rollout.ts"

export interface Scorer {
  readonly name: string
  /** Which values of this scorer are better. */
  readonly direction: ScoreDirection
  /** Whether the scorer measures time. Such scores vary, so the digest of an evaluation's results leaves them out. */
  readonly timed: boolean
  /** The label of the tasks that the scores are compared with, for a judge. */
  readonly label?: ScorerLabel
  /** Scores an episode; failed episodes are not scored. */
  readonly score: (played: EpisodeToScore) => Effect.Effect<number | null, LmError | AgentError>
}

type Score = number | null

/**
 * Makes a scorer from a function of an episode. By default higher values are better, except for costs: scorers named
 * `tokens`, `cost`, `calls` or `latency`. `direction` overrides this. If the function throws, scoring fails with an
 * `AgentError`.
 */
export const make = (
  name: string,
  score: (played: EpisodeToScore) => Score | Effect.Effect<Score, LmError>,
  { direction = usualDirection(name) }: { readonly direction?: ScoreDirection } = {},
): Scorer => ({
  name,
  direction,
  timed: false,
  score: (played) =>
    Effect.suspend(() => {
      const value = score(played)
      return Effect.isEffect(value) ? value : Effect.succeed(value)
    }).pipe(Effect.catchDefect((error) => Effect.fail(threw(name, played, error)))),
})

const threw = (name: string, { index }: EpisodeToScore, error: unknown): AgentError =>
  new AgentError({
    agent: name,
    message: `scorers: ${name} threw for episode ${index + 1}: ${messageOf(error)}; expected a number or null`,
    ...(error instanceof Error && error.stack !== undefined ? { userStack: error.stack } : {}),
  })

/** What a scorer function gets: the texts of an episode, as most libraries of scorers name them. */
export interface ScoredAnswer {
  /** The first observation of the episode, e.g. the question. */
  readonly input: string
  /** The last action of the episode; empty if there was none. */
  readonly output: string
  /** The right answer; left out if the task has none. */
  readonly expected?: string
  /** The task's metadata from the data set. */
  readonly metadata: Readonly<Record<string, unknown>>
}

/** What a scorer function returns besides a number or null. With an `error`, the episode counts as not scored. */
export interface FunctionScore {
  readonly score: number | null
  readonly error?: unknown
}

type FunctionResult = number | null | FunctionScore

/**
 * Makes a scorer from a function of an episode's input, output and right answer, which may be asynchronous. The scorers of the
 * package `autoevals` are such functions. The scorer's name is that of the function unless the options have one. If the function
 * throws or rejects, scoring fails with an `AgentError`.
 *
 * @example
 * ```ts
 * const long = Scorer.fromFunction(({ output }) => (output.length > 100 ? 1 : 0), { name: "long" })
 * ```
 */
export const fromFunction = (
  score: (answer: ScoredAnswer) => FunctionResult | Promise<FunctionResult>,
  { name = score.name === "" ? "function" : score.name, ...options }: FunctionScorerOptions = {},
): Scorer => ({
  ...make(name, () => null, options),
  score: (played) =>
    Effect.tryPromise({
      try: async () => valueOf(await score(answerOf(played))),
      catch: (error) => threw(name, played, error),
    }),
})

interface FunctionScorerOptions {
  readonly name?: string
  readonly direction?: ScoreDirection
}

const answerOf = (played: EpisodeToScore): ScoredAnswer => {
  const { answer, target } = lastOf(played)
  return {
    input: played.steps[0]?.observation ?? "",
    output: answer ?? "",
    ...(target === null ? {} : { expected: target }),
    metadata: played.env.metadata,
  }
}

const valueOf = (result: FunctionResult): Score => {
  const isWhole = typeof result === "object" && result !== null
  if (isWhole && result.error !== undefined && result.error !== null) return null
  const value = isWhole ? result.score : result
  if (value === null || typeof value === "number") return value
  throw new TypeError(`it returned ${typeof value}`)
}

/** Makes the scorer that returns the sum of the env's scores. */
export const score = (name = "score"): Scorer => make(name, ({ totalScore }) => totalScore)

/** Makes the scorer that returns 1 if the sum of the env's scores reaches a threshold, otherwise 0. */
export const solved = ({ name = "solved", threshold = 1 } = {}): Scorer =>
  make(name, ({ totalScore }) => (totalScore >= threshold ? 1 : 0))

/** Makes the scorer that counts the steps of an episode. */
export const steps = (name = "steps"): Scorer => make(name, (played) => played.steps.length, { direction: "none" })

/** Makes a scorer that compares the last action of an episode with the right answer (the target). */
const answered = (name: string, compare: AnswerScorer): Scorer =>
  make(name, (played) => {
    const { answer, target } = lastOf(played)
    // An episode without an answer counts as wrong, even if it has no target.
    if (answer === null) return 0
    return target === null ? null : compare(answer, { targets: [target] }).score
  })

/**
 * Makes the scorer that returns 1 if the last action equals the target, otherwise 0. It ignores upper and lower case, spaces,
 * quotes, a full stop and a surrounding `\boxed{…}`.
 */
export const exact = (name = "exact"): Scorer => answered(name, sameText)

/** Makes the scorer that returns the F1 score of the words that the last action and the target have in common. */
export const f1 = (name = "f1"): Scorer => answered(name, sameWords)

/** Makes the scorer that returns 1 if the last action contains the target, otherwise 0. It ignores case and extra spaces. */
export const contains = (name = "contains"): Scorer =>
  make(name, (played) => {
    const { answer, target } = lastOf(played)
    if (answer === null) return 0
    if (target === null) return null
    return normalise(answer).includes(normalise(unboxed(target))) ? 1 : 0
  })

/** Makes the scorer that counts the tokens of all prompts and answers. */
export const tokens = (name = "tokens"): Scorer =>
  make(
    name,
    ({ rollouts }) => {
      const { inputTokens, outputTokens } = usageOf(rollouts)
      return inputTokens + outputTokens
    },
    lower,
  )

const lower = { direction: "lower" } as const

/** Makes the scorer that counts the calls of the model. */
export const calls = (name = "calls"): Scorer => make(name, ({ rollouts }) => usageOf(rollouts).calls, lower)

/** Makes the scorer that measures the duration of an episode in seconds. */
export const latency = (name = "latency"): Scorer => ({
  ...make(name, ({ startedAtMillis, endedAtMillis }) => (endedAtMillis - startedAtMillis) / 1000, lower),
  timed: true,
})

export interface JudgeOptions {
  readonly name?: string
  readonly lm: LmService
  readonly config: LmConfig
  /** The description of a good answer, which the judge reads. */
  readonly rubric: string
  /** The label of the tasks with which the judge's agreement is reported. */
  readonly label?: ScorerLabel | undefined
}

/**
 * Makes the scorer that asks a language model to score the episode from 0 to 1. It returns null if the call fails or the
 * answer has no such score. A wrong API key or a spent budget is an error, because every later call would fail, too.
 */
export const judge = ({ name = "judge", lm, config, rubric, label }: JudgeOptions): Scorer => ({
  name,
  direction: "higher",
  timed: false,
  ...(label === undefined ? {} : { label }),
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

const transcript = (played: EpisodeToScore): string => {
  const { target } = lastOf(played)
  const lines = played.steps.flatMap(({ observation, action }) => [
    `OBSERVATION: ${observation}`,
    `ACTION: ${action ?? "(none)"}`,
  ])
  return [...lines, ...(target === null ? [] : [`A RIGHT ANSWER: ${target}`])].join("\n")
}

/**
 * Returns the last score in a judge's answer, e.g. 0.5 for `SCORE: 0.5`. Returns null if the answer has no score, or if
 * the score is above 1 or written as a fraction (`4/5`).
 */
export const verdictOf = (text: string): number | null => {
  const match = [...text.matchAll(/\bscore\b[*"']*\s*[:=][\s*"']*(\d+(?:\.\d+)?|\.\d+)(\s*\/\s*\d)?/gi)].at(-1)
  if (match === undefined || match[2] !== undefined) return null
  const value = Number(match[1])
  return value <= 1 ? value : null
}
