/**
 * Finds few-shot examples for an agent among its own successes: bootstrapped few-shot with a random search (Khattab et al.
 * 2023, arXiv:2310.03714). The agent plays training tasks until enough of them succeeded. Then each iteration draws a few of
 * these successes, writes them into one text, and validates the agent with it. No reflection model is asked.
 */
import { Effect } from "effect"
import { stream } from "../../base/rng/Rng.ts"
import { added, recorded, type SearchState, spent, type Texts } from "./candidates.ts"
import * as Search from "./search.ts"

/** The settings of a search for few-shot examples. */
export interface BootstrapSettings extends Search.SearchLimits {
  readonly seed: number
  /** The name of the text that the examples replace. */
  readonly text: string
  /** The number of examples in the text. */
  readonly shots: number
  /** The number of sets of examples that are tried. */
  readonly sets: number
  /** The smallest score of an episode that can be an example. */
  readonly goodScore: number
}

/** The number of training tasks that are played at once to find successes. */
const playedAtOnce = 8

/** Writes examples as the text that the agent's prompt shows. */
export const examplesText = (shots: ReadonlyArray<NonNullable<Search.Trial["shot"]>>): string =>
  shots.map(({ input, output }, at) => `Example ${at + 1}\n\nInput:\n${input}\n\nOutput:\n${output}`).join("\n\n")

/**
 * Plays training tasks in a random order until there are enough successes for all sets, or no tasks are left. `end` is the
 * reason why a limit ended this before; undefined if none did.
 */
const successes = Effect.fnUntraced(function* <E, R>(
  settings: BootstrapSettings,
  begun: SearchState,
  around: Search.Surroundings<E, R>,
) {
  const { seed, shots, sets, goodScore } = settings
  const { train, validation } = around.sizes
  const order = [...stream(seed, "prompts", "bootstrap").permutation(new Int32Array(train))]
  const found: Array<NonNullable<Search.Trial["shot"]>> = []
  let state = begun
  let end: Search.SearchEnd | undefined
  for (let at = 0; at < train && found.length < shots * Math.min(sets, 4); at += playedAtOnce) {
    const tasks = order.slice(at, at + playedAtOnce)
    // Leave enough of the budget to validate one set.
    end = Search.endOf(settings, state, tasks.length + validation)
    if (end !== undefined) break
    const { metricCalls } = state
    const request = {
      place: `bootstrap/${at}`,
      set: "train",
      texts: begun.candidates[0].texts,
      tasks,
      metricCalls,
    } as const
    const trials = yield* around.play(request)
    state = spent(state, trials.length, Search.tokensOf(trials))
    for (const { score, shot } of trials) if (score >= goodScore && shot !== null) found.push(shot)
  }
  return { state, found, end }
})

/** Validates the seed, then sets of examples until all are tried or a limit is reached. */
export const search = Effect.fnUntraced(function* <E, R>(
  settings: BootstrapSettings,
  seedTexts: Texts,
  around: Search.Surroundings<E, R>,
): Effect.fn.Return<{ readonly state: SearchState; readonly end: Search.SearchEnd }, E, R> {
  const tasks = Search.allTasks(around.sizes.validation)
  const validated = yield* Search.validatedSeed(seedTexts, around)
  const { state: ready, found, end: stopped } = yield* successes(settings, validated, around)
  let state = ready
  for (let set = 0; set < settings.sets && found.length > 0; set++) {
    const order = stream(settings.seed, "prompts", "examples", set).permutation(new Int32Array(found.length))
    const shots = [...order.subarray(0, settings.shots)].map((at) => found[at])
    const text = examplesText(shots)
    // With few successes, the same set is drawn again. It has its scores already.
    if (state.candidates.some((candidate) => candidate.texts[settings.text] === text)) continue
    const end = Search.endOf(settings, state, tasks.length)
    if (end !== undefined) return { state, end }
    const texts = { ...seedTexts, [settings.text]: text }
    const { metricCalls } = state
    const index = state.candidates.length
    const request = { place: Search.validationPlace(index), set: "validation", texts, tasks, metricCalls } as const
    const trials = yield* around.play(request)
    const after = Search.scoresOf(trials)
    const counted = spent(added(state, { texts, parents: [0], scores: after }), trials.length, Search.tokensOf(trials))
    const before = counted.candidates[0].scores
    const about = {
      kind: "examples",
      parents: [0],
      changed: [settings.text],
      tasks: [...tasks],
      before,
      after,
    } as const
    state = recorded(counted, { ...about, outcome: "accepted", candidate: index })
    yield* around.changed(state)
  }
  return { state, end: stopped ?? "done" }
})
