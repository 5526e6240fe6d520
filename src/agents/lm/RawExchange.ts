/**
 * Carries a call of another program through our middleware without converting it: the body that the program sent, and the
 * bytes with which the model's server answers. The provider at the inside sends such a body almost as it is, if its server
 * speaks the same protocol, and hands the bytes of the answer on as they come. Limits, budgets, retries, the cache and the log
 * work as for any other call, because the provider also returns a `Completion`. The gateway uses this.
 *
 * @example
 * ```ts
 * const body = { model: "any", messages: request.messages, stream: true }
 * const raw = yield* makeExchange({ protocol: "chat", body, headers: {} })
 * const completion = yield* lm.complete(request).pipe(Effect.provideService(CurrentExchange, raw))
 * ```
 */
import { type Cause, Context, Effect, Queue } from "effect"
import { canonical } from "../../base/text/canonical.ts"
import type { Plain } from "../../base/config/plain.ts"
import { sha256 } from "../../base/text/sha256.ts"
import { utf8 } from "../../base/text/utf8.ts"
import type { Completion } from "./Chat.ts"

/** A protocol in which a body can be passed on: OpenAI's chat completions or responses, or Anthropic's messages. */
export type RawProtocol = "chat" | "responses" | "messages"

/** The answer of a server to a request that it refused. */
interface ServerRefusal {
  readonly status: number
  /** The beginning of the body, without our key. */
  readonly text: string
}

/** The number of pieces of a stream that wait until the program has read the earlier ones. */
const waitingPieces = 64

export interface RawExchange {
  readonly protocol: RawProtocol
  readonly body: Plain
  /** The fields of the body by which two requests are equal; by default all that can change the answer. */
  readonly identity: Plain
  /** Headers of the program that the server needs, such as `anthropic-beta`. */
  readonly headers: Readonly<Record<string, string>>
  /** The pieces of a streamed answer. The caller ends it when the call has ended. */
  readonly pieces: Queue.Queue<Uint8Array, Cause.Done>
  /** Whether a piece was handed on; then the call must not be repeated. */
  hasBegun: boolean
  /** The text of an answer that was not streamed; null until it has arrived. */
  text: string | null
  /** The answer of a server that refused the last attempt; null if it did not. */
  refusal: ServerRefusal | null
  /** The id by which the server knows the answer; null if later requests cannot name it. */
  answerId: string | null
  /** Returns the part of the answer that has arrived; null before the request was sent. */
  partial: (() => Completion) | null
}

/** Makes the exchange of a body that another program sent. */
export const makeExchange = (
  given: Pick<RawExchange, "protocol" | "body" | "headers"> & { readonly identity?: Plain },
): Effect.Effect<RawExchange> =>
  Effect.map(Queue.bounded<Uint8Array, Cause.Done>(waitingPieces), (pieces) => ({
    ...given,
    identity: given.identity ?? identityOf(given.body),
    pieces,
    hasBegun: false,
    text: null,
    refusal: null,
    answerId: null,
    partial: null,
  }))

/** Hands on a piece of a streamed answer. Waits if the program reads more slowly than the server sends. */
export const pass = (raw: RawExchange, piece: Uint8Array): Effect.Effect<void> => {
  if (piece.length === 0) return Effect.void
  raw.hasBegun = true
  return Effect.asVoid(Queue.offer(raw.pieces, piece))
}

/** Returns the fields of a body that can change the answer, except the name of the model, which may be an alias. */
export const identityOf = ({ model: _1, stream: _2, stream_options: _3, ...rest }: Plain): Plain => rest

/** Returns the digest of all that can change the answer, for the key of a cached answer. */
export const digestOf = ({ protocol, identity }: RawExchange): Effect.Effect<string> =>
  sha256(utf8.encode(canonical({ protocol, ...identity })))

/** The exchange that the current call belongs to; null for a call of this program. */
export const CurrentExchange = Context.Reference<RawExchange | null>("effect-rl/lm/CurrentExchange", {
  defaultValue: () => null,
})
