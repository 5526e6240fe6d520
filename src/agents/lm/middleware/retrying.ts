/**
 * Repeats a call after a temporary failure, with growing delays between the attempts. A part of each delay is random, but the
 * same for the same call in every run.
 *
 * @example
 * ```ts
 * const patient = retrying({ maxRetries: 5, startingDelay: 1, backoffFactor: 2, maxDelay: 10, jitter: 0.25 })(lm)
 * ```
 */
import { Cause, Context, Duration, Effect, Schedule } from "effect"
import { stream } from "../../../base/rng/Rng.ts"
import { canonical } from "../../../base/text/canonical.ts"
import type { LmRequest } from "../Chat.ts"
import { type Middleware, CallContext } from "../Lm.ts"
import type { LmConfig } from "../LmConfig.ts"
import { LmError, lmError, withoutModel } from "../LmError.ts"

export type Retries = Pick<LmConfig, "maxRetries" | "startingDelay" | "backoffFactor" | "maxDelay" | "jitter">

/** Describes the delay before the next retry. */
export interface Retry {
  /** The error of the attempt that is retried. */
  readonly error: LmError
  readonly seconds: number
  /** The number of remaining retries, including this one. */
  readonly triesLeft: number
}

/** Receives every retry before its delay begins; if it is null, retries are not reported. */
export const RetrySink = Context.Reference<((retry: Retry) => Effect.Effect<void>) | null>("effect-rl/lm/RetrySink", {
  defaultValue: () => null,
})

/** The longest delay, in seconds, that a server can ask for, unless `maxDelay` is longer. */
export const longestRetryAfter = 60

const isTemporary = ({ reason }: LmError): boolean => reason === "unavailable" || reason === "malformed"

/**
 * Returns the delay in seconds before retry number `retry` (counted from 1). The delay grows by `backoffFactor` with each
 * retry up to `maxDelay`, and is then shortened by the share `jitter` × `chance` (`chance` is random, from 0 to 1).
 *
 * If the server asks for a longer delay (`retryAfter`), that delay is used instead and lengthened by the same share. It
 * is at most `longestRetryAfter` or `maxDelay` seconds, whichever is more.
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

/**
 * Draws the number from 0 to 1 that shortens or lengthens a retry's delay. It depends only on the call and the retry,
 * so different calls have different delays, and a repeated run has the same delays.
 */
const chanceOf = (request: LmRequest, { phase, purpose, episode, step }: CallContext, retry: number): number =>
  stream(request.seed ?? 0, "retry", phase._tag, purpose, episode, step, canonical(request)).uniformAt(retry)

/** Makes the schedule of the retries. After `maxRetries` retries, or a failure that is not temporary, it fails with that error. */
const scheduleOf = (config: Retries, chance: (retry: number) => Effect.Effect<number>) =>
  Schedule.fromStepWithMetadata(
    Effect.succeed(({ attempt: retry, input: error }: Schedule.InputMetadata<LmError>) =>
      Effect.gen(function* () {
        if (!isTemporary(error) || retry > config.maxRetries) return yield* Cause.done(error)
        const seconds = delayOf(config, retry, error.retryAfter, yield* chance(retry))
        const report = yield* RetrySink
        if (report !== null) yield* report({ error, seconds, triesLeft: config.maxRetries - retry + 1 })
        const next: [LmError, Duration.Duration] = [error, Duration.millis(Math.round(seconds * 1000))]
        return next
      }),
    ),
  )

/**
 * Repeats an effect after temporary failures (`unavailable`, `malformed`), and fails with LmError `exhausted` after
 * `maxRetries` retries. Returns the value, and the number of failed attempts before it. `chance` returns the random number
 * for the delay of a retry (see `delayOf`).
 */
export const persistently = <A>(
  config: Retries,
  model: string,
  once: Effect.Effect<A, LmError>,
  chance: (retry: number) => Effect.Effect<number>,
): Effect.Effect<readonly [A, number], LmError> =>
  Effect.suspend(() => {
    let attempts = 0
    return once.pipe(
      Effect.tapError((error) => Effect.sync(() => (attempts += error.attempts))),
      Effect.retry({ schedule: scheduleOf(config, chance) }),
      Effect.mapError((last) => {
        if (isTemporary(last)) return exhausted(model, attempts, last)
        return attempts === last.attempts ? last : new LmError({ ...last, message: last.message, attempts })
      }),
      Effect.map((value) => [value, attempts] as const),
    )
  })

/** Makes the middleware that retries calls. The field `attempts` of a completion includes the failed attempts. */
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
        ([completion, failedAttempts]) =>
          failedAttempts === 0 ? completion : { ...completion, attempts: failedAttempts + completion.attempts },
      ),
  })

const exhausted = (model: string, attempts: number, last: LmError): LmError => {
  const problem = withoutModel(model, last.message)
  const times = attempts === 1 ? "1 attempt" : `${attempts} attempts`
  return lmError(model, "exhausted", `no answer after ${times}; last failure: ${problem}`, { attempts })
}
