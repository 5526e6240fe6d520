import type { Value } from "./Value.ts"
import { meanOf } from "../../statistics/resampling.ts"

interface Candidate<A> {
  readonly run: A
  /** The value to compare. A run without a finite number is left out. */
  readonly value: Value | undefined
  /** The values that define the group: runs with equal lists belong to one group. */
  readonly group: ReadonlyArray<Value | undefined>
}

interface Best<A> {
  readonly run: A
  readonly value: number
  readonly group: ReadonlyArray<Value | undefined>
  /** The number of runs in the group that have a finite value. */
  readonly runs: number
  readonly mean: number
}

/** Returns the best run of each group, sorted by value. Of equal runs, the first one wins. */
export const best = <A>(candidates: ReadonlyArray<Candidate<A>>, lowest = false): ReadonlyArray<Best<A>> => {
  const groups = new Map<string, Array<Best<A>>>()
  for (const { run, value, group } of candidates) {
    if (typeof value !== "number" || !Number.isFinite(value)) continue
    const key = JSON.stringify(group.map((part) => part ?? null))
    const member = { run, value, group, runs: 1, mean: value }
    const known = groups.get(key)
    if (known === undefined) groups.set(key, [member])
    else known.push(member)
  }
  const ahead = (a: Best<A>, b: Best<A>): boolean => (lowest ? a.value < b.value : a.value > b.value)
  return [...groups.values()]
    .map((members) => ({
      ...members.reduce((leader, member) => (ahead(member, leader) ? member : leader)),
      runs: members.length,
      mean: meanOf(members.map(({ value }) => value)),
    }))
    .sort((a, b) => (lowest ? a.value - b.value : b.value - a.value))
}
