import type { RunEvent, ValidationEnded } from "./RunEvent.ts"
import { meanOf } from "../../statistics/resampling.ts"

/** Returns the numbers of an event by their names in TensorBoard; undefined for events without numbers. */
export const scalarsOf = (
  event: RunEvent,
): { readonly step: number; readonly values: Readonly<Record<string, number>> } | undefined =>
  event._tag === "UpdateApplied"
    ? { step: event.step, values: event.metrics }
    : event._tag === "ValidationEnded"
      ? { step: event.step, values: validationScalars(event) }
      : undefined

const validationScalars = ({ meanReturn, stdReturn, episodes }: ValidationEnded): Record<string, number> => {
  const length = meanOf(episodes.map((episode) => episode.length))
  return {
    "validation/score": meanReturn,
    "validation/score_std": stdReturn,
    "validation/episodic_length": length,
  }
}
