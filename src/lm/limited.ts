/**
 * No more calls at a time, and in any minute, than a server allows. Who comes first is asked first.
 *
 * @example
 * ```ts
 * const polite = limited({ concurrency: 8, requestsPerMinute: 500, tokensPerMinute: 200_000 })(lm)
 * ```
 */
import { Clock, Deferred, Effect, Exit, Semaphore } from "effect"
import type { LmRequest } from "./Chat.ts"
import type { Around } from "./Lm.ts"
import type { Limits } from "./LmConfig.ts"

const minute = 60_000

/** A request that was let through; its tokens are a guess until it ends. */
interface Entry {
  readonly at: number
  tokens: number
}

/** What a request may take: four letters a token, and as long an answer as is allowed. */
export const expectedTokens = ({ messages, tools, maxOutputTokens }: LmRequest): number => {
  let letters = tools.length === 0 ? 0 : JSON.stringify(tools).length
  for (const { content } of messages) letters += content.length
  return Math.ceil(letters / 4) + (maxOutputTokens ?? 0)
}

export const limited =
  ({ concurrency, requestsPerMinute, tokensPerMinute }: Limits): Around =>
  (lm) => {
    if (concurrency === null && requestsPerMinute === null && tokensPerMinute === null) return lm
    const requests = requestsPerMinute ?? Infinity
    const tokens = tokensPerMinute ?? Infinity
    const paced = requests < Infinity || tokens < Infinity
    const gate = Semaphore.makeUnsafe(1)
    /** Of the last minute, oldest first. */
    let entries: Array<Entry> = []
    let freed = Deferred.makeUnsafe<void>()

    /** How long a request has to wait at least, or 0. */
    const waitFor = (expected: number, now: number): number => {
      entries = entries.filter(({ at }) => at + minute > now)
      // One that is larger than a minute's share goes when it is alone.
      let sum = Math.min(expected, tokens)
      let fits = entries.length
      while (fits > 0 && sum + entries[fits - 1].tokens <= tokens) sum += entries[--fits].tokens
      // Those before `fits` have to be a minute old, and so have all that are more than there may be.
      const tooMany = Math.max(fits, entries.length - requests + 1)
      return tooMany <= 0 ? 0 : entries[tooMany - 1].at + minute - now
    }

    const admitted = Effect.fnUntraced(function* (request: LmRequest): Effect.fn.Return<Entry> {
      const expected = tokens === Infinity ? 0 : expectedTokens(request)
      while (true) {
        const now = yield* Clock.currentTimeMillis
        const wait = waitFor(expected, now)
        if (wait <= 0) {
          const entry = { at: now, tokens: Math.min(expected, tokens) }
          entries.push(entry)
          return entry
        }
        // Another call's end may show that it took less than was feared.
        yield* Effect.raceFirst(Effect.sleep(wait), Deferred.await(freed))
      }
    })

    const settle = (entry: Entry, used: number): Effect.Effect<void> =>
      Effect.suspend(() => {
        entry.tokens = used
        const waiting = freed
        freed = Deferred.makeUnsafe()
        return Effect.asVoid(Deferred.succeed(waiting, undefined))
      })

    const asked: typeof lm.complete = (request) =>
      paced
        ? Effect.flatMap(gate.withPermit(admitted(request)), (entry) =>
            Effect.onExit(lm.complete(request), (exit) => {
              // What failed took nothing that we know of.
              const usage = Exit.isSuccess(exit) ? exit.value.usage : { inputTokens: 0, outputTokens: 0 }
              return settle(entry, usage.inputTokens + usage.outputTokens)
            }),
          )
        : lm.complete(request)
    if (concurrency === null) return { complete: asked }
    const slots = Semaphore.makeUnsafe(concurrency)
    return { complete: (request) => slots.withPermit(asked(request)) }
  }
