/** Holds the outcomes of requests that take long, until their clients retrieve them. */
import { Deferred, Effect, Option } from "effect"
import type { Outcome } from "./answers.ts"

interface Future {
  /** The name of the API key to which the request belongs. */
  readonly owner: string
  readonly outcome: Deferred.Deferred<Outcome>
}

export interface Futures {
  /** Returns the future of an id, and makes it if there is none. */
  readonly ensure: (id: string, owner: string) => Future
  readonly find: (id: string) => Future | undefined
  /** Sets the outcome of a request. */
  readonly settle: (id: string, outcome: Outcome) => void
}

/** Makes the list. It keeps the outcomes of the newest `most` requests, and all requests without an outcome. */
export const makeFutures = (most: number): Futures => {
  const pending = new Map<string, Future>()
  const settled = new Map<string, Future>()
  return {
    ensure: (id, owner) => {
      const known = pending.get(id) ?? settled.get(id)
      if (known !== undefined) return known
      const future = { owner, outcome: Deferred.makeUnsafe<Outcome>() }
      pending.set(id, future)
      return future
    },
    find: (id) => pending.get(id) ?? settled.get(id),
    settle: (id, outcome) => {
      const future = pending.get(id)
      if (future === undefined) return
      Deferred.doneUnsafe(future.outcome, Effect.succeed(outcome))
      pending.delete(id)
      settled.set(id, future)
      for (const [oldest] of settled) {
        if (settled.size <= most) break
        settled.delete(oldest)
      }
    },
  }
}

/** Waits for an outcome; returns undefined if there is none after `seconds`. */
export const awaited = ({ outcome }: Future, seconds: number): Effect.Effect<Outcome | undefined> =>
  Effect.map(Effect.timeoutOption(Deferred.await(outcome), `${seconds} seconds`), Option.getOrUndefined)
