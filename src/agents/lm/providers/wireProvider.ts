/**
 * Makes a provider (see `Provider.ts`) from a server and its wire format (the JSON of its calls). The provider sends HTTP
 * requests, and collects each answer, which arrives whole or as a stream of pieces. `openAi.ts` and `anthropic.ts` use it.
 */
import { Effect, type Schema, Stream } from "effect"
import type * as Response from "effect/ai/Response"
import type { Plain } from "../../../base/config/plain.ts"
import type { Completion, LmRequest } from "../Chat.ts"
import { LmError } from "../LmError.ts"
import { CurrentExchange, pass, type RawExchange, type RawProtocol } from "../RawExchange.ts"
import {
  answered,
  type AnswerFacts,
  broken,
  type FailureBody,
  type PassedRequest,
  read,
  refusedInBody,
  requestEvents,
  requestText,
} from "./http.ts"
import { finishPart, type JsonFormat, type Provider, toolCallPart } from "./Provider.ts"
import type { Server } from "./Server.ts"

/** The form of an answer: whether it is streamed, and the format that it must have. */
export interface AnswerForm {
  readonly stream: boolean
  readonly format?: JsonFormat | undefined
}

/**
 * The part of a protocol's wire format that bodies of other programs need: how to pass them on, how to decode an answer (a `Whole`,
 * or a stream of `Piece`s), and how to collect it in a `Gathered` object.
 */
interface PassingWire<Gathered, Whole, Piece> {
  readonly path: string
  readonly answerSchema: Schema.Codec<Whole, unknown>
  readonly pieceSchema: Schema.Codec<Piece, unknown>
  /** The data of the event that ends a stream, if that event is not a piece. */
  readonly endOfStream?: string
  readonly empty: () => Gathered
  /** Adds a whole answer to `into`. Returns its text, or the failure that the server reports instead. */
  readonly gatherWhole: (into: Gathered, answer: Whole) => string | FailureBody
  /** Adds a piece of a stream to `into`. Returns the piece's text, or the failure that the server reports instead. */
  readonly gather: (into: Gathered, piece: Piece) => string | FailureBody
  /**
   * Tells whether a stream that has stopped contains a whole answer, because some servers leave out the event that ends it.
   */
  readonly isComplete: (from: Gathered) => boolean
  /** Asks the server for what is missing in a collected answer, e.g. the token ids of the prompt. */
  readonly complete?: (request: LmRequest, from: Gathered) => Effect.Effect<void>
  /** Makes the completion from a collected answer, or from the part of it that has arrived. */
  readonly completionOf: (request: LmRequest, from: Gathered, format?: JsonFormat) => Completion
  readonly factsOf: (from: Gathered) => AnswerFacts
  /** Returns the id by which the server knows an answer; left out if later requests cannot name it. */
  readonly idOf?: (from: Gathered) => string | null
  /** Returns the body of another program for this server: with the model's name at the server, and the request's settings. */
  readonly passedBody: (body: Plain, request: LmRequest) => Plain
  /** Makes the function that removes from a stream what only `passedBody` asked for. */
  readonly passedBytes: (body: Plain) => (bytes: Uint8Array) => Uint8Array
}

/** The wire format of a protocol in which our own requests are sent, too. */
interface Wire<Gathered, Whole, Piece> extends PassingWire<Gathered, Whole, Piece> {
  readonly body: (request: LmRequest, form: AnswerForm) => Readonly<Record<string, unknown>>
  readonly protocol: RawProtocol
}

/** Makes an error after which the call is not repeated, because the other program has got a part of the answer. */
const notRepeatable = (error: LmError): LmError =>
  error.reason === "unavailable" || error.reason === "malformed"
    ? new LmError({ ...error, message: error.message, reason: "exhausted" })
    : error

/** Makes the functions that send requests to a server, and collect its answers. */
const answersOf = <Gathered extends { ended: boolean }, Whole, Piece>(
  server: Server,
  wire: PassingWire<Gathered, Whole, Piece>,
) => {
  const { path, endOfStream } = wire
  const readWhole = read(server, wire.answerSchema)
  const readPiece = read(server, wire.pieceSchema)
  const unlessFailed = (text: string | FailureBody): Effect.Effect<string, LmError> =>
    typeof text === "string" ? Effect.succeed(text) : Effect.fail(refusedInBody(server, text))
  return {
    /** Requests a whole answer, collects it in `into`, and returns its text as the server wrote it. */
    whole: Effect.fnUntraced(function* (sent: Plain, into: Gathered, raw: RawExchange | null = null) {
      const text = yield* requestText(server, path, sent, raw)
      yield* Effect.flatMap(readWhole(text), (answer) => unlessFailed(wire.gatherWhole(into, answer)))
      return text
    }),
    /**
     * Streams the texts of an answer, and collects the whole answer in `into`. `into.ended` is set when the event that ends the
     * stream arrives; nothing is read after it.
     */
    texts: (sent: Plain, into: Gathered, passed?: PassedRequest): Stream.Stream<string, LmError> =>
      requestEvents(server, path, sent, passed).pipe(
        Stream.mapEffect((data) => {
          if (data !== endOfStream)
            return Effect.flatMap(readPiece(data), (piece) => unlessFailed(wire.gather(into, piece)))
          into.ended = true
          return Effect.succeed("")
        }),
        Stream.takeUntil(() => into.ended),
        Stream.concat(
          Stream.suspend(() =>
            wire.isComplete(into) ? Stream.empty : Stream.fail(broken(server, "the stream has no end event")),
          ),
        ),
      ),
  }
}

/**
 * Makes the function that passes on the body of another program, and hands it the answer. It does not fail for an answer without
 * a text, or one that declines, because the program gets to see it.
 */
const passing = <Gathered extends { ended: boolean }, Whole, Piece>(
  wire: PassingWire<Gathered, Whole, Piece>,
  { whole, texts }: ReturnType<typeof answersOf<Gathered, Whole, Piece>>,
) => {
  const passOn = Effect.fnUntraced(function* (raw: RawExchange, request: LmRequest) {
    const into = wire.empty()
    raw.refusal = null
    raw.partial = () => wire.completionOf(request, into)
    const sent = wire.passedBody(raw.body, request)
    if (sent["stream"] === true) {
      const keep = wire.passedBytes(raw.body)
      yield* Stream.runDrain(texts(sent, into, { raw, onBytes: (bytes) => pass(raw, keep(bytes)) }))
    } else raw.text = yield* whole(sent, into, raw)
    raw.answerId = wire.idOf?.(into) ?? null
    if (wire.complete !== undefined) yield* wire.complete(request, into)
    const completion = wire.completionOf(request, into)
    const isRefusal = wire.factsOf(into).refusal !== ""
    return isRefusal ? { ...completion, finishReason: "content_filter" as const } : completion
  })
  return (raw: RawExchange, request: LmRequest): Effect.Effect<Completion, LmError> =>
    Effect.mapError(passOn(raw, request), (error) => (raw.hasBegun ? notRepeatable(error) : error))
}

/** Makes the function that passes on bodies of other programs in a protocol that our own calls do not use. */
export const passerOf = <Gathered extends { ended: boolean }, Whole, Piece>(
  server: Server,
  wire: PassingWire<Gathered, Whole, Piece>,
) => passing(wire, answersOf(server, wire))

/**
 * Makes the provider of a server from its wire format. With `streaming`, `complete` also requests a stream from the
 * server and collects it, even if the caller wants only the whole answer.
 */
export const providerOf = <Gathered extends { ended: boolean }, Whole, Piece>(
  server: Server,
  streaming: boolean,
  wire: Wire<Gathered, Whole, Piece>,
): Provider => {
  const { body, empty } = wire
  const answers = answersOf(server, wire)
  const { whole, texts } = answers
  const passOn = passing(wire, answers)

  /** Makes the completion from a collected answer. Fails if the answer must not be used. */
  const completed = Effect.fnUntraced(function* (request: LmRequest, into: Gathered, format?: JsonFormat) {
    if (wire.complete !== undefined) yield* wire.complete(request, into)
    return yield* answered(server, wire.completionOf(request, into, format), wire.factsOf(into))
  })

  const complete = Effect.fnUntraced(function* (request: LmRequest, format?: JsonFormat) {
    const raw = yield* CurrentExchange
    if (raw?.protocol === wire.protocol && format === undefined) return yield* passOn(raw, request)
    const into = empty()
    const sent = body(request, { format, stream: streaming })
    yield* streaming ? Stream.runDrain(texts(sent, into)) : whole(sent, into)
    return yield* completed(request, into, format)
  })

  return {
    model: server.model,
    complete,
    stream: (request) =>
      Stream.suspend(() => {
        const into = empty()
        let begun = false
        const parts = texts(body(request, { stream: true }), into).pipe(
          Stream.filter((text) => text !== ""),
          Stream.map((delta): ReadonlyArray<Response.StreamPartEncoded> => {
            const part = { type: "text-delta", id: "0", delta } as const
            if (begun) return [part]
            begun = true
            return [{ type: "text-start", id: "0" }, part]
          }),
        )
        const end = Effect.map(
          Effect.suspend(() => completed(request, into)),
          (completion): ReadonlyArray<Response.StreamPartEncoded> => [
            ...(begun ? [{ type: "text-end", id: "0" } as const] : []),
            ...completion.toolCalls.map(toolCallPart),
            finishPart(completion),
          ],
        )
        return Stream.flattenIterable(Stream.concat(parts, Stream.fromEffect(end)))
      }),
  }
}
