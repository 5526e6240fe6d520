/** Holds the outcomes of requests that take long, until their clients retrieve them. */
import { Deferred, Effect, Option } from "effect"
import type { Outcome } from "../wire/outcomes.ts"

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

interface SettledFuture extends Future {
  readonly size: number
}

/** Counts the numbers of an outcome, which are most of its memory. */
const sizeOf = (outcome: Outcome): number => {
  switch (outcome._tag) {
    case "Loss":
      return outcome.value.metrics["tokens:sum"] ?? 0
    case "Sample": {
      const { sequences, prompt_logprobs: prompt, topk_prompt_logprobs: topk } = outcome.value
      const inSequences = sequences.reduce((sum, { tokens }) => sum + 2 * tokens.length, 0)
      return inSequences + (prompt?.length ?? 0) + 2 * (topk?.reduce((sum, one) => sum + (one?.length ?? 0), 0) ?? 0)
    }
    default:
      return 0
  }
}

/** An outcome counts as this many numbers more than it has. */
const perOutcome = 64

/**
 * Makes the list. It keeps all requests without an outcome, and at most `most.outcomes` outcomes with at most `most.numbers`
 * numbers. Of too many, the oldest of the API key with the most numbers go first, so that no key takes the room of another.
 */
export const makeFutures = (most: { readonly outcomes: number; readonly numbers: number }): Futures => {
  const pending = new Map<string, Future>()
  const settled = new Map<string, SettledFuture>()
  const sizes = new Map<string, number>()
  const add = (owner: string, size: number): void => {
    sizes.set(owner, (sizes.get(owner) ?? 0) + size)
  }
  const isFull = (): boolean =>
    settled.size > most.outcomes || [...sizes.values()].reduce((sum, size) => sum + size, 0) > most.numbers
  const forgetOldest = (): void => {
    const [largest] = [...sizes].reduce((one, other) => (other[1] > one[1] ? other : one))
    for (const [id, { owner, size }] of settled) {
      if (owner !== largest) continue
      settled.delete(id)
      return add(owner, -size)
    }
  }
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
      const size = sizeOf(outcome) + perOutcome
      settled.set(id, { ...future, size })
      add(future.owner, size)
      while (settled.size > 1 && isFull()) forgetOldest()
    },
  }
}

/** Waits for an outcome; returns undefined if there is none after `seconds`. */
export const awaited = ({ outcome }: Future, seconds: number): Effect.Effect<Outcome | undefined> =>
  Effect.map(Effect.timeoutOption(Deferred.await(outcome), `${seconds} seconds`), Option.getOrUndefined)
