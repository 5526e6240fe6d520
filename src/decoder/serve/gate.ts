/**
 * Counts the answers that a server is generating. It refuses requests above a limit, so that the queue cannot grow without
 * end, and lets a stopping server finish answers that have begun.
 */
import { Effect, Latch, type Scope } from "effect"
import { ApiError, unavailable } from "./ApiError.ts"
import { tooManyAnswers } from "./limits.ts"

export interface Gate {
  /** Reserves room for this many answers until the scope closes. */
  readonly enter: (answers: number) => Effect.Effect<void, ApiError, Scope.Scope>
  /** Refuses all further requests, and waits until all answers are finished. */
  readonly drain: Effect.Effect<void>
  readonly isDraining: () => boolean
  /** Returns the number of answers for which room is reserved. */
  readonly answering: () => number
}

/** Makes a gate for `most` answers at the same time. */
export const makeGate = (most: number): Effect.Effect<Gate> =>
  Effect.sync(() => {
    const idle = Latch.makeUnsafe(true)
    let answering = 0
    let draining = false
    const take = Effect.fnUntraced(function* (answers: number) {
      if (draining) return yield* unavailable("the server is stopping")
      if (answers > most) return yield* tooManyAnswers(answers, most, null)
      if (answering + answers > most) {
        const message = `the server is generating ${answering} answers and takes at most ${most}; try again later`
        return yield* new ApiError({ status: 429, code: "rate_limit_exceeded", param: null, message })
      }
      answering += answers
      idle.closeUnsafe()
    })
    const leave = (answers: number) =>
      Effect.sync(() => {
        answering -= answers
        if (answering === 0) idle.openUnsafe()
      })
    return {
      enter: (answers) => Effect.acquireRelease(take(answers), () => leave(answers)),
      drain: Effect.andThen(
        Effect.sync(() => (draining = true)),
        idle.await,
      ),
      isDraining: () => draining,
      answering: () => answering,
    }
  })
