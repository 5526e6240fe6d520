/** Picks the best run of each group of runs, for `effect runs best`. This is a pure function. */
import type { RunValue } from "./Value.ts"
import { meanOf } from "../../base/statistics/resampling.ts"

interface RunCandidate<A> {
  readonly run: A
  /** The value to compare. A run without a finite number is left out. */
  readonly value: RunValue | undefined
  /** The values that define the group: runs with equal lists belong to one group. */
  readonly group: ReadonlyArray<RunValue | undefined>
}

/**
 * Returns for each group its best run (the one with the highest value, or the lowest if `lowest` is true), the mean of its
 * values, and its number of runs. The group with the best run comes first. Of runs with equal values, the first one wins.
 */
export const best = <A>(candidates: ReadonlyArray<RunCandidate<A>>, lowest = false) => {
  const sign = lowest ? 1 : -1
  const finite = candidates.flatMap(({ run, value, group }) =>
    typeof value === "number" && Number.isFinite(value) ? [{ run, value, group }] : [],
  )
  const groups = Map.groupBy(finite, ({ group }) => JSON.stringify(group.map((part) => part ?? null)))
  return [...groups.values()]
    .map((members) => ({
      ...members.toSorted((a, b) => sign * (a.value - b.value))[0],
      /** The number of runs in the group that have a finite value. */
      runs: members.length,
      mean: meanOf(members.map(({ value }) => value)),
    }))
    .sort((a, b) => sign * (a.value - b.value))
}
