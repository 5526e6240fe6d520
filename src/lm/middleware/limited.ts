/**
 * No more calls at a time, and in any minute, than a server allows. Who comes first is asked first.
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

/** A request that was let through; its tokens are a guess until it ends. */
interface Entry {
  readonly at: number
  tokens: number
  /** It is in the sum of the last minute. */
  counts: boolean
}

/** What a request may take: four letters a token, and as long an answer as is allowed. */
export const expectedTokens = ({ messages, tools, maxOutputTokens }: LmRequest): number => {
  let letters = tools.length === 0 ? 0 : JSON.stringify(tools).length
  for (const { content } of messages) letters += content.length
  return Math.ceil(letters / 4) + (maxOutputTokens ?? 0)
}

/** Lets calls wait for their turn. */
export const limited =
  ({ concurrency, requestsPerMinute, tokensPerMinute }: Limits): Middleware =>
  (lm) => {
    if (concurrency === null && requestsPerMinute === null && tokensPerMinute === null) return lm
    const requests = requestsPerMinute ?? Infinity
    const tokens = tokensPerMinute ?? Infinity
    const paced = requests < Infinity || tokens < Infinity
    const gate = Semaphore.makeUnsafe(1)
    /** Oldest first; those before `first` are older than a minute. */
    let entries: Array<Entry> = []
    let first = 0
    /** Of the tokens of the last minute. */
    let sum = 0
    let freed = Deferred.makeUnsafe<void>()

    const forget = (now: number): void => {
      for (; first < entries.length && entries[first].at + minute <= now; first++) {
        sum -= entries[first].tokens
        entries[first].counts = false
      }
      if (first < 1000 || first < entries.length / 2) return
      entries = entries.slice(first)
      first = 0
    }

    /** How long a request has to wait at least, or 0. */
    const waitFor = (expected: number, now: number): number => {
      forget(now)
      // All before this one have to be a minute old: by their number, and by their tokens.
      let until = Math.max(first, entries.length - requests + 1)
      // One that is larger than a minute's share goes when it is alone.
      let left = sum + Math.min(expected, tokens)
      for (let at = first; at < entries.length && (left > tokens || at < until); at++) {
        left -= entries[at].tokens
        until = Math.max(until, at + 1)
      }
      return until === first ? 0 : entries[until - 1].at + minute - now
    }

    const admitted = Effect.fnUntraced(function* (request: LmRequest): Effect.fn.Return<Entry> {
      const expected = tokens === Infinity ? 0 : expectedTokens(request)
      while (true) {
        const now = yield* Clock.currentTimeMillis
        const wait = waitFor(expected, now)
        if (wait <= 0) {
          const entry = { at: now, tokens: Math.min(expected, tokens), counts: true }
          entries.push(entry)
          sum += entry.tokens
          return entry
        }
        // Another call's end may show that it took less than was feared.
        yield* Effect.raceFirst(Effect.sleep(wait), Deferred.await(freed))
      }
    })

    const settle = (entry: Entry, used: number): Effect.Effect<void> =>
      Effect.suspend(() => {
        if (entry.counts) sum += used - entry.tokens
        entry.tokens = used
        const waiting = freed
        freed = Deferred.makeUnsafe()
        return Effect.asVoid(Deferred.succeed(waiting, undefined))
      })

    const asked: typeof lm.complete = (request) =>
      paced
        ? Effect.flatMap(gate.withPermit(admitted(request)), (entry) =>
            Effect.onExit(lm.complete(request), (exit) => {
              const ended = Exit.isSuccess(exit) ? exit.value : Option.getOrUndefined(Cause.findErrorOption(exit.cause))
              // A failure that doesn't say what it took counts as nothing.
              const { inputTokens, outputTokens } = ended?.usage ?? { inputTokens: 0, outputTokens: 0 }
              return settle(entry, inputTokens + outputTokens)
            }),
          )
        : lm.complete(request)
    if (concurrency === null) return { complete: asked }
    const slots = Semaphore.makeUnsafe(concurrency)
    return { complete: (request) => slots.withPermit(asked(request)) }
  }
