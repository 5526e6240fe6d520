/**
 * Merges two candidates that descend from a common ancestor, as in GEPA (Agrawal et al. 2025, arXiv:2507.19457, section 3.3):
 * a text that only one of them has changed since the ancestor is taken from that one. These are pure functions.
 *
 * @example
 * ```ts
 * const ancestor = { plan: "a", answer: "b" }
 * // One line of descent changed the plan, the other one the answer: the merge has both changes.
 * mergedTexts([ancestor, { plan: "A", answer: "b" }, { plan: "a", answer: "B" }], [1, 2, 0], [0.1, 0.5, 0.6], Rng.stream(1, "merge"))
 * ```
 */
import type { Stream } from "../../base/rng/Rng.ts"
import { type Candidate, meansOf, type SearchState, type Texts } from "./candidates.ts"
import { frontOf, tasksInFront, undominated } from "./front.ts"

/** Two candidates and their common ancestor, by their indices; the first is smaller than the second. */
type Triplet = readonly [first: number, second: number, ancestor: number]

/** Validation tasks on which a merged candidate is compared with its parents. */
const comparedTasks = 5

/** Returns all ancestors of a candidate. */
export const ancestorsOf = (
  candidates: ReadonlyArray<Pick<Candidate, "parents">>,
  index: number,
): ReadonlySet<number> => {
  const found = new Set<number>()
  const open = [...candidates[index].parents]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (found.has(next)) continue
    found.add(next)
    open.push(...candidates[next].parents)
  }
  return found
}

/** Tells whether there is something to merge: a text that exactly one of the two has changed since the ancestor. */
export const isDesirable = (texts: ReadonlyArray<Texts>, [first, second, ancestor]: Triplet): boolean =>
  Object.keys(texts[ancestor]).some((name) => {
    const [before, one, other] = [texts[ancestor][name], texts[first][name], texts[second][name]]
    return one !== other && (before === one || before === other)
  })

/**
 * Returns the common ancestors of two candidates that a merge can start from: those that no merge of the two has used, that
 * are no better than either, and since which there is something to merge.
 */
export const usableAncestors = (
  { candidates, merges }: Pick<SearchState, "candidates" | "merges">,
  [first, second]: readonly [number, number],
  means: ReadonlyArray<number>,
): ReadonlyArray<number> => {
  const [left, right] = [ancestorsOf(candidates, first), ancestorsOf(candidates, second)]
  if (left.has(second) || right.has(first)) return []
  const texts = candidates.map((candidate) => candidate.texts)
  return [...left]
    .sort((a, b) => a - b)
    .filter(
      (ancestor) =>
        right.has(ancestor) &&
        !merges.triplets.some(([a, b, c]) => a === first && b === second && c === ancestor) &&
        means[ancestor] <= means[first] &&
        means[ancestor] <= means[second] &&
        isDesirable(texts, [first, second, ancestor]),
    )
}

/**
 * Takes each text from one of the two candidates: from the one that has changed it since the ancestor, or if both have, from
 * the one with the higher mean; of equal means, one is drawn. `origins` has the candidate of each text.
 */
export const mergedTexts = (
  texts: ReadonlyArray<Texts>,
  [first, second, ancestor]: Triplet,
  means: ReadonlyArray<number>,
  random: Stream,
): { readonly texts: Texts; readonly origins: ReadonlyArray<number> } => {
  const better = (name: string): number => {
    if (means[first] !== means[second]) return means[first] > means[second] ? first : second
    return random.child(name).integer(2) === 0 ? first : second
  }
  const originOf = (name: string): number => {
    const [before, one, other] = [texts[ancestor][name], texts[first][name], texts[second][name]]
    if (one === other) return first
    if (before === one) return second
    return before === other ? first : better(name)
  }
  const names = Object.keys(texts[ancestor])
  const origins = names.map(originOf)
  return { texts: Object.fromEntries(names.map((name, at) => [name, texts[origins[at]][name]])), origins }
}

const isSame = (left: Texts, right: Texts): boolean => Object.keys(left).every((name) => left[name] === right[name])

/** A proposed merge. */
export interface Merge {
  readonly triplet: Triplet
  readonly texts: Texts
  /** The key under which `Merges.origins` remembers the merge. */
  readonly origin: string
  /** The validation tasks on which the merge is compared with its parents. */
  readonly tasks: ReadonlyArray<number>
}

/** Draws one item, with a probability in proportion to its weight; if no weight is positive, all have the same chance. */
const weighted = (weights: ReadonlyArray<number>, random: Stream): number => {
  const positive = weights.map((weight) => Math.max(0, weight))
  return positive.some((weight) => weight > 0) ? random.categorical(positive) : random.integer(weights.length)
}

/**
 * Draws the validation tasks on which a merge is compared with its parents: from those at which the first parent is better,
 * those at which the second one is, and those at which they are equal, two of each if there are enough.
 */
export const tasksToCompare = (
  first: ReadonlyArray<number>,
  second: ReadonlyArray<number>,
  random: Stream,
): ReadonlyArray<number> => {
  const all = first.map((_, task) => task)
  const groups = [
    all.filter((task) => first[task] > second[task]),
    all.filter((task) => first[task] < second[task]),
    all.filter((task) => first[task] === second[task]),
  ]
  const drawn = (from: ReadonlyArray<number>, count: number, part: string): ReadonlyArray<number> =>
    Array.from(random.child(part).permutation(new Int32Array(from.length)), (at) => from[at]).slice(0, count)
  const each = Math.ceil(comparedTasks / groups.length)
  const chosen = groups.flatMap((group, at) => drawn(group, each, `group ${at}`)).slice(0, comparedTasks)
  const rest = all.filter((task) => !chosen.includes(task))
  return [...chosen, ...drawn(rest, comparedTasks - chosen.length, "rest")]
}

/**
 * Proposes a merge of two candidates of the undominated front. The pair is drawn among all pairs that can be merged, then the
 * ancestor, with a probability in proportion to its mean. A merge is not proposed twice, nor if it would repeat a candidate.
 * Returns undefined if no merge is possible, or if there are fewer validation tasks than a comparison needs.
 */
export const proposeMerge = (state: SearchState, random: Stream): Merge | undefined => {
  const { candidates, merges } = state
  const means = meansOf(state)
  const scores = candidates.map((candidate) => candidate.scores)
  if (candidates.length < 3 || scores[0].length < comparedTasks) return undefined
  const texts = candidates.map((candidate) => candidate.texts)
  const mergeable = [...tasksInFront(undominated(frontOf(scores), means)).keys()]
  const triplets = mergeable.flatMap((first, at) =>
    mergeable
      .slice(at + 1)
      .flatMap((second) => usableAncestors(state, [first, second], means).map((one): Triplet => [first, second, one])),
  )
  const possible = triplets.flatMap((triplet) => {
    const merged = mergedTexts(texts, triplet, means, random.child("texts", ...triplet))
    const origin = JSON.stringify([triplet[0], triplet[1], merged.origins])
    const isKnown = merges.origins.includes(origin) || texts.some((one) => isSame(one, merged.texts))
    return isKnown ? [] : [{ triplet, texts: merged.texts, origin }]
  })
  const pairs = [...new Set(possible.map(({ triplet: [first, second] }) => `${first} ${second}`))]
  if (pairs.length === 0) return undefined
  const pair = pairs[random.child("pair").integer(pairs.length)]
  const ofPair = possible.filter(({ triplet: [first, second] }) => `${first} ${second}` === pair)
  const chosen =
    ofPair[
      weighted(
        ofPair.map(({ triplet }) => means[triplet[2]]),
        random.child("ancestor"),
      )
    ]
  const [first, second] = chosen.triplet
  return { ...chosen, tasks: tasksToCompare(scores[first], scores[second], random.child("tasks")) }
}
