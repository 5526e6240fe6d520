/**
 * Chooses the candidate to improve next, as in GEPA (Agrawal et al. 2025, arXiv:2507.19457). For each validation task, the
 * front has the candidates with the best score on it. Candidates that others can replace on all their tasks are dropped, and
 * one of the rest is drawn, with a probability in proportion to the number of its tasks. So a candidate that is best at a
 * few tasks is kept, even if its mean is low.
 *
 * @example
 * ```ts
 * const front = frontOf([[1, 0], [0, 1], [1, 0]]) // [[0, 2], [1]]
 * undominated(front, [0.5, 0.5, 0.5]) // [[2], [1]]: of equal candidates, the later one stays
 * ```
 */
import type { Stream } from "../../base/rng/Rng.ts"
import { highest } from "../../base/statistics/extremes.ts"

/** The candidates with the best score on each task, by their indices in ascending order. */
type Front = ReadonlyArray<ReadonlyArray<number>>

/** Returns the best candidates on each task. `scores` has a row for each candidate and a column for each task. */
export const frontOf = (scores: ReadonlyArray<ReadonlyArray<number>>): Front =>
  (scores[0] ?? []).map((_, task) => {
    const best = highest(scores.map((row) => row[task]))
    return scores.flatMap((row, candidate) => (row[task] === best ? [candidate] : []))
  })

/**
 * Drops candidates whose every task has another remaining candidate in the front. They are examined from the lowest mean to
 * the highest, and of equal means in the order of their indices.
 */
export const undominated = (front: Front, means: ReadonlyArray<number>): Front => {
  const remaining = new Set(front.flat())
  const ascending = [...remaining].sort((a, b) => means[a] - means[b] || a - b)
  for (const candidate of ascending) {
    const own = front.filter((best) => best.includes(candidate))
    if (own.every((best) => best.some((other) => other !== candidate && remaining.has(other))))
      remaining.delete(candidate)
  }
  return front.map((best) => best.filter((candidate) => remaining.has(candidate)))
}

/** Counts the tasks of each candidate in a front. The result is in ascending order of the candidates' indices. */
export const tasksInFront = (front: Front): ReadonlyMap<number, number> => {
  const counts = new Map<number, number>()
  for (const candidate of front.flat().sort((a, b) => a - b)) counts.set(candidate, (counts.get(candidate) ?? 0) + 1)
  return counts
}

/** Draws a candidate from the undominated front, with a probability in proportion to the number of its tasks. */
export const selectFrom = (front: Front, means: ReadonlyArray<number>, random: Stream): number => {
  const counts = tasksInFront(undominated(front, means))
  return [...counts.keys()][random.categorical([...counts.values()])]
}
