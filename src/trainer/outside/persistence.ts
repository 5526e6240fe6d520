/**
 * Repeats work that fails for temporary reasons, such as a full disk, with growing delays. Gives up after `mostAttempts`
 * failures in a row; an attempt that gets further than all earlier ones resets this count.
 */
import { Effect } from "effect"

/** The number of attempts in a row that may fail at the same step. */
export const mostAttempts = 8

/** The longest delay between two attempts, in seconds. */
const longestDelay = 30

/** The end of an attempt. `step` is the step that a failed attempt has reached. */
export type Attempt =
  | { readonly _tag: "Complete" }
  | { readonly _tag: "Again"; readonly step: number; readonly reason: string }

/** The end of the work. */
export type Outcome = { readonly _tag: "Complete" } | { readonly _tag: "Failed"; readonly reason: string }

/**
 * Repeats an attempt until it is complete or has failed too often. `again` is called with the reason before each repetition.
 */
export const persistently = Effect.fnUntraced(function* <E, R>(
  attempt: Effect.Effect<Attempt, E, R>,
  again: (reason: string) => Effect.Effect<void>,
): Effect.fn.Return<Outcome, E, R> {
  let furthest = -1
  let failures = 0
  for (;;) {
    const ended = yield* attempt
    if (ended._tag === "Complete") return ended
    failures = ended.step > furthest ? 1 : failures + 1
    furthest = Math.max(furthest, ended.step)
    if (failures === mostAttempts) return { _tag: "Failed", reason: ended.reason }
    yield* again(ended.reason)
    yield* Effect.sleep(1000 * Math.min(longestDelay, 2 ** (failures - 2)))
  }
})
