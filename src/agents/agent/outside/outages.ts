/**
 * Keeps the calls of a turn that failed for no fault of the agent. An agent with code of its own may catch the error, or see
 * only the status of a response, and then throws an error of its own, or answers something that must not be scored.
 */
import { Effect } from "effect"
import type { AgentFailure } from "../Agent.ts"
import { isFinal, isOutage, type LmError } from "../../lm/LmError.ts"
import type { Middleware } from "../../lm/Lm.ts"

interface Outages {
  /** Keeps the failures of a model's calls. */
  readonly watched: Middleware
  /** Fails with the error of the model if the turn has failed, or if its answer cannot count. */
  readonly reported: <A, R>(turn: Effect.Effect<A, AgentFailure, R>) => Effect.Effect<A, AgentFailure, R>
}

/** Tells whether an answer after this failure must not count: the agent gave it without its model, or without a recording. */
const endsTurn = (error: LmError): boolean => error.reason === "cache" || isFinal(error)

/** Makes the record of one turn. */
export const makeOutages = (): Outages => {
  let first: LmError | undefined
  let ending: LmError | undefined
  const keep = (error: LmError): void => {
    if (!isOutage(error)) return
    first ??= error
    if (endsTurn(error)) ending ??= error
  }
  return {
    watched: (lm) => ({
      ...lm,
      complete: (request) => Effect.tapError(lm.complete(request), (error) => Effect.sync(() => keep(error))),
    }),
    reported: (turn) =>
      turn.pipe(
        Effect.mapError((error) => (error._tag === "AgentError" ? (ending ?? first ?? error) : error)),
        Effect.tap(() => (ending === undefined ? Effect.void : Effect.fail(ending))),
      ),
  }
}
