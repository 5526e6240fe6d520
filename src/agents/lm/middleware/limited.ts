/**
 * Delays calls, in the order of their arrival, so that there are never too many concurrent calls, or too many requests or
 * tokens in any minute. All state is in memory.
 *
 * Effect's `RateLimiter` cannot replace it, for two reasons. It may allow twice the limit within a minute. And it cannot give
 * back tokens that were estimated for an answer but not used, or the place of an interrupted call.
 *
 * @example
 * ```ts
 * const polite = limited({ concurrency: 8, requestsPerMinute: 500, tokensPerMinute: 200_000 })(lm)
 * ```
 */
import { Cause, Clock, Deferred, Effect, Exit, Option, Semaphore } from "effect"
import type { LmRequest } from "../Chat.ts"
import type { Middleware } from "../Lm.ts"
import type { Limits } from "../LmConfig.ts"

const minute = 60_000

/** A request that was admitted. Its number of tokens is an estimate until the request ends. */
interface AdmittedRequest {
  /** The time of the admission, in milliseconds since 1970. */
  readonly at: number
  tokens: number
  /** Whether the tokens of this request are part of the last minute's sum. */
  counts: boolean
}

/**
 * Estimates the tokens of a request: one token for every four characters of the prompt, plus the longest allowed
 * answer.
 */
export const expectedTokens = ({ messages, tools, maxOutputTokens }: LmRequest): number => {
  let characters = tools.length === 0 ? 0 : JSON.stringify(tools).length
  for (const { content } of messages) characters += content.length
  return Math.ceil(characters / 4) + (maxOutputTokens ?? 0)
}

/** The requests of the last minute, for the limits per minute. */
interface LastMinute {
  /** The largest numbers of requests and tokens. */
  readonly requests: number
  readonly tokens: number
  /** The admitted requests, oldest first; those before index `first` are older than a minute. */
  entries: Array<AdmittedRequest>
  first: number
  /** The sum of the tokens in the last minute. */
  sum: number
  /** Completes when a request ends; the waiting request then computes its waiting time again. */
  freed: Deferred.Deferred<void>
}

const dropOldEntries = (last: LastMinute, now: number): void => {
  const { entries } = last
  for (; last.first < entries.length && entries[last.first].at + minute <= now; last.first++) {
    last.sum -= entries[last.first].tokens
    entries[last.first].counts = false
  }
  // Removing entries copies the array, so remove many at once.
  if (last.first < 1000 || last.first < entries.length / 2) return
  last.entries = entries.slice(last.first)
  last.first = 0
}

/** Returns the time in milliseconds for which a request with `expected` tokens must wait; 0 admits it now. */
const waitFor = (last: LastMinute, expected: number, now: number): number => {
  dropOldEntries(last, now)
  const { requests, tokens, entries, first, sum } = last
  // Find `until`: the request is admitted when all entries before this index are older than a minute.
  let until = Math.max(first, entries.length - requests + 1)
  // A request that needs more than the tokens of a minute counts as all of them, and is admitted alone.
  let tokenSum = sum + Math.min(expected, tokens)
  for (let at = first; at < entries.length && (tokenSum > tokens || at < until); at++) {
    tokenSum -= entries[at].tokens
    until = Math.max(until, at + 1)
  }
  return until === first ? 0 : entries[until - 1].at + minute - now
}

const admit = Effect.fnUntraced(function* (last: LastMinute, request: LmRequest): Effect.fn.Return<AdmittedRequest> {
  const expected = last.tokens === Infinity ? 0 : expectedTokens(request)
  while (true) {
    const now = yield* Clock.currentTimeMillis
    const wait = waitFor(last, expected, now)
    if (wait <= 0) {
      const entry = { at: now, tokens: Math.min(expected, last.tokens), counts: true }
      last.entries.push(entry)
      last.sum += entry.tokens
      return entry
    }
    // A call that ends may have used fewer tokens than estimated, so compute the waiting time again then.
    yield* Effect.raceFirst(Effect.sleep(wait), Deferred.await(last.freed))
  }
})

/** Replaces the estimate in an entry by the number of tokens that its request used. */
const settle = (last: LastMinute, entry: AdmittedRequest, used: number): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (entry.counts) last.sum += used - entry.tokens
    entry.tokens = used
    const waiting = last.freed
    last.freed = Deferred.makeUnsafe()
    return Effect.asVoid(Deferred.succeed(waiting, undefined))
  })

/** Makes the middleware that delays calls. All services that it wraps share the limits. A limit that is null does not apply. */
export const limited = ({ concurrency, requestsPerMinute, tokensPerMinute }: Limits): Middleware => {
  if (concurrency === null && requestsPerMinute === null && tokensPerMinute === null) return (lm) => lm
  const last: LastMinute = {
    requests: requestsPerMinute ?? Infinity,
    tokens: tokensPerMinute ?? Infinity,
    entries: [],
    first: 0,
    sum: 0,
    freed: Deferred.makeUnsafe(),
  }
  /** Admits one request after the other, so that they are admitted in the order of their arrival. */
  const gate = Semaphore.makeUnsafe(1)
  const slots = concurrency === null ? null : Semaphore.makeUnsafe(concurrency)
  const hasRates = requestsPerMinute !== null || tokensPerMinute !== null
  return (lm) => {
    const complete: typeof lm.complete = (request) =>
      Effect.flatMap(gate.withPermit(admit(last, request)), (entry) =>
        Effect.onExit(lm.complete(request), (exit) => {
          const ended = Exit.isSuccess(exit) ? exit.value : Option.getOrUndefined(Cause.findErrorOption(exit.cause))
          // A failure without a usage counts as no tokens.
          const { inputTokens, outputTokens } = ended?.usage ?? { inputTokens: 0, outputTokens: 0 }
          return settle(last, entry, inputTokens + outputTokens)
        }),
      )
    const limitedByRates: typeof lm = hasRates ? { complete } : { complete: lm.complete }
    if (slots === null) return limitedByRates
    return { complete: (request) => slots.withPermit(limitedByRates.complete(request)) }
  }
}
