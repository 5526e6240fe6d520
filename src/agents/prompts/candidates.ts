/**
 * Defines the state of a search for better prompts: the candidates that were found so far, and what each iteration did. A
 * candidate is a record of named texts with its scores on the validation tasks. These are plain data and pure functions; a
 * saved state is the state encoded by its Schema.
 *
 * @example
 * ```ts
 * const state = began({ system_prompt: "Answer briefly." }, [0, 1, 0])
 * bestOf(state) // 0, the index of the only candidate
 * ```
 */
import { Schema } from "effect"
import { meanOf } from "../../base/statistics/resampling.ts"
import { highest } from "../../base/statistics/extremes.ts"

/** The texts of an agent by name. */
export const Texts = Schema.Record(Schema.String, Schema.String)
export type Texts = typeof Texts.Type

/** The reasons for which the answer of the reflection model gave no new text. */
export const ReflectionFailure = Schema.Literals(["no_text", "same_text", "too_long", "cut_off", "withheld"])
export type ReflectionFailure = typeof ReflectionFailure.Type

const candidateFields = {
  texts: Texts,
  /** The indices of the candidates from which this one was made: none for the seed, two for a merge. */
  parents: Schema.Array(Schema.Int),
  /** The score on each validation task. */
  scores: Schema.Array(Schema.Finite),
  /** The index of the text that the next reflection on this candidate changes: texts take turns. */
  nextText: Schema.Int,
  /** The number of metric calls (played tasks) when the candidate was found, before its own validation. */
  foundAfter: Schema.Int,
}

export const Candidate = Schema.Struct(candidateFields)
export type Candidate = typeof Candidate.Type

/** Describes what an iteration of the search did. */
export const Iteration = Schema.Struct({
  kind: Schema.Literals(["reflection", "merge", "examples"]),
  /** The candidates that were changed or merged. */
  parents: Schema.Array(Schema.Int),
  /** The names of the texts that the proposal changed; for a merge, none. */
  changed: Schema.Array(Schema.String),
  /** The tasks on which parent and proposal were compared. */
  tasks: Schema.Array(Schema.Int),
  /** The scores of the first parent on these tasks. */
  before: Schema.Array(Schema.Finite),
  /** The scores of the proposal on these tasks; empty if there was no proposal. */
  after: Schema.Array(Schema.Finite),
  /**
   * The result: `accepted` (a new candidate), `rejected` (no better on the tasks), `perfect` (nothing to improve, so nothing
   * was proposed), or the reason why the reflection gave no text.
   */
  outcome: Schema.Union([Schema.Literals(["accepted", "rejected", "perfect"]), ReflectionFailure]),
  /** The index of the new candidate; null if there is none. */
  candidate: Schema.NullOr(Schema.Int),
})
export type Iteration = typeof Iteration.Type

/** The merges so far, and whether another one is due. */
const Merges = Schema.Struct({
  /** The number of merges that may be tried: each accepted reflection adds one, each accepted merge takes one. */
  due: Schema.Int,
  accepted: Schema.Int,
  /** Whether the last iteration found a candidate by reflection. Only then is a merge tried. */
  isNext: Schema.Boolean,
  /** The merges that were proposed: two candidates and their common ancestor. They are not proposed again. */
  triplets: Schema.Array(Schema.Tuple([Schema.Int, Schema.Int, Schema.Int])),
  /** The same merges by the candidates from which each text was taken, as JSON. */
  origins: Schema.Array(Schema.String),
})

/** The state of a search. */
export const SearchState = Schema.Struct({
  candidates: Schema.Array(Candidate),
  iterations: Schema.Array(Iteration),
  /** The number of tasks that were played so far. */
  metricCalls: Schema.Int,
  /** The tokens of the agent and of the reflection model so far. */
  tokens: Schema.Int,
  merges: Merges,
})
export type SearchState = typeof SearchState.Type

/** Makes the state of a search that has validated only the seed, which is the first candidate. */
export const began = (texts: Texts, scores: ReadonlyArray<number>, tokens = 0): SearchState => ({
  candidates: [{ texts, parents: [], scores, nextText: 0, foundAfter: 0 }],
  iterations: [],
  metricCalls: scores.length,
  tokens,
  merges: { due: 0, accepted: 0, isNext: false, triplets: [], origins: [] },
})

/** Counts played tasks and used tokens. */
export const spent = (state: SearchState, metricCalls: number, tokens: number): SearchState => ({
  ...state,
  metricCalls: state.metricCalls + metricCalls,
  tokens: state.tokens + tokens,
})

/** Adds the record of an iteration. */
export const recorded = (state: SearchState, iteration: Iteration): SearchState => ({
  ...state,
  iterations: [...state.iterations, iteration],
})

/** A candidate that was accepted, with its scores on all validation tasks. */
interface NewCandidate {
  readonly texts: Texts
  readonly parents: ReadonlyArray<number>
  readonly scores: ReadonlyArray<number>
}

/** Adds a candidate. The text that its first reflection changes is the furthest of its parents. */
export const added = (state: SearchState, { texts, parents, scores }: NewCandidate): SearchState => {
  const nextText = Math.max(0, ...parents.map((parent) => state.candidates[parent].nextText))
  const candidate = { texts, parents, scores, nextText, foundAfter: state.metricCalls }
  return { ...state, candidates: [...state.candidates, candidate] }
}

/** Takes the name of the text that a reflection on a candidate changes; the next reflection takes the next text. */
export const takeText = (state: SearchState, index: number): { readonly name: string; readonly state: SearchState } => {
  const candidate = state.candidates[index]
  const names = Object.keys(candidate.texts)
  const nextText = (candidate.nextText + 1) % names.length
  return {
    name: names[candidate.nextText],
    state: { ...state, candidates: state.candidates.with(index, { ...candidate, nextText }) },
  }
}

/** Returns the mean score of each candidate on the validation tasks. */
export const meansOf = ({ candidates }: Pick<SearchState, "candidates">): ReadonlyArray<number> =>
  candidates.map(({ scores }) => meanOf(scores))

/** Returns the index of the candidate with the highest mean score; the first of several. */
export const bestOf = (state: Pick<SearchState, "candidates">): number => {
  const means = meansOf(state)
  return means.indexOf(highest(means))
}
