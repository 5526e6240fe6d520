/** Counts what is in progress for each API key. */
import { Effect } from "effect"

export interface InProgress {
  readonly of: (owner: string) => number
  /** Runs work, and counts it until it ends. */
  readonly counting: <A, E, R>(owner: string, count: number, work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

export const makeInProgress = (): InProgress => {
  const counts = new Map<string, number>()
  const add = (owner: string, count: number): void => {
    const sum = (counts.get(owner) ?? 0) + count
    if (sum === 0) counts.delete(owner)
    else counts.set(owner, sum)
  }
  return {
    of: (owner) => counts.get(owner) ?? 0,
    counting: (owner, count, work) =>
      Effect.suspend(() => {
        add(owner, count)
        return Effect.ensuring(
          work,
          Effect.sync(() => add(owner, -count)),
        )
      }),
  }
}
