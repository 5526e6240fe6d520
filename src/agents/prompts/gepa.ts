/**
 * Improves the texts of an agent by reflection: GEPA (Agrawal et al. 2025, arXiv:2507.19457). An iteration draws a candidate
 * from the Pareto front, plays a minibatch with it, and asks the reflection model for a better version of one of its texts.
 * If the minibatch's scores improve with the new text, the new candidate is validated on all validation tasks and kept.
 * After an accepted reflection, two candidates of different lines of descent may be merged instead.
 *
 * The search asks its surroundings for scores and for reflections, and draws everything else from streams that the seed and
 * the iteration address. So equal answers give equal candidates, and a search that is repeated with recorded answers makes
 * the same requests in the same order.
 */
import { Effect } from "effect"
import { stream, type Stream } from "../../base/rng/Rng.ts"
import {
  added,
  type Iteration,
  meansOf,
  recorded,
  type SearchState,
  spent,
  takeText,
  type Texts,
} from "./candidates.ts"
import { frontOf, selectFrom } from "./front.ts"
import { type Merge, proposeMerge } from "./merging.ts"
import { minibatchOf } from "./minibatches.ts"
import * as Search from "./search.ts"

/** The settings of a search by reflection. */
export interface GepaSettings extends Search.SearchLimits {
  readonly seed: number
  /** The number of training tasks that an iteration plays with a candidate, and again with its proposal. */
  readonly minibatchSize: number
  /** Whether candidates are merged. */
  readonly merge: boolean
  /** The largest number of accepted merges. */
  readonly maxMerges: number
  /** The score with which there is nothing to improve: such a minibatch is not reflected on. null reflects on all. */
  readonly perfectScore: number | null
}

const sum = (values: ReadonlyArray<number>): number => values.reduce((total, value) => total + value, 0)

const addressOf = ({ seed }: GepaSettings, state: SearchState): Stream =>
  stream(seed, "prompts", "iteration", state.iterations.length)

/** Returns the largest number of tasks that an iteration plays. */
export const costOf = (
  { minibatchSize }: Pick<GepaSettings, "minibatchSize">,
  { train, validation }: Search.Surroundings<never, never>["sizes"],
): number => 2 * Math.min(minibatchSize, train) + validation

/** Searches until a limit is reached. Returns the last state, and the reason for the end. */
export const search = Effect.fnUntraced(function* <E, R>(
  settings: GepaSettings,
  seedTexts: Texts,
  around: Search.Surroundings<E, R>,
): Effect.fn.Return<{ readonly state: SearchState; readonly end: Search.SearchEnd }, E, R> {
  let state = yield* Search.validatedSeed(seedTexts, around)
  const cost = costOf(settings, around.sizes)
  while (true) {
    const end = Search.endOf(settings, state, cost)
    if (end !== undefined) return { state, end }
    state = yield* iterate(settings, state, around)
    yield* around.changed(state)
  }
})

/** Does one iteration: a merge if one is due and possible, otherwise a reflection. */
const iterate = Effect.fnUntraced(function* <E, R>(
  settings: GepaSettings,
  state: SearchState,
  around: Search.Surroundings<E, R>,
) {
  const { due, isNext } = state.merges
  const isDue = settings.merge && isNext && due > 0
  const merge = isDue ? proposeMerge(state, addressOf(settings, state).child("merge")) : undefined
  const now: SearchState = { ...state, merges: { ...state.merges, isNext: false } }
  return yield* merge === undefined ? reflect(settings, now, around) : tryMerge(now, merge, around)
})

/** Plays tasks, and counts them. */
const played = Effect.fnUntraced(function* <E, R>(
  state: SearchState,
  request: Omit<Search.TasksToPlay, "metricCalls">,
  { play }: Search.Surroundings<E, R>,
) {
  const trials = yield* play({ ...request, metricCalls: state.metricCalls })
  return { trials, state: spent(state, trials.length, Search.tokensOf(trials)) }
})

/** Validates an accepted candidate on the tasks that have no score yet, and adds it. */
const validated = Effect.fnUntraced(function* <E, R>(
  before: SearchState,
  { texts, parents, known }: { texts: Texts; parents: ReadonlyArray<number>; known: ReadonlyMap<number, number> },
  around: Search.Surroundings<E, R>,
) {
  const tasks = Search.allTasks(around.sizes.validation)
  const index = before.candidates.length
  const missing = tasks.filter((task) => !known.has(task))
  const request = { place: Search.validationPlace(index), set: "validation", texts, tasks: missing } as const
  const { trials } = yield* played(before, request, around)
  const scores = new Map([...known, ...trials.map(({ task, score }) => [task, score] as const)])
  const candidate = { texts, parents, scores: tasks.map((task) => scores.get(task) ?? 0) }
  // The candidate counts as found before its validation.
  const state = spent(added(before, candidate), trials.length, Search.tokensOf(trials))
  return { state, index }
})

/** Asks for a better version of one text of a candidate from the front, and keeps it if the minibatch's scores improve. */
const reflect = Effect.fnUntraced(function* <E, R>(
  settings: GepaSettings,
  begun: SearchState,
  around: Search.Surroundings<E, R>,
) {
  const number = begun.iterations.length
  const random = addressOf(settings, begun).child("select")
  const parent = selectFrom(frontOf(begun.candidates.map(({ scores }) => scores)), meansOf(begun), random)
  const tasks = minibatchOf({ ...settings, size: settings.minibatchSize, tasks: around.sizes.train }, number)
  const { texts } = begun.candidates[parent]
  const onParent = { place: `iteration/${number}/parent`, set: "train", texts, tasks } as const
  const first = yield* played(begun, onParent, around)
  const before = Search.scoresOf(first.trials)
  const about = {
    kind: "reflection",
    parents: [parent],
    changed: [],
    tasks,
    before,
    after: [],
    candidate: null,
  } as const
  const ended = (state: SearchState, more: Pick<Iteration, "outcome"> & Partial<Iteration>): SearchState =>
    recorded(state, { ...about, ...more })
  const { perfectScore } = settings
  if (perfectScore !== null && before.every((score) => score >= perfectScore))
    return ended(first.state, { outcome: "perfect" })

  const { name, state: taken } = takeText(first.state, parent)
  const question = { place: `iteration/${number}/reflection`, name, texts, trials: first.trials }
  const { answer, tokens } = yield* around.reflect({ ...question, metricCalls: taken.metricCalls })
  const asked = spent(taken, 0, tokens)
  if (answer._tag === "None") return ended(asked, { outcome: answer.reason, changed: [name] })

  const proposal = { ...texts, [name]: answer.text }
  const onProposal = { place: `iteration/${number}/proposal`, set: "train", texts: proposal, tasks } as const
  const second = yield* played(asked, onProposal, around)
  const after = Search.scoresOf(second.trials)
  const compared = { changed: [name], after }
  if (sum(after) <= sum(before)) return ended(second.state, { ...compared, outcome: "rejected" })

  const candidate = { texts: proposal, parents: [parent], known: new Map<number, number>() }
  const { state, index } = yield* validated(second.state, candidate, around)
  const { merges } = state
  const due = merges.due + (merges.accepted < settings.maxMerges ? 1 : 0)
  const next: SearchState = { ...state, merges: { ...merges, due, isNext: true } }
  return ended(next, { ...compared, outcome: "accepted", candidate: index })
})

/** Plays some validation tasks with a merge, and keeps it if it is at least as good as the better of its parents. */
const tryMerge = Effect.fnUntraced(function* <E, R>(
  begun: SearchState,
  { triplet, texts, origin, tasks }: Merge,
  around: Search.Surroundings<E, R>,
) {
  const [first, second] = triplet
  const { merges } = begun
  const remembered = { ...merges, triplets: [...merges.triplets, triplet], origins: [...merges.origins, origin] }
  const place = `iteration/${begun.iterations.length}/merge`
  const { trials, state: compared } = yield* played(begun, { place, set: "validation", texts, tasks }, around)
  const [before, other] = [first, second].map((index) => tasks.map((task) => begun.candidates[index].scores[task]))
  const after = Search.scoresOf(trials)
  const about = { kind: "merge", parents: [first, second], changed: [], tasks, before, after } as const
  const now: SearchState = { ...compared, merges: remembered }
  if (sum(after) < Math.max(sum(before), sum(other)))
    return recorded(now, { ...about, outcome: "rejected", candidate: null })
  const known = new Map(trials.map(({ task, score }) => [task, score]))
  const { state, index } = yield* validated(now, { texts, parents: [first, second], known }, around)
  const counted = { ...state.merges, due: state.merges.due - 1, accepted: state.merges.accepted + 1 }
  return recorded({ ...state, merges: counted }, { ...about, outcome: "accepted", candidate: index })
})
