/**
 * Makes a provider (see `Provider.ts`) from a server and its wire format (the JSON of its calls). The provider sends HTTP
 * requests, and collects each answer, which arrives whole or as a stream of pieces. `openAi.ts` and `anthropic.ts` use it.
 */
import { Effect, type Schema, Stream } from "effect"
import type * as Response from "effect/ai/Response"
import type { Completion, LmRequest } from "../Chat.ts"
import type { LmError } from "../LmError.ts"
import { broken, requestEvents, type FailureBody, read, refusedInBody, requestText } from "./http.ts"
import { finishPart, type JsonFormat, type Provider, toolCallPart } from "./Provider.ts"
import type { Server } from "./Server.ts"

/** The form of an answer: whether it is streamed, and the format that it must have. */
export interface AnswerForm {
  readonly stream: boolean
  readonly format?: JsonFormat | undefined
}

/**
 * The wire format of a protocol: how to encode requests, how to decode an answer (a `Whole`, or a stream of `Piece`s),
 * and how to collect it in a `Gathered` object.
 */
interface Wire<Gathered, Whole, Piece> {
  readonly path: string
  readonly body: (request: LmRequest, form: AnswerForm) => Readonly<Record<string, unknown>>
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
  /** Makes the completion from a collected answer. Fails if the answer must not be used. */
  readonly completed: (request: LmRequest, from: Gathered, format?: JsonFormat) => Effect.Effect<Completion, LmError>
}

/**
 * Makes the provider of a server from its wire format. With `streaming`, `complete` also requests a stream from the
 * server and collects it, even if the caller wants only the whole answer.
 */
export const providerOf = <Gathered extends { ended: boolean }, Whole, Piece>(
  server: Server,
  streaming: boolean,
  wire: Wire<Gathered, Whole, Piece>,
): Provider => {
  const { path, body, endOfStream, empty, completed } = wire
  const readWhole = read(server, wire.answerSchema)
  const readPiece = read(server, wire.pieceSchema)
  const unlessFailed = (text: string | FailureBody): Effect.Effect<string, LmError> =>
    typeof text === "string" ? Effect.succeed(text) : Effect.fail(refusedInBody(server, text))

  const answer = (request: LmRequest, into: Gathered, format?: JsonFormat) =>
    requestText(server, path, body(request, { format, stream: false })).pipe(
      Effect.flatMap(readWhole),
      Effect.flatMap((answer) => unlessFailed(wire.gatherWhole(into, answer))),
    )

  /**
   * Streams the texts of an answer, and collects the whole answer in `into`. `into.ended` is set when the event that ends the
   * stream arrives; nothing is read after it.
   */
  const texts = (request: LmRequest, into: Gathered, format?: JsonFormat): Stream.Stream<string, LmError> =>
    requestEvents(server, path, body(request, { format, stream: true })).pipe(
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
    )

  return {
    model: server.model,
    complete: (request, format) =>
      Effect.suspend(() => {
        const into = empty()
        return Effect.andThen(
          streaming ? Stream.runDrain(texts(request, into, format)) : answer(request, into, format),
          Effect.suspend(() => completed(request, into, format)),
        )
      }),
    stream: (request) =>
      Stream.suspend(() => {
        const into = empty()
        let begun = false
        const parts = texts(request, into).pipe(
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
