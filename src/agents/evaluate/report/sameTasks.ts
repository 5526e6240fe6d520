/**
 * Checks that tasks with the same id in two evaluations are the same tasks. Without ids of their own, tasks are numbered, so that
 * one inserted question gives all later ones the ids of others; `withIdsOf` undoes that by the content of the questions.
 *
 * @example
 * ```ts
 * const [before, after] = [yield* Evaluations.readRows("results/a"), yield* Evaluations.readRows("results/b")]
 * taskProblem(before, after) // the task qa-2 has the right answer "Rome" in one evaluation and "Paris" in the other, …
 * ```
 */
import { shortened } from "../../../base/text/text.ts"
import type { EpisodeRow } from "../rows.ts"

type EpisodeRows = ReadonlyArray<EpisodeRow>

/** The type of the tasks of evaluations that other programs played. It says nothing, so it is compared with no other type. */
export const importedType = "imported"

interface TaskFacts {
  readonly types: Set<string>
  /** The right answers of episodes of one step. In longer episodes they can depend on what the agent did. */
  readonly targets: Set<string>
}

const factsById = (rows: EpisodeRows): ReadonlyMap<string, TaskFacts> => {
  const facts = new Map<string, TaskFacts>()
  for (const { env_id, env_type, target, steps } of rows) {
    const { types, targets } = facts.get(env_id) ?? { types: new Set(), targets: new Set() }
    facts.set(env_id, { types, targets })
    if (env_type !== importedType) types.add(env_type)
    if (target !== null && steps === 1) targets.add(target)
  }
  return facts
}

/** Returns the key of each task's content, by the task's id: the content, and its place among equal questions. */
const contentKeys = (rows: EpisodeRows): ReadonlyMap<string, string> => {
  const keys = new Map<string, string>()
  const counts = new Map<string, number>()
  for (const { env_id, content } of rows.toSorted((a, b) => a.task - b.task)) {
    if (content === undefined || keys.has(env_id)) continue
    const count = counts.get(content) ?? 0
    counts.set(content, count + 1)
    keys.set(env_id, `${content} ${count}`)
  }
  return keys
}

/**
 * Returns the rows of an earlier evaluation with the ids that the same questions have in `rows`. Questions without an id of their
 * own are numbered, so one that was inserted, removed or moved changes the numbers of others: they are the same if they have the
 * same text and choices. Without contents on both sides, which older evaluations have not saved, the ids stay as they are.
 */
export const withIdsOf = (rows: EpisodeRows, earlier: EpisodeRows): EpisodeRows => {
  const before = contentKeys(earlier)
  const idByKey = new Map([...contentKeys(rows)].map(([id, key]) => [key, id]))
  if (before.size === 0 || idByKey.size === 0) return earlier
  return earlier.map((row) => {
    const key = before.get(row.env_id)
    return key === undefined ? row : { ...row, env_id: idByKey.get(key) ?? `${row.env_id} (only before)` }
  })
}

/** Returns the two different values; undefined if they are equal, or if either side has none or several. */
const difference = (left: ReadonlySet<string>, right: ReadonlySet<string>) => {
  const [[one], [other]] = [left, right].map((side) => [...side])
  return left.size === 1 && right.size === 1 && one !== other ? [one, other] : undefined
}

const quoted = (text: string): string => JSON.stringify(shortened(text))

/** Says which task has the same id in both evaluations, but another right answer or type; undefined if there is none. */
export const taskProblem = (left: EpisodeRows, right: EpisodeRows): string | undefined => {
  const before = factsById(left)
  for (const [id, { types, targets }] of factsById(right)) {
    const earlier = before.get(id)
    if (earlier === undefined) continue
    const changedType = difference(earlier.types, types)
    const changed = changedType ?? difference(earlier.targets, targets)
    if (changed === undefined) continue
    const what = changedType === undefined ? "right answer" : "type"
    const values = `${quoted(changed[0])} in one evaluation and ${quoted(changed[1])} in the other`
    return `the task ${id} has the ${what} ${values}, so they are different tasks; give the tasks ids (id_field), and play both again`
  }
  return undefined
}
