/**
 * Asking again after a failure that may pass.
 *
 * @example
 * ```ts
 * const patient = retrying({ maxRetries: 5, startingDelay: 1, backoffFactor: 2, maxDelay: 10, jitter: 0.25 })(lm)
 * ```
 */
import { Context, Effect } from "effect"
import { stream } from "../../rng/Rng.ts"
import { canonical } from "../canonical.ts"
import type { LmRequest } from "../Chat.ts"
import { type Middleware, CallContext } from "../Lm.ts"
import type { LmConfig } from "../LmConfig.ts"
import { LmError } from "../LmError.ts"

export type Retries = Pick<LmConfig, "maxRetries" | "startingDelay" | "backoffFactor" | "maxDelay" | "jitter">

/** A wait before the next try. */
export interface Waiting {
  readonly error: LmError
  readonly seconds: number
  /** How often it will be tried again, with this time; then it is enough. */
  readonly triesLeft: number
}

/** Where waits are told of, looked up at each; null: nowhere. */
export const RetrySink = Context.Reference<((waiting: Waiting) => Effect.Effect<void>) | null>(
  "effect-rl/lm/RetrySink",
  { defaultValue: () => null },
)

/** In seconds: no server makes us wait longer, unless `maxDelay` does. */
export const longestRetryAfter = 60

/** Another try may do better. */
const mayPass = ({ reason }: LmError): boolean => reason === "unavailable" || reason === "malformed"

/**
 * In seconds, how long is waited before retry `retry` (from 1 on). By chance it is up to `jitter` shorter; where the server
 * says when it wants to be asked again, it is never before that, and up to `jitter` later.
 */
export const delayOf = (
  { startingDelay, backoffFactor, maxDelay, jitter }: Retries,
  retry: number,
  retryAfter: number | undefined,
  chance: number,
): number => {
  const factor = Math.min(Number.MAX_VALUE, backoffFactor ** (retry - 1))
  const backoff = Math.min(maxDelay, startingDelay * factor) * (1 - jitter * chance)
  if (retryAfter === undefined || !(retryAfter > 0)) return backoff
  return Math.max(backoff, Math.min(Math.max(maxDelay, longestRetryAfter), retryAfter * (1 + jitter * chance)))
}

/** The same call waits equally long in every run; different calls don't come back all at once. */
const chanceOf = (request: LmRequest, { phase, purpose, episode, step }: CallContext, retry: number): number =>
  stream(request.seed ?? 0, "retry", phase._tag, purpose, episode, step, canonical(request)).uniformAt(retry)

/**
 * Tries again after failures that may pass (`unavailable`, `malformed`), until it is enough: LmError `exhausted`. Gives
 * what came of it, and how many attempts failed before.
 */
export const persistently = <A>(
  config: Retries,
  model: string,
  once: Effect.Effect<A, LmError>,
  chance: (retry: number) => Effect.Effect<number>,
): Effect.Effect<readonly [A, number], LmError> => {
  /** With so many retries and attempts behind it. */
  const attempt = (retries: number, before: number): Effect.Effect<readonly [A, number], LmError> =>
    once.pipe(
      Effect.map((made) => [made, before] as const),
      Effect.catch((error) => {
        const attempts = before + error.attempts
        if (!mayPass(error)) {
          return Effect.fail(before === 0 ? error : new LmError({ ...error, message: error.message, attempts }))
        }
        if (retries >= config.maxRetries) return Effect.fail(exhausted(model, attempts, error))
        return Effect.gen(function* () {
          const seconds = delayOf(config, retries + 1, error.retryAfter, yield* chance(retries + 1))
          const tell = yield* RetrySink
          if (tell !== null) yield* tell({ error, seconds, triesLeft: config.maxRetries - retries })
          return yield* Effect.delay(attempt(retries + 1, attempts), Math.round(seconds * 1000))
        })
      }),
    )
  return attempt(0, 0)
}

/** Calls that are tried again. */
export const retrying =
  (config: Retries): Middleware =>
  (lm) => ({
    complete: (request) =>
      Effect.map(
        persistently(
          config,
          request.model,
          Effect.suspend(() => lm.complete(request)),
          (retry) => Effect.map(CallContext, (context) => chanceOf(request, context, retry)),
        ),
        ([completion, before]) =>
          before === 0 ? completion : { ...completion, attempts: before + completion.attempts },
      ),
  })

/** It was tried as often as allowed. */
const exhausted = (model: string, attempts: number, last: LmError): LmError => {
  const said = last.message.startsWith(`${model}: `) ? last.message.slice(model.length + 2) : last.message
  const times = attempts === 1 ? "1 try" : `${attempts} tries`
  return new LmError({
    model,
    reason: "exhausted",
    attempts,
    message: `${model}: no answer after ${times}; last: ${said}`,
  })
}
