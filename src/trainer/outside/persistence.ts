/**
 * Repeats work that fails for reasons which may pass, such as a full disk: after a growing delay, and only so often. An
 * attempt that got further than those before it begins the count again.
 *
 * @example
 * ```ts
 * const outcome = yield* persistently(playFrom, (reason) => Effect.logWarning(`beginning again: ${reason}`))
 * ```
 */
import { Effect } from "effect"

/** The number of attempts in a row that may fail at the same step. */
export const mostAttempts = 8

/** The longest delay between two attempts, in seconds. */
const longestDelay = 30

/** Says how an attempt ended: `step` is how far it got. */
export type Attempt =
  | { readonly _tag: "Complete" }
  | { readonly _tag: "Again"; readonly step: number; readonly reason: string }

/** Says how the work ended. */
export type Outcome = { readonly _tag: "Complete" } | { readonly _tag: "Failed"; readonly reason: string }

/** Repeats the attempt until it is complete, or has failed too often. `again` is called before each repetition. */
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
