import type { RunEvent, ValidationEnded } from "./RunEvent.ts"
import { meanOf } from "../../base/statistics/resampling.ts"

/**
 * Returns the numbers that the event of an update or a validation holds, by their names in TensorBoard; undefined for other
 * events. A validation on several envs also has the score of each env, and a validation of a game the score of each agent.
 * The sinks for TensorBoard, CSV and Effect's metrics use it.
 */
export const scalarsOf = (
  event: RunEvent,
): { readonly step: number; readonly values: Readonly<Record<string, number>> } | undefined => {
  if (event._tag === "UpdateApplied") return { step: event.step, values: event.metrics }
  if (event._tag !== "ValidationEnded") return undefined
  const values = {
    "validation/score": event.meanReturn,
    "validation/score_std": event.stdReturn,
    "validation/episodic_length": meanOf(countedIn(event.episodes).map(({ length }) => length)),
    ...scoresOf(scoresBy({ episodes: countedIn(event.episodes) }, "env")),
    ...scoresOf(scoresBy(event, "agent")),
  }
  return { step: event.step, values }
}

/** Returns the episodes of a validation that count for its score. */
export const countedIn = <Episode extends { readonly counts?: boolean }>(
  episodes: ReadonlyArray<Episode>,
): ReadonlyArray<Episode> => episodes.filter(({ counts = true }) => counts)

/** Returns the mean return of each env or of each agent, if there are several. Episodes without an agent are left out. */
export const scoresBy = (
  { episodes }: Pick<ValidationEnded, "episodes">,
  key: "env" | "agent",
): ReadonlyArray<readonly [name: string, meanReturn: number]> => {
  const groups = Map.groupBy(episodes, (episode) => episode[key])
  if (groups.size < 2) return []
  return [...groups].flatMap(([name, own]) =>
    name === undefined ? [] : [[name, meanOf(own.map((episode) => episode.return))] as const],
  )
}

const scoresOf = (scores: ReturnType<typeof scoresBy>): Readonly<Record<string, number>> =>
  Object.fromEntries(scores.map(([name, score]) => [`validation/score/${name}`, score]))
