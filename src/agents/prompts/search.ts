/**
 * Defines what a search for better prompts needs from its surroundings: a function that plays tasks with given texts, and one
 * that asks the reflection model. `gepa.ts` and `bootstrap.ts` are searches; `execute.ts` runs them as runs.
 */
import { Effect } from "effect"
import { bestOf, began, type ReflectionFailure, type SearchState, type Texts } from "./candidates.ts"
import { meanOf } from "../../base/statistics/resampling.ts"

/** A request to play tasks. */
export interface TasksToPlay {
  /** Names this request among all requests of the search, e.g. `iteration/3/parent`. */
  readonly place: string
  readonly set: "train" | "validation"
  /** The texts with which the agent plays. */
  readonly texts: Texts
  /** The tasks by their indices in the set. */
  readonly tasks: ReadonlyArray<number>
  /** The number of tasks that were played before this request. */
  readonly metricCalls: number
}

/** A played task. */
export interface Trial {
  readonly task: number
  readonly score: number
  readonly tokens: number
  /** The episode as a text, for reflections. */
  readonly example: string
  /** The input and the output of the episode, for few-shot examples; null if it had no single answer. */
  readonly shot: { readonly input: string; readonly output: string } | null
}

/** A request for a better text. */
export interface TextToImprove {
  readonly place: string
  /** The name of the text. */
  readonly name: string
  readonly texts: Texts
  readonly trials: ReadonlyArray<Trial>
  readonly metricCalls: number
}

/** The answer of the reflection model: a new text, or the reason why there is none. */
export interface Reflection {
  readonly answer:
    | { readonly _tag: "Text"; readonly text: string }
    | { readonly _tag: "None"; readonly reason: ReflectionFailure }
  readonly tokens: number
}

/** The surroundings of a search. */
export interface Surroundings<E, R> {
  /** The number of tasks for training and for validation. */
  readonly sizes: { readonly train: number; readonly validation: number }
  /** Plays tasks. The result has a trial for each task, in the same order. */
  readonly play: (request: TasksToPlay) => Effect.Effect<ReadonlyArray<Trial>, E, R>
  readonly reflect: (request: TextToImprove) => Effect.Effect<Reflection, E, R>
  /** Receives the state when the seed is validated, and after each iteration. */
  readonly changed: (state: SearchState) => Effect.Effect<void, E, R>
}

/** The limits of a search. */
export interface SearchLimits {
  /** The largest number of tasks to play. */
  readonly maxMetricCalls: number
  /** The number of tokens after which no iteration begins; null sets no limit. */
  readonly maxTokens: number | null
  /** The mean score on the validation tasks with which the search ends; null never ends it early. */
  readonly stopScore: number | null
}

/** The reasons for which a search ends. */
export type SearchEnd = "metric_calls" | "tokens" | "score" | "done"

/** Returns why no further iteration may begin; undefined if one may. `cost` is the largest number of tasks that it plays. */
export const endOf = (limits: SearchLimits, state: SearchState, cost: number): SearchEnd | undefined => {
  const { maxMetricCalls, maxTokens, stopScore } = limits
  if (stopScore !== null && meanOf(state.candidates[bestOf(state)].scores) >= stopScore) return "score"
  if (maxTokens !== null && state.tokens >= maxTokens) return "tokens"
  return state.metricCalls + cost > maxMetricCalls ? "metric_calls" : undefined
}

export const allTasks = (size: number): ReadonlyArray<number> => Array.from({ length: size }, (_, task) => task)

export const scoresOf = (trials: ReadonlyArray<Trial>): ReadonlyArray<number> => trials.map(({ score }) => score)

export const tokensOf = (trials: ReadonlyArray<Trial>): number => trials.reduce((sum, { tokens }) => sum + tokens, 0)

/** The place of a candidate's validation. */
export const validationPlace = (candidate: number): string => `validation/${candidate}`

/** Plays all validation tasks with the seed's texts, and makes the state with which a search begins. */
export const validatedSeed = Effect.fnUntraced(function* <E, R>(
  texts: Texts,
  { sizes, play, changed }: Surroundings<E, R>,
): Effect.fn.Return<SearchState, E, R> {
  const tasks = allTasks(sizes.validation)
  const trials = yield* play({ place: validationPlace(0), set: "validation", texts, tasks, metricCalls: 0 })
  const state = began(texts, scoresOf(trials), tokensOf(trials))
  yield* changed(state)
  return state
})
