import type { RunEvent, ValidationEnded } from "./RunEvent.ts"
import { meanOf } from "../../statistics/resampling.ts"

/**
 * Returns the numbers that the event of an update or a validation holds, by their names in TensorBoard; undefined for
 * other events. A validation on several envs has the score on each one too. The sinks for TensorBoard, CSV and Effect's metrics share it.
 */
export const scalarsOf = (
  event: RunEvent,
): { readonly step: number; readonly values: Readonly<Record<string, number>> } | undefined => {
  if (event._tag === "UpdateApplied") return { step: event.step, values: event.metrics }
  if (event._tag !== "ValidationEnded") return undefined
  const values = {
    "validation/score": event.meanReturn,
    "validation/score_std": event.stdReturn,
    "validation/episodic_length": meanOf(event.episodes.map(({ length }) => length)),
    ...scoresByEnv(event),
  }
  return { step: event.step, values }
}

/** Returns the mean return on each env, if there are several. */
const scoresByEnv = ({ episodes }: ValidationEnded): Readonly<Record<string, number>> => {
  const byEnv = Map.groupBy(episodes, ({ env }) => env)
  if (byEnv.size < 2) return {}
  return Object.fromEntries(
    [...byEnv].map(([env, own]) => [`validation/score/${env}`, meanOf(own.map((episode) => episode.return))]),
  )
}
